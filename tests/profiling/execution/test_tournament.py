"""Tournaments: right outputs or none, the whole CPU beside its lanes, a stop, a virtual clock."""

from dataclasses import replace

import numpy as np
import pytest

from placement.api.finals import one_device
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import simulate
from profiling.devices.local import local_machine
from profiling.execution.tournament import WRONG, Entrant, tournament
from profiling.measuring.outputs import Comparison
from profiling.measuring.racing import FIRST_LOOK
from profiling.measuring.reference import Expected
from tests.profiling.live import diamond, problem_of, random_schedule, two_lanes

LIMITS = {"limit_s": 60.0, "timeout_s": 30.0}


@pytest.fixture(scope="module")
def entered(tmp_path_factory):
    model = diamond(tmp_path_factory.mktemp("model"))
    problem = problem_of(model, two_lanes())
    rng = np.random.default_rng(0)
    entrants = [Entrant(f"e{i}", problem, random_schedule(problem, rng)) for i in range(2)]
    whole = one_device(problem, local_machine(1), 1e-3)
    alone = make_schedule(whole, whole.placement_of(np.zeros(whole.num_units, dtype=int)))
    return model, [*entrants, Entrant("whole", whole, alone)]


def test_everybody_runs_and_somebody_wins(entered):
    model, entrants = entered
    told = []
    # A handful of rounds: what is certain of steps of some microseconds is not the question here.
    found = tournament(
        entrants, model=model, **LIMITS, emit=told.append, stop=lambda: len(told) > 9
    )
    assert found.left == ("", "", "") and found.winner in range(3)
    assert {len(turns) for turns in found.turn_s} == {len(told) - len(entrants)}
    assert all(0 < seconds < 30 for turns in found.turn_s for seconds in turns)
    assert "leads with" in told[-1]["note"]


def test_what_computes_something_else_or_cannot_be_opened_is_left_out(entered, monkeypatch):
    model, entrants = entered
    answers = iter([False, True])
    monkeypatch.setattr(Expected, "compared", lambda *_: Comparison(next(answers), 0.0))
    small = replace(entrants[0].problem.machine.devices[0], memory_bytes=1)
    machine = replace(
        entrants[0].problem.machine, devices=(small, entrants[0].problem.machine.devices[1])
    )
    tight = replace(entrants[0], problem=replace(entrants[0].problem, machine=machine))
    found = tournament([entrants[0], tight, entrants[1]], model=model, **LIMITS)
    assert found.left[0] == WRONG and found.left[1].startswith("it cannot be run: ")
    assert found.turn_s[:2] == ((), ()) and len(found.turn_s[2]) == FIRST_LOOK
    assert (found.winner, found.is_certain) == (2, True)


def test_a_stop_before_the_first_round_leaves_no_winner(entered):
    model, entrants = entered
    found = tournament(entrants, model=model, **LIMITS, stop=lambda: True)
    assert found.winner is None and not found.is_certain
    assert found.turn_s == ((), (), ())


def test_a_virtual_clock_shows_the_prediction(entered):
    model, entrants = entered
    devices = tuple(replace(d, runtime="null") for d in two_lanes().devices)
    rows = [
        replace(e, problem=replace(e.problem, machine=replace(two_lanes(), devices=devices)))
        for e in entrants[:2]
    ]
    found = tournament(rows, model=model, **LIMITS)
    step_s = [simulate(row.problem, row.schedule).step_s for row in rows]
    assert [turns[0] for turns in found.turn_s] == step_s
    assert found.winner == int(np.argmin(step_s)) and found.is_certain
