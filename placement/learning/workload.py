"""The environments of workload files: loads of a split for throughput, calls for latency.

The cost model is that of Tarnawski et al., NeurIPS 2020 (`placement/splits/`). Devices are the
accelerators, then the CPUs; for latency, where CPUs run nodes one by one, all CPUs are one device.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.objective import Objective
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.environment import Bools, Edges, Environment, on_all_cores, valued
from placement.parallel.calls import Call, travels
from placement.parallel.executor import HERE, Executor
from placement.splits.model.contract import Units, class_units
from placement.splits.model.feasible import require_room
from placement.splits.model.instance import from_problem
from placement.splits.model.placements import placement_of, placement_of_calls
from placement.splits.model.timing import Timing, timing_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Workload(Environment):
    """What both have in common: who values placements."""

    def _seconds(self, devices: Ints) -> Floats:
        return valued(
            self.executor,
            devices,
            len(self.problem.kernels.ops) + int(self.problem.kernels.arrays.consumers.size),
            self.seconds_here,
            lambda some: Call(seconds_of, (self.problem,), (some,)),
        )

    @abstractmethod
    def seconds_here(self, devices: Ints) -> Floats:
        """The same on the cores of this computer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Loads(Workload):
    """Units of a split; a placement is worth the time between samples."""

    units: Units

    def seconds_here(self, devices: Ints) -> Floats:
        from placement.learning.compiled.workload import largest_loads

        rules = self.units.instance.rules
        if rules.gpipe or rules.has_clusters:
            from placement.splits.model.priced_compiled import samples_s

            priced = self.units.priced
            return on_all_cores(lambda _, some, found_s: samples_s(some, priced, found_s), devices)
        arrays, overlap = self.units.arrays, rules.overlap
        return on_all_cores(
            lambda _, some, found_s: largest_loads(some, arrays, overlap, found_s), devices
        )

    def placement_of(self, devices: Ints) -> Placement:
        return placement_of(self.problem, self.units.device_of_class(devices))


@dataclass(frozen=True, eq=False, kw_only=True)
class Calls(Workload):
    """Units of subgraph calls, one per accelerator; what waits for itself takes forever."""

    timing: Timing

    def seconds_here(self, devices: Ints) -> Floats:
        from placement.learning.compiled.workload import samples_s

        units, nodes = self.timing.units, self.timing.nodes
        num_slots = units.instance.num_accelerators
        slots = np.where(devices < num_slots, devices, -1)
        return on_all_cores(
            lambda _, some, found_s: samples_s(some, units.arrays, nodes, num_slots, found_s), slots
        )

    def placement_of(self, devices: Ints) -> Placement:
        units = self.timing.units
        slot = np.where(devices < units.instance.num_accelerators, devices, -1)
        of_class = units.device_of_class(slot)
        return placement_of_calls(self.problem, units.instance, of_class, 1)


@travels
def seconds_of(problem: Problem, devices: Ints) -> Floats:
    """Seconds of each placement (N, U) whose units are all where they may be."""
    return _kept(problem).seconds_here(devices)


@lru_cache(maxsize=2)
def _kept(problem: Problem) -> Workload:
    return workload(problem)


def workload(problem: Problem, executor: Executor = HERE) -> Workload:
    """The environment of a workload; ValueError for any other problem, and where memory is short
    in all."""
    instance = from_problem(problem)
    k, num_cpus = instance.num_accelerators, instance.num_cpus
    if problem.objective is Objective.THROUGHPUT:
        units = class_units(instance)
        require_room(units)
        return _made(Loads, executor, problem, units, units.allowed(), num_cpus, units=units)
    timing = timing_of(instance)
    require_room(timing.units)
    allowed = timing.units.allowed()
    if num_cpus:
        on_cpu = allowed[:, k:].any(axis=1, keepdims=True)
        allowed = np.concatenate([allowed[:, :k], on_cpu], axis=1)
    return _made(Calls, executor, problem, timing.units, allowed, min(1, num_cpus), timing=timing)


def _made(
    kind: Callable[..., Workload],
    executor: Executor,
    problem: Problem,
    split: Units,
    allowed: Bools,
    num_cpus: int,
    **own: Units | Timing,
) -> Workload:
    """What every environment has, from the units of a split, and what this kind has of its own."""
    instance = split.instance
    num_each = [instance.num_accelerators, num_cpus]
    limits = np.repeat([float(instance.limit_bytes), np.inf], num_each)
    return kind(
        problem=problem,
        unit_of_kernel=split.unit_of_class[instance.class_of],
        unit_s=np.repeat(np.stack([split.acc_s, split.cpu_s], axis=1), num_each, axis=1),
        allowed=allowed & (split.size_bytes[:, None] <= limits),
        size_bytes=split.size_bytes,
        limit_bytes=limits,
        edges=_edges(problem, split),
        executor=executor,
        **own,
    )


def _edges(problem: Problem, units: Units) -> Edges:
    arrays = problem.kernels.arrays
    tensor_of = np.repeat(np.arange(arrays.producer.size), np.diff(arrays.consumer_ptr))
    made = arrays.producer[tensor_of] >= 0
    unit_of = units.unit_of_class[units.instance.class_of]
    every = Edges(
        arrays.producer[tensor_of[made]],
        arrays.consumers[made],
        arrays.tensor_bytes[tensor_of[made]].astype(np.float64),
    )
    return every.between(unit_of)
