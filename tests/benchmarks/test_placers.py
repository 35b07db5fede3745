"""The arithmetic of the benchmark of placers, on tables worked out by hand."""

import argparse
import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import placers
from benchmarks._shared import rankings
from benchmarks._shared.graphs import layered, net
from benchmarks._shared.rankings import Row
from placement.core.problem_json import problem_from_json, problem_to_json
from placement.core.violations import violations
from placement.pbqp.problem import solve_packed
from placement.schedule.segments import make_schedule

NOTHING = {"time_limit": 0.1, "only": "", "placers": "", "draw": 0, "seed": 0}
NOTHING |= {"search_on": "local"}


def row(case, placer, value, bound=0.0, seconds=1.0, error=""):
    kinds = {"auto": "auto", "search": "search", "dp": "exact"}
    return Row(case, placer, kinds.get(placer, "constructive"), value, bound, seconds, error)


TABLE = [
    row("a", "heft", 12.0, bound=8.0, seconds=0.1),
    row("a", "search", 10.0, bound=8.0),
    row("a", "auto", 10.1, bound=9.0, seconds=5.0),
    row("b", "heft", 20.0, bound=0.0, seconds=0.3),
    row("b", "search", 20.0),
    row("b", "auto", 22.0, bound=20.0, seconds=5.2),
    row("c", "heft", math.inf, error="Device 'd0' needs 3 B but has 2 B."),
    row("c", "search", 7.0),
    row("c", "auto", 6.0, bound=6.0),
]


def test_gaps_are_shares_of_the_reference():
    assert rankings.gap(11.0, 10.0) == pytest.approx(0.1)
    assert rankings.gap(0.0, 0.0) == 0.0
    assert rankings.gap(1.0, 0.0) == math.inf


def test_a_line_per_placer_the_closest_first():
    lines = {line.placer: line for line in rankings.lines(TABLE)}
    assert list(lines) == ["search", "auto", "heft"]
    heft = lines["heft"]
    assert (heft.num_cases, heft.num_failed) == (3, 1)
    assert heft.median_gap == pytest.approx(0.1)  # 20 % in a, none in b
    assert heft.worst_gap == pytest.approx(0.2)
    assert heft.median_bound_gap == pytest.approx(1 / 6)  # 12 over 9 and 20 over 20
    assert heft.median_s == pytest.approx(0.2)
    assert lines["auto"].median_gap == pytest.approx(0.01)
    assert lines["auto"].worst_gap == pytest.approx(0.1)
    assert lines["search"].median_gap == 0.0
    assert lines["search"].worst_gap == pytest.approx(1 / 6)


def test_a_placer_without_any_answer_comes_last():
    lines = rankings.lines([*TABLE, row("a", "broken", math.inf, error="no")])
    assert lines[-1].placer == "broken"
    assert math.isnan(lines[-1].median_gap)
    assert lines[-1].num_failed == 1


def test_copies_of_stages_set_no_best_for_others_and_come_last():
    lines = rankings.lines([*TABLE, row("a", "replicate", 5.0, bound=4.0)])
    assert lines[:-1] == rankings.lines(TABLE)
    assert lines[-1].placer == "replicate"
    # What copies gain on the best of one device for each op.
    assert lines[-1].median_gap == pytest.approx(-0.5)
    assert math.isnan(lines[-1].median_bound_gap)


def test_where_the_automatic_placer_falls_short():
    assert rankings.worse_than_constructive(TABLE) == ["b: 10.0% above heft"]
    assert rankings.not_close_to_single(TABLE) == ["b: 10.0% above heft"]
    assert rankings.share_close(TABLE) == pytest.approx(2 / 3)
    assert math.isnan(rankings.share_close(TABLE[:2]))
    # 10.1 over 9, 22 over 20, 6 over 6
    assert rankings.own_bound_gap(TABLE) == pytest.approx(0.1)


