"""`place --live` without learning: the finalists race, and the fastest is the answer."""

import json
from dataclasses import replace

import numpy as np
import pytest

import placement as pl
from placement.api.answers import of_placed
from placement.api.finals import WHOLE_CPU, WHOLE_CPU_NAME
from placement.api.results.verbs import result_from_json
from placement.core.decoding import decode
from placement.placers import placer_class
from profiling.execution import tournament as module
from profiling.execution.tournament import Tournament
from tests.command import answer, call_here, refused
from tests.instances import random_problem
from tests.profiling.live import diamond, problem_of, two_lanes


@pytest.fixture(scope="module")
def posed(tmp_path_factory):
    model = diamond(tmp_path_factory.mktemp("model"))
    return model, problem_of(model, two_lanes())


def fake(monkeypatch, seconds_of, is_certain=True, left=""):
    """A race in which everybody takes what a function says of an entrant; who took part."""
    took_part = []

    def raced(entrants, **asked):
        took_part.extend(entrants)
        taken = [seconds_of(entrant) for entrant in entrants]
        winner = int(np.argmin(taken))
        why = tuple("" if i == winner else left for i in range(len(taken)))
        return Tournament(tuple((s,) * 12 for s in taken), why, winner, is_certain)

    monkeypatch.setattr(module, "tournament", raced)
    return took_part


def test_each_device_alone_and_the_whole_cpu_take_part_and_none_twice(posed, monkeypatch):
    model, problem = posed
    took_part = fake(monkeypatch, lambda entrant: 1.0)
    placed = pl.place(problem, "auto", live=True, model=model, settings={"max_iterations": 20})
    names = [entrant.name for entrant in took_part]
    assert names[-3:] == ["cpu:0 alone", "cpu:1 alone", WHOLE_CPU_NAME]
    assert (
        len({tuple(f.placement.device_of.items()) for f in placed.finals.entries}) >= len(names) - 1
    )
    assert [len(e.schedule.segments) for e in took_part[-3:]] == [1, 1, 1]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("placer", ["heft", "round_robin", "auto"])
def test_the_measured_best_is_the_answer_and_not_the_predicted_one(posed, monkeypatch, placer):
    model, problem = posed
    fake(monkeypatch, lambda entrant: 0.5 if entrant.name == "cpu:1 alone" else 1.0)
    placed = pl.place(problem, placer, live=True, model=model)
    assert set(placed.placement.device_of.values()) == {"cpu:1"}
    assert placed.violations == () and placed.problem == problem.fingerprint
    assert "Measured, cpu:1 alone is fastest of" in placed.account
    told = of_placed(placed)
    assert told.measured_s == 0.5 and told.finals.rows[0].name == "cpu:1 alone"
    assert told.finals.machine == "" and told.finals.is_certain
    assert decode(told.finals.to_json(), type(told.finals)) == told.finals


def test_where_the_whole_cpu_wins_the_placement_names_its_machine(posed, monkeypatch):
    model, problem = posed
    fake(monkeypatch, lambda entrant: 0.5 if entrant.name == WHOLE_CPU_NAME else 1.0)
    placed = pl.place(problem, "heft", live=True, model=model)
    assert placed.placement.machine == WHOLE_CPU
    assert placed.value == pytest.approx(0.5), "nothing was known before it was measured"
    assert placed.problem != problem.fingerprint and not placed.proven_optimal
    told = of_placed(placed)
    assert told.finals.machine == WHOLE_CPU
    again = result_from_json("place", json.loads(json.dumps(told.to_json())))
    assert again == told


def test_placements_of_ones_own_are_measured_beside_what_is_found(posed, monkeypatch):
    model, problem = posed
    own = problem.placement_of(np.array([1, 0, 1, 0]))
    took_part = fake(monkeypatch, lambda entrant: 0.5 if entrant.name == "mine" else 1.0)
    placed = pl.place(problem, "heft", live=True, model=model, beside={"mine": own})
    assert took_part[0].name == "mine" and len(took_part) > 3
    assert placed.placement.device_of == own.device_of
    assert of_placed(placed).finals.rows[0].name == "mine"
    pinned = replace(problem, pins=(("exp", "cpu:1"),))
    away = problem.placement_of(np.zeros(4, dtype=int))
    with pytest.raises(ValueError, match=r"'mine' cannot be measured: .*exp.*"):
        pl.place(pinned, "heft", live=True, model=model, beside={"mine": away})


