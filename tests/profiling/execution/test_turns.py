"""Schedules in turns: each as often as the others, right outputs or none, a virtual clock."""

import math
from dataclasses import replace

import numpy as np
import pytest

from placement.core.verb_options import RunOptions
from placement.simulator.simulate import simulate
from profiling.execution.turns import in_turns
from profiling.measuring.outputs import Comparison
from profiling.measuring.reference import Expected
from tests.profiling.live import diamond, problem_of, random_schedule, two_lanes


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    model = diamond(tmp_path_factory.mktemp("model"))
    problem = problem_of(model, two_lanes())
    rng = np.random.default_rng(0)
    return model, problem, [random_schedule(problem, rng) for _ in range(3)]


def test_every_schedule_makes_every_turn(placed):
    model, problem, schedules = placed
    found = in_turns(problem, schedules, RunOptions(steps=5, warmup=1), model=model)
    assert [len(steps) for steps in found.step_s] == [5, 5, 5]
    assert all(0 < second < math.inf for steps in found.step_s for second in steps)
    assert list(found.median_s) == [sorted(steps)[2] for steps in found.step_s]


def test_what_computes_something_else_takes_for_ever(placed, monkeypatch):
    model, problem, schedules = placed
    answers = iter([True, False, True])

    def compared(self, program, outputs):
        assert set(self.outputs) == set(outputs)
        return Comparison(next(answers), 0.0)

    monkeypatch.setattr(Expected, "compared", compared)
    found = in_turns(problem, schedules, RunOptions(steps=2, warmup=0), model=model)
    assert [math.isinf(median_s) for median_s in found.median_s] == [False, True, False]


def test_a_virtual_clock_shows_the_prediction(placed):
    model, problem, schedules = placed
    devices = tuple(replace(d, runtime="null") for d in problem.machine.devices)
    emulated = replace(problem, machine=replace(problem.machine, devices=devices))
    found = in_turns(emulated, schedules, RunOptions(steps=4), model=model)
    assert found.median_s == tuple(simulate(emulated, s).step_s for s in schedules)