def test_a_placer_is_held_against_a_few_others():
    table = [row("a", "heft", 10.0), row("a", "search", 9.0), row("a", "dp", 8.0)]
    assert rankings.above_others(table, "search", ("heft",)) == []
    assert rankings.above_others(table, "search", ("heft", "dp")) == ["a: 12.5% above dp"]
    assert rankings.num_shared([*table, row("b", "search", 1.0)], "search", ("heft",)) == 1
    assert rankings.above_others(TABLE, "search", ("heft",)) == []


def test_two_percent_is_close_and_an_exact_method_is_no_constructive_one():
    table = [row("a", "dp", 100.0), row("a", "heft", 103.0), row("a", "auto", 102.0)]
    assert rankings.not_close_to_single(table) == []
    assert rankings.worse_than_constructive(table) == []
    worse = [*table[:2], replace(table[2], value=102.1)]
    assert rankings.not_close_to_single(worse) == ["a: 2.1% above dp"]


def test_a_refusal_of_the_automatic_placer_counts_against_it():
    table = [row("a", "heft", 1.0), row("a", "auto", math.inf, error="no")]
    assert len(rankings.worse_than_constructive(table)) == 1
    assert rankings.share_close(table) == 0.0


def test_published_values_are_reached_within_their_rounding():
    references = {"a": {"greedy": 10.0996, "split": 12.0}, "b": {"greedy": 21.0}}
    assert rankings.above_references(TABLE, references) == ["b: 22.000, greedy 21.000"]


def test_the_published_values_belong_to_cases_there_are():
    if not placers.WORKLOADS.is_dir():
        pytest.skip("the workload files are not at hand")
    assert set(placers.PUBLISHED_MS) <= {case.name for case in placers.cases()}


def test_rows_are_kept_and_not_made_twice(tmp_path):
    options = argparse.Namespace(
        **{**NOTHING, "only": "onnx-squeezenet/null-2", "placers": "single,heft,pipedream"}
    )
    rows = list(placers.run(options, []))
    assert [(r.case, r.placer) for r in rows] == [
        ("onnx-squeezenet/null-2/latency", name) for name in ("single", "heft")
    ]
    assert all(r.value >= r.bound > 0 and not r.error for r in rows)
    assert list(placers.run(options, rows)) == []
    out = tmp_path / "rows.json"
    assert placers.load(out) == []
    kept = [*rows, replace(rows[0], placer="none", value=math.inf, error="no")]
    placers.save(out, kept)
    assert placers.load(out) == kept
    assert "| heft | 1 | 0 |" in placers.summary(kept)
    assert "onnx-squeezenet/null-2/latency" in placers.case_table(kept)


def test_cases_are_drawn_by_the_seed_from_those_that_are_named():
    def drawn(**options):
        given = argparse.Namespace(**{**NOTHING, "only": "squeezenet,alexnet/", **options})
        return [case.name for case in placers.chosen_cases(given)]

    named, some = drawn(), drawn(draw=5)
    assert len(some) == 5 and some == drawn(draw=5)
    assert some == [name for name in named if name in some]
    assert some != drawn(draw=5, seed=1)
    assert drawn(draw=10_000) == named


def test_made_up_graphs_are_the_same_again_and_survive_their_file():
    problem = layered(500, 3)
    assert layered(500, 3).graph == problem.graph
    assert (layered(500, 3).costs.compute_s == problem.costs.compute_s).all()
    assert layered(500, 3, seed=1).graph != problem.graph
    reads = [len(p) for p in problem.graph.predecessors]
    assert not any(reads[:20])
    assert all(1 <= n <= 3 for n in reads[20:])
    again = problem_from_json(problem_to_json(problem), "again")
    assert (again.costs.compute_s == problem.costs.compute_s).all()
    placement = problem.placement_of([i % 3 for i in range(500)])
    assert violations(problem, make_schedule(problem, placement)) == ()


def test_made_up_trees_are_solved_without_a_guess():
    found = solve_packed(net(np.array([0, 0, 1, 1, 2, 5]), 4))
    assert found.optimal
    assert len(found.choice) == 7
