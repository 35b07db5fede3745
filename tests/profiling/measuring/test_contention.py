"""How much slower two lanes are together: of models whose steps are exactly as simulated."""

import numpy as np
import pytest

from placement.schedule.order import kernel_order
from profiling.measuring.contention import (
    by_rank,
    contention_of_lanes,
    cost_of_rank_order,
    list_scheduled,
)
from profiling.measuring.siblings import Siblings
from tests.instances import random_problem
from tests.profiling.live import two_lanes
from tests.profiling.simulated import Simulated, of_one_kind

CROSSING_S = 1e-5


@pytest.mark.parametrize("seed", range(10))
def test_lanes_are_timed_together_in_the_order_in_which_placements_run(seed):
    problem = random_problem(seed, num_ops=20, num_devices=1)
    kernel_s = problem.costs.compute_s[:, 0]
    on_one = problem.placement_of([0] * problem.num_units)
    ranked = kernel_order(problem, on_one, problem.kernel_devices(on_one))
    assert by_rank(problem.kernels, kernel_s) == ranked
    assert ranked != sorted(ranked), "or this shows nothing"


@pytest.mark.parametrize("contention", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_lanes_of_a_simulation_contend_as_it_was_told(seed, contention):
    problem = random_problem(
        seed,
        num_ops=120,
        num_devices=2,
        execution="op",
        contention=contention,
        link_contention=False,
    )
    problem = of_one_kind(problem, CROSSING_S)
    found = contention_of_lanes(
        Simulated(problem),
        problem.machine.devices,
        {},
        problem.costs.compute_s[:, 0],
        (CROSSING_S, np.inf),
        Siblings(()),
    )
    assert found == pytest.approx(contention, abs=1e-9)


class Opened(Exception):
    """Told by a model that is not run."""


class Recording:
    """A compiled model that notes the schedules it is asked for."""

    def __init__(self, kernels, keeps_order):
        self.kernels, self.keeps_order, self.schedules = kernels, keeps_order, []

    def open(self, schedule, feeds):
        self.schedules.append([(s.device, s.kernels) for s in schedule.segments])
        return self

    def carried(self, lanes, num_segments):
        raise Opened


def test_an_order_that_is_not_kept_costs_nothing_and_whole_models_contend():
    problem = random_problem(3, num_ops=20, num_devices=1)
    compiled, (first, second) = Recording(problem.kernels, False), two_lanes().devices
    kernel_s, names = problem.costs.compute_s[:, 0], tuple(op.name for op in problem.kernels.ops)
    with pytest.raises(Opened):
        contention_of_lanes(compiled, (first, second), {}, kernel_s, None, Siblings(()))
    assert compiled.schedules == [[("cpu:0", names)], [("cpu:1", names)]]
    assert cost_of_rank_order(compiled, first, {}, kernel_s, Siblings(())) == 1.0


def test_where_an_order_is_kept_it_is_held_against_the_one_that_is_declared():
    problem = random_problem(3, num_ops=20, num_devices=1)
    compiled, first = Recording(problem.kernels, True), two_lanes().devices[0]
    kernel_s, names = problem.costs.compute_s[:, 0], tuple(op.name for op in problem.kernels.ops)
    with pytest.raises(Opened):
        cost_of_rank_order(compiled, first, {}, kernel_s, Siblings(()))
    ranked = tuple(names[k] for k in by_rank(problem.kernels, kernel_s))
    assert compiled.schedules == [[("cpu:0", ranked)], [("cpu:0", names)]]


class Wholes(Simulated):
    """Of which nobody runs the whole model in one segment."""

    def open(self, schedule, feeds):
        if len(schedule.segments) == 1:
            raise Opened
        return super().open(schedule, feeds)


@pytest.mark.parametrize("num_ops", [2, 60])
def test_where_nothing_can_run_beside_something_else_whole_models_contend(num_ops):
    made = (
        random_problem(seed, num_ops=num_ops, num_devices=2, execution="op", contention=0.25)
        for seed in range(20)
    )
    problem = next(p for p in made if p.kernels.successors[0])
    problem = of_one_kind(problem, CROSSING_S)
    given = (
        Wholes(problem),
        problem.machine.devices,
        {},
        problem.costs.compute_s[:, 0],
        (CROSSING_S, np.inf),
        Siblings(()),
    )
    if num_ops == 2:
        with pytest.raises(Opened):
            contention_of_lanes(*given)
    else:
        assert contention_of_lanes(*given) == pytest.approx(0.25)


@pytest.mark.parametrize("crossing_s", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_kernel_goes_where_it_ends_first(seed, crossing_s):
    """By starting all anew on each lane, as a reader would do it by hand."""
    kernels = random_problem(seed, num_ops=25, num_devices=1).kernels
    kernel_s = np.random.default_rng(seed).integers(1, 9, 25).astype(float)
    order = by_rank(kernels, kernel_s)
    crossed_s = np.full(len(kernels.tensors), crossing_s)
    lane_of = list_scheduled(kernels, kernel_s, order, crossed_s)
    makers = {k: [] for k in order}
    index = {op.name: k for k, op in enumerate(kernels.ops)}
    for tensor in kernels.tensors:
        for reader in tensor.consumers if tensor.producer is not None else ():
            makers[index[reader]].append(index[tensor.producer])

    def ends_s(listed, lanes):
        """Of each kernel, of a list on these lanes."""
        found, free_s = {}, [0.0, 0.0]
        for k in listed:
            there_s = [found[p] + (crossing_s if lanes[p] != lanes[k] else 0) for p in makers[k]]
            found[k] = free_s[lanes[k]] = max([free_s[lanes[k]], *there_s]) + kernel_s[k]
        return found

    for i, k in enumerate(order):
        by_lane = [ends_s(order[: i + 1], {**dict(enumerate(lane_of)), k: n})[k] for n in (0, 1)]
        assert lane_of[k] == int(by_lane[1] < by_lane[0])
    assert set(lane_of.tolist()) == {0, 1}
