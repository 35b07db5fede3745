"""The range of a prediction: from scattering kernels and hand-overs, and what counts as a tie."""

import math
from dataclasses import replace

import numpy as np
import pytest

import placement as pl
from placement.core.load import Load
from placement.core.objective import Objective
from placement.simulator.uncertainty import (
    BUSY_DRIFT,
    DRIFT,
    HAND_OVER_S,
    NINE_OF_TEN,
    QUARTILES,
    is_tie,
)
from tests.instances import random_devices, random_problem


def measured(spread=0.0, seed=3):
    """A problem whose times were measured with a spread that all kernels have."""
    problem = random_problem(seed, num_ops=30, num_devices=2, execution="segment")
    spreads = np.full(problem.costs.compute_s.shape, spread)
    quiet = Load(1.0, 0.0, 2, beside=0.0)
    costs = replace(problem.costs, origin="measured", spread=spreads, load=quiet)
    return replace(problem, costs=costs)


def alone(problem):
    return problem.placement_of(np.zeros(problem.num_units, dtype=int))


def test_one_device_alone_is_off_by_the_models_share_only():
    problem = measured()
    found = pl.simulate(problem, alone(problem))
    expected = (found.value / (1 + DRIFT), found.value * (1 + DRIFT))
    assert found.range_s == pytest.approx(expected)


@pytest.mark.parametrize(
    ("load", "drift"),
    [
        (Load(1.0, 0.0, 2, beside=0.0), DRIFT),
        (Load(1.0, 0.0, 2, beside=0.25), 0.75 * DRIFT + 0.25 * BUSY_DRIFT),
        (Load(1.0, 1.0, 2, beside=0.25), 0.5 * DRIFT + 0.5 * BUSY_DRIFT),
        (Load(1.0, 9.0, 2, beside=0.0), BUSY_DRIFT),
        # Nobody counts what others compute, or looks at the cores.
        (Load(1.0, None, 2, beside=0.0), BUSY_DRIFT),
        (Load(1.0, 0.0, 2), BUSY_DRIFT),
        (None, BUSY_DRIFT),
    ],
)
def test_what_others_disturbed_is_off_by_more(load, drift):
    problem = measured()
    problem = replace(problem, costs=replace(problem.costs, load=load))
    found = pl.simulate(problem, alone(problem))
    assert found.range_s == pytest.approx((found.value / (1 + drift), found.value * (1 + drift)))


def test_kernels_scatter_independently_of_each_other():
    problem = measured(spread=0.4)
    found = pl.simulate(problem, alone(problem))
    squares = ((0.4 * problem.costs.compute_s[:, 0] / QUARTILES) ** 2).sum()
    wider_s = found.value * (1 + DRIFT) + NINE_OF_TEN * math.sqrt(squares)
    assert found.range_s == pytest.approx((found.value**2 / wider_s, wider_s))


@pytest.mark.parametrize("seed", range(4))
def test_hand_overs_on_the_critical_path_may_take_longer_and_not_less(seed):
    problem = measured()
    placement = problem.placement_of(random_devices(problem, seed))
    found = pl.simulate(problem, placement)
    low_s, high_s = found.range_s
    handed_over = sum(s.kind == "transfer" and s.segment >= 0 for s in found.critical_path)
    assert handed_over
    assert low_s == pytest.approx(found.value / (1 + DRIFT))
    assert high_s == pytest.approx(found.value * (1 + DRIFT) + handed_over * HAND_OVER_S)


def test_nobody_can_tell_of_estimates_and_of_throughput():
    problem = measured()
    estimated = replace(problem, costs=replace(problem.costs, origin="analytic"))
    unknown = replace(problem, costs=replace(problem.costs, spread=None))
    rate = replace(problem, objective=Objective.THROUGHPUT)
    for other in (estimated, unknown, rate):
        assert pl.simulate(other, alone(problem)).range_s is None


def test_a_tie_is_what_lies_in_the_range_of_the_other():
    assert is_tie(1.0, (0.9, 1.2), 1.15, (1.1, 1.2)) and is_tie(1.15, None, 1.0, (0.9, 1.2))
    assert not is_tie(1.0, (0.9, 1.1), 1.15, (1.12, 1.2)) and not is_tie(1.0, None, 1.0001, None)
