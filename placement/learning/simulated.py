"""The environment of problems whose steps are simulated: execution "op" and "segment"."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.objective import Objective
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.environment import Edges, Environment, on_all_cores, valued
from placement.parallel.calls import Call, travels
from placement.parallel.executor import HERE, Executor, num_cores
from placement.schedule.order import by_priority, upward_ranks
from placement.search.coarsening import unit_edges
from placement.search.feasible import limit_bytes, unit_bytes
from placement.simulator.evaluator import Evaluator, can_overflow, num_visits
from placement.simulator.flat import Flat, flatten


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulated(Environment):
    """Units of a problem in one order of kernels (K,), as searches simulate them.

    Memory is that of unmerged schedules, values in flight included where they may be too many.
    """

    order: Ints
    flat: Flat

    @cached_property
    def _evaluators(self) -> list[Evaluator]:
        return [Evaluator(self.problem, self.order, self.flat) for _ in range(num_cores())]

    def suited(self, devices: Ints) -> "Simulated":
        """In the order in which a placement is fastest: the present one, that of its ranks, or, for
        latency, that in which its kernels start now."""
        own = self._evaluators[0]
        best, best_s = self, own.value_s(devices)
        keys = [-np.array(upward_ranks(self.problem, devices[self.unit_of_kernel]))]
        if self.problem.objective is Objective.LATENCY:
            keys.append(own.state.start_s.copy())
        for key in keys:
            order = np.array(by_priority(self.problem.kernels, key), dtype=np.int64)
            other = replace(self, order=order)
            value_s = other._evaluators[0].value_s(devices)
            if value_s < best_s * (1 - 1e-12):
                best, best_s = other, value_s
        return best

    def _seconds(self, devices: Ints) -> Floats:
        def value(core: int, some: Ints, found_s: Floats) -> None:
            found_s[:] = _values_s(self._evaluators[core], some)

        return valued(
            self.executor,
            devices,
            num_visits(self.problem),
            lambda some: on_all_cores(value, some),
            lambda some: Call(seconds_of, (self.problem,), (self.order, some)),
        )

    def placement_of(self, devices: Ints) -> Placement:
        return self.problem.placement_of(devices, self.order.tolist())


@travels
def seconds_of(problem: Problem, order: Ints, devices: Ints) -> Floats:
    """Seconds of each placement (N, U) whose units are all where they may be, in one order."""
    return _values_s(Evaluator(problem, order), devices)


def _values_s(own: Evaluator, devices: Ints) -> Floats:
    from placement.learning.compiled.simulated import values_within
    from placement.simulator.compiled.moves import begin_each

    problem, found_s = own.problem, np.empty(len(devices))
    # Whether values in flight may be too many; weights are looked at in any case.
    if problem.memory_model == "live" and can_overflow(problem):
        workspace_bytes = problem.costs.workspace_bytes
        values_within(own.flat, own.state, devices, own.throughput, workspace_bytes, found_s)
    else:
        begin_each(own.flat, own.state, devices, own.throughput, found_s)
    return found_s


def simulated(problem: Problem, order: Ints | None = None, executor: Executor = HERE) -> Simulated:
    """The environment of a problem, by default in the order of ranks by mean costs, as in HEFT."""
    limits, size_bytes = limit_bytes(problem), unit_bytes(problem)
    allowed = problem.allowed & (size_bytes[:, None] <= limits)
    if order is None:
        order = np.array(by_priority(problem.kernels, -mean_ranks_s(problem)), dtype=np.int64)
    return Simulated(
        problem=problem,
        unit_of_kernel=problem.unit_of_kernel,
        unit_s=problem.unit_s,
        allowed=allowed,
        size_bytes=size_bytes,
        limit_bytes=limits,
        edges=Edges(*unit_edges(problem)),
        order=order,
        flat=flatten(problem),
        executor=executor,
    )


def mean_ranks_s(problem: Problem) -> Floats:
    """Seconds from the start of each kernel (K,) to the end along its longest path, by means over
    the devices that support it and over the links."""
    from placement.learning.compiled.paths import longest_paths

    arrays, costs, num = problem.kernels.arrays, problem.costs, problem.num_devices
    supported = np.isfinite(costs.compute_s)
    total_s = np.where(supported, costs.compute_s, 0.0).sum(axis=1)
    pairs = max(1, num * (num - 1))
    move_s = costs.latency_s.sum() / pairs + arrays.tensor_bytes * (costs.s_per_byte.sum() / pairs)
    ranks_s, _ = longest_paths(
        np.arange(len(problem.kernels.ops)),
        total_s / np.maximum(1, supported.sum(axis=1)),
        move_s,
        arrays.out_ptr,
        arrays.out_tensors,
        arrays.consumer_ptr,
        arrays.consumers,
    )
    return ranks_s
