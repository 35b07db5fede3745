"""A problem on the devices that are left costs there what it cost before."""

from dataclasses import replace

import numpy as np
import pytest

import placement as pl
from placement.core.problem import Problem
from placement.costs.remaining import without_devices
from tests.instances import random_problem


def on_first(problem: Problem) -> float:
    return pl.simulate(problem, problem.placement_of([0] * problem.num_units)).value


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_is_as_it_was(seed):
    problem = random_problem(seed, num_devices=3)
    spread = np.random.default_rng(seed).random(problem.costs.compute_s.shape)
    problem = replace(problem, costs=replace(problem.costs, spread=spread))
    first, *others = (d.name for d in problem.machine.devices)
    left = without_devices(problem, others[:1])
    assert [d.name for d in left.machine.devices] == [first, *others[1:]]
    assert all(others[0] not in (link.src, link.dst) for link in left.machine.links)
    assert on_first(left) == on_first(problem)
    np.testing.assert_array_equal(left.costs.spread, spread[:, [0, 2]])


def test_pins_to_what_is_gone_are_free_again():
    problem = random_problem(0, num_devices=3)
    a, b = (d.name for d in problem.machine.devices[:2])
    ops = [op.name for op in problem.graph.ops[:2]]
    pinned = replace(problem, groups=(), pins=((ops[0], a), (ops[1], b)))
    assert without_devices(pinned, [b]).pins == ((ops[0], a),)


def test_no_device_left_is_refused():
    problem = random_problem(0, num_devices=3)
    with pytest.raises(ValueError, match=r"No device of machine .* is left; use --machine local"):
        without_devices(problem, [d.name for d in problem.machine.devices])
