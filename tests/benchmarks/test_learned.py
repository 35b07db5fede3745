"""The benchmark of learned placers: its arithmetic by hand, and how it goes on from its rows."""

import argparse
import math
from dataclasses import replace

import pytest

from benchmarks import learned
from benchmarks._learned import cases
from benchmarks._learned.cases import Case, with_devices_alone
from benchmarks._learned.summary import Row, lines, standards, verdicts
from placement import place
from tests.instances import random_problem

RUNS = [
    Row(case="a", placer="single", value_ms=12.0),
    Row(case="a", placer="heft", value_ms=11.0),
    Row(case="a", placer="peft", value_ms=10.0),
    Row(case="a", placer="auto", limit_s=30.0, value_ms=8.0),
    *(
        Row(case="a", placer="new", seed=i, limit_s=10.0, value_ms=v, evaluations=n, num_devices=5)
        for i, (v, n) in enumerate([(8.0, 100), (8.8, 300), (8.1, 200)])
    ),
    *(
        Row(case="a", placer=name, beside="new", seed=i, limit_s=10.0, value_ms=v, evaluations=100)
        for name, values in (("random_search", (9.0, 9.5, 9.1)), ("mutation", (8.0, 8.1, 8.3)))
        for i, v in enumerate(values)
    ),
    Row(case="b", placer="single", value_ms=5.0),
    Row(case="b", placer="auto", limit_s=30.0, value_ms=4.9),
    Row(case="b", placer="new", limit_s=10.0, value_ms=6.0),
]


def test_what_is_known_of_a_case():
    known = standards(RUNS, {"a": 7.9, "c": 1.0})
    assert (known["a"].best, known["a"].lists, known["a"].candidates) == (7.9, 10.0, 11.0)
    assert known["a"].gain == pytest.approx(0.21) and known["a"].counts
    assert known["b"].gain == pytest.approx(0.02) and not known["b"].counts
    assert list(known) == ["a", "b"]


def test_a_line_has_the_median_the_worst_seed_and_the_controls_beside_it():
    first, second = lines(RUNS, standards(RUNS, {}))
    assert (first.num_seeds, first.median, first.worst) == (3, 8.1, 8.8)
    assert first.median_gap == pytest.approx(0.0125) and first.worst_gap == pytest.approx(0.1)
    assert (first.evaluations, first.random_search, first.mutation) == (200, 9.1, 8.1)
    assert (second.median, second.with_candidates) == (6.0, 5.0)
    assert math.isnan(second.mutation)


def test_verdicts_name_the_cases_that_are_lost_and_count_only_those_with_something_to_gain():
    known = standards(RUNS, {})
    assert verdicts(lines(RUNS, known), known) == [
        "new below min(single, heft, peft): 1 of 1",
        "new within 2 % of the best known (median) and 5 % (worst seed): 0 of 1, not on a",
        "new below random search: 1 of 1",
        "new below mutation with 5 devices or more: 0 of 1, not on a",
    ]


@pytest.fixture
def tiny(monkeypatch):
    problem = random_problem(3, num_ops=8, num_devices=3)
    monkeypatch.setattr(learned, "cases", lambda: iter([Case("tiny", lambda: problem)]))
    monkeypatch.setattr(learned, "answered", counted(learned.answered))
    return learned.answered


def counted(answered):
    def count(case, problem, run, search_on):
        count.asked.append((run.placer, run.beside, run.seed))
        found = answered(case, problem, replace(run, limit_s=min(run.limit_s, 0.05)), search_on)
        return replace(found, limit_s=run.limit_s)

    count.asked = []
    return count


def options(**more):
    # A control can stand in for a learner: it is asked for the same things.
    given = {"cases": [], "placers": ["mutation"], "seeds": [0, 1], "set": [], "time_limit": 0.0}
    given |= {"search_on": "local"}
    return argparse.Namespace(**given | more)


def test_each_run_stands_beside_both_controls_and_none_is_made_twice(tiny, tmp_path):
    rows = list(learned.run(options(), []))
    assert [(r.placer, r.beside, r.seed) for r in rows] == tiny.asked
    assert tiny.asked == [
        *((name, "", 0) for name in ("single", "heft", "peft", "auto")),
        *(
            (name, beside, seed)
            for seed in (0, 1)
            for name, beside in (
                ("mutation", ""),
                ("random_search", "mutation"),
                ("mutation", "mutation"),
            )
        ),
    ]
    for row in rows[4:]:
        assert math.isfinite(row.value_ms) and row.evaluations >= 128, row
    for run, control in ((4, 5), (4, 6), (7, 8), (7, 9)):
        assert rows[control].evaluations == rows[run].evaluations
    out = tmp_path / "rows.jsonl"
    out.write_text("".join(map(learned.line_of, rows[:6])) + '{"case": "ti')
    before = learned.load(out)
    assert before == rows[:6]
    del tiny.asked[:]
    assert len(list(learned.run(options(), before))) == 4
    assert tiny.asked == [(r.placer, r.beside, r.seed) for r in rows[6:]]
    assert not list(learned.run(options(cases=["else"]), []))


def test_a_refusal_is_a_row_with_an_error_and_has_no_controls(tiny):
    rows = list(learned.run(options(seeds=[0], set=["share=2"]), []))
    assert [row.placer for row in rows[4:]] == ["mutation"]
    assert "Setting 'share' is 2.0" in rows[4].error and math.isinf(rows[4].value_ms)
    assert learned.line_of(rows[4]).count("null") == 1


def test_learners_are_the_placers_with_candidates_but_for_the_controls():
    assert not {"random_search", "mutation", "single", "auto"} & set(learned.learners())


def test_devices_take_alone_what_they_are_asked_to():
    problem = random_problem(5, num_ops=9, num_devices=2)
    wanted = {"d0": 50.0, "d1": 200.0}
    scaled = with_devices_alone(problem, wanted)
    for name, wanted_s in wanted.items():
        assert place(scaled, "single", settings={"device": name}).value == pytest.approx(wanted_s)
    with pytest.raises(ValueError, match="for transfers alone; ask for more"):
        with_devices_alone(problem, {"d1": 1e-3})


def test_the_placement_by_hand_puts_a_layer_of_each_side_on_each_gpu():
    by_scope = dict(rule.split("=") for rule in cases.NMT_LAYERS.split(";"))
    assert by_scope["encoder/2"] == by_scope["decoder/3"] == by_scope["head"] == "cuda:3"
    assert by_scope["ahead"] == by_scope["back"] == by_scope["decoder/0"] == "cuda:0"
    assert set(by_scope.values()) == {f"cuda:{i}" for i in range(4)}