def test_the_command_measures_files_beside_what_is_found(tmp_path):
    ops = pl.load("onnx-squeezenet").graph.index
    own = {"machine": "null-2", "device_of": {op: f"null:{i % 2}" for op, i in ops.items()}}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(own))
    asked = ("place", "onnx-squeezenet", "--placer", "heft", "--machine", "null-2", "--mend")
    beside = ("--beside", f"mine={path}")
    assert "add --live" in refused(*asked, *beside)
    assert "not of the form NAME=FILE" in refused(*asked, "--live", "--beside", str(path))
    found = answer(*asked, "--live", *beside)
    assert "mine" in {row["name"] for row in found["finals"]["rows"]}


def test_what_is_pinned_or_kept_is_so_in_all_that_take_part(posed, monkeypatch):
    model, problem = posed
    took_part = fake(monkeypatch, lambda entrant: 1.0)
    pinned = replace(problem, pins=(("exp", "cpu:1"),))
    placed = pl.place(pinned, "heft", live=True, model=model)
    assert {f.placement.device_of["exp"] for f in placed.finals.entries} == {"cpu:1"}
    assert "whole" not in " ".join(entrant.name for entrant in took_part)
    keep = problem.placement_of(np.array([0, 1, 0, 1]))
    placed = pl.place(problem, "round_robin", live=True, model=model, keep=keep)
    assert placed.finals.entries[-1].name == "as it was"
    assert placed.finals.entries[-1].placement.device_of == keep.device_of


def test_who_takes_no_turn_leaves_the_prediction_as_the_answer(posed, monkeypatch):
    model, problem = posed

    def raced(entrants, **asked):
        return Tournament(((),) * len(entrants), ("",) * len(entrants), None, False)

    monkeypatch.setattr(module, "tournament", raced)
    placed = pl.place(problem, "heft", live=True, model=model)
    assert placed.finals.winner is placed.finals.entries[0]
    assert of_placed(placed).measured_s is None and "Nothing was measured" in placed.account


def test_it_is_for_steps_of_models_that_run_here(posed):
    model, problem = posed
    with pytest.raises(ValueError, match="hand it over as `model`"):
        pl.place(problem, "heft", live=True)
    with pytest.raises(ValueError, match="leave out --live"):
        pl.place(replace(problem, objective="throughput"), "auto", live=True, model=model)


def test_finalists_differ_and_the_best_by_prediction_is_first():
    problem = random_problem(3, num_ops=40, num_devices=2, execution="segment")
    auto = placer_class("auto")(max_iterations=200)
    found = auto.finalists(problem)
    placements = [finalist.placement for finalist in found]
    values = [pl.simulate(problem, p).value for p in placements]
    assert values == sorted(values) and values[0] <= pl.simulate(problem, auto.place(problem)).value
    assert len({tuple(p.device_of.values()) for p in placements}) == len(found) > 1


def test_the_command_tells_the_table(tmp_path):
    asked = ("place", "onnx-squeezenet", "--placer", "heft", "--live", "--machine", "null-2")
    lines = call_here(*asked).stdout.splitlines()
    assert any(line.startswith("Placement") and "95 % interval" in line for line in lines)
    assert "is the fastest by the virtual clock; nothing was measured" in lines[-1]
    told = answer(*asked)
    assert told["finals"]["rows"][0]["turns"] >= 10 and "placement" not in told["finals"]["rows"][0]


def test_a_placement_that_names_lanes_is_of_that_machine(tmp_path):
    out = tmp_path / "placement.json"
    ops = pl.load("onnx-squeezenet").graph.index
    content = {"machine": WHOLE_CPU, "device_of": dict.fromkeys(ops, "cpu:0")}
    out.write_text(json.dumps(content))
    asked = ("simulate", "onnx-squeezenet", "--analytic", "--placement", out)
    found = answer(*asked)
    assert list(found["peak_bytes"]) == ["cpu:0"] and found["num_segments"] == 1
    assert "machine 'null-2' has null:0" in refused(*asked, "--machine", "null-2")
