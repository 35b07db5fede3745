"""Placeto: presets, the number of groups, and answers where there is little to decide."""

import pytest

from placement.learning.simulated import simulated
from placement.placers.placeto import PRESETS, Placeto
from placement.search.feasible import final_s
from tests.instances import random_problem


@pytest.mark.parametrize("preset", PRESETS)
def test_units_are_at_most_as_many_as_groups(preset):
    problem = random_problem(3, num_ops=40, num_devices=2)
    heard = []
    for groups in (8, 128):
        placer = Placeto(preset=preset, groups=groups, max_iterations=1)
        heard.append(placer._level(simulated(problem)).num_units)
    assert heard[0] < heard[1] <= 40
    assert heard[0] <= 16


def test_more_rounds_are_never_worse_before_refinement():
    problem = random_problem(6, num_ops=16, num_devices=3, execution="op")
    best = []
    for rounds in (1, 5):
        heard = []
        placer = Placeto(candidates="", max_iterations=rounds)
        placement = placer.place(problem, lambda p, heard=heard: heard.append(p) or True)
        best.append(min(p.best_s for p in heard[:-1]))
        assert final_s(problem, placement) <= best[-1] * (1 + 1e-9)
    assert best[1] <= best[0]


def test_whoever_says_stop_gets_the_best_so_far():
    problem = random_problem(6, num_ops=16, num_devices=3)
    placement = Placeto(max_iterations=1000).place(problem, lambda progress: False)
    assert set(placement.device_of) == {op.name for op in problem.graph.ops}


def test_one_op_on_one_device_is_answered():
    placement = Placeto().place(random_problem(1, num_ops=1, num_devices=1))
    assert set(placement.device_of.values()) == {"d0"}
