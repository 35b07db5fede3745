"""Values of many placements of one problem in one order of execution, and of moves between them."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from placement.core.costs import Floats
from placement.core.events import never
from placement.core.graph import Ints
from placement.core.problem import Objective, Problem
from placement.parallel.calls import Call, travels
from placement.parallel.executor import HERE, Executor, Job, Stop, num_cores
from placement.simulator.flat import Flat, flatten
from placement.simulator.run_state import RunState, run_state
from placement.simulator.throughput import value_of_run_s


class Evaluator:
    """The simulator for searches: units on devices in, seconds of the objective out.

    Placements are cut at every crossing and not merged, so a value is never below that of the final
    schedule. `value_s` makes its placement the base from which moves are tried, unless there are to
    be no `trials`.
    """

    def __init__(
        self, problem: Problem, order: Ints, flat: Flat | None = None, *, trials: bool = True
    ) -> None:
        from placement.simulator.compiled.links import find_tails

        self.problem = problem
        self.flat = flatten(problem) if flat is None else flat
        self.throughput = problem.objective is Objective.THROUGHPUT
        self.state: RunState = run_state(self.flat, order, trials=trials)
        self._devices = np.zeros(problem.num_units, dtype=np.int64)
        find_tails(self.flat, self.state.tail_s)

    def value_s(self, device_of_unit: Ints) -> float:
        """Seconds of one placement, which becomes the base of moves."""
        from placement.simulator.compiled.moves import begin

        units = self._devices = np.array(device_of_unit, dtype=np.int64)
        step_s = float(begin(self.flat, self.state, units))
        return value_of_run_s(self.problem, self.flat, self.state, step_s)

    def energy_s(self) -> float:
        """What a search minimises at the base: the seconds of a step, or a power mean of all loads
        with few calls, because the largest alone has no slope."""
        from placement.simulator.compiled.anneal import energy

        return float(energy(self.flat, self.state, 0, True, np.inf, self.throughput))

    def after_move_s(self, units: Ints, dest: int, limit_s: float = np.inf) -> float:
        """Seconds with these units moved; the base stays.

        Units that may not run there stay where they are. Latency may answer infinite as soon as it
        is sure to be above the limit.
        """
        from placement.simulator.compiled.moves import try_group

        if not self.throughput:
            return float(try_group(self.flat, self.state, units, dest, limit_s, False))
        base = self._devices
        devices = base.copy()
        devices[units[self.flat.allowed[units, dest]]] = dest
        value_s = self.value_s(devices)
        self.value_s(base)
        return value_s

    def critical_units(self) -> Ints:
        """Units of the base's critical path, the last first; none for throughput."""
        from placement.simulator.compiled.anneal import trace_critical

        found = np.zeros(self.state.order.size, dtype=np.int64)
        if self.throughput:
            return found[:0]
        return found[: trace_critical(self.flat, self.state, found, 0)]

    def peak_bytes(self) -> Floats:
        """Most bytes on each device (D,) under the base placement."""
        from placement.simulator.compiled.memory import find_peaks

        found: Floats = find_peaks(self.flat, self.state, self.problem.costs.workspace_bytes)
        return found

    def fits(self) -> bool:
        """Whether the base placement stays within every device's memory."""
        return bool((self.peak_bytes() <= self.flat.limit_bytes).all())


def values_s(problem: Problem, order: Ints, placements: Ints, executor: Executor = HERE) -> Floats:
    """Seconds of each placement (N, U) in one order, over all cores."""
    placements = np.array(placements, dtype=np.int64)

    def here(some: Ints, stop: Stop) -> Floats:
        num = max(1, min(len(some), num_cores()))
        with ThreadPoolExecutor(num) as pool:
            return np.concatenate([*pool.map(own, np.array_split(some, num))])

    own = partial(values_in, problem, order)
    num_parts = min(executor.num_parts(len(placements) * num_visits(problem)), len(placements))
    if num_parts < 2:
        flatten(problem)
        return here(placements, never)
    jobs = [
        Job(here=partial(here, some), away=partial(Call, values_in, (problem,), (order, some)))
        for some in np.array_split(placements, num_parts)
    ]
    return np.concatenate(executor.each(jobs))


@travels
def values_in(problem: Problem, order: Ints, placements: Ints) -> Floats:
    """The same on one core."""
    from placement.simulator.compiled.moves import begin_each

    own, found_s = Evaluator(problem, order, trials=False), np.empty(len(placements))
    begin_each(own.flat, own.state, placements, own.throughput, found_s)
    return found_s


def num_visits(problem: Problem) -> int:
    """Kernels and tensors that the simulation of a placement looks at, about."""
    return len(problem.kernels.ops) + int(problem.kernels.arrays.consumers.size)


def has_requests(problem: Problem) -> bool:
    """Whether requests in flight have state of their own, as many as a schedule has stages."""
    return problem.is_pipelined and bool(problem.kernels.arrays.state_bytes.any())


def can_overflow(problem: Problem) -> bool:
    """Whether any placement could exceed a device's memory: cheap, and mostly False."""
    limits = [d.memory_bytes for d in problem.machine.devices if d.memory_bytes is not None]
    arrays = problem.kernels.arrays
    if limits and has_requests(problem):
        return True
    most = float(arrays.resident_bytes.sum())
    if problem.memory_model == "live":
        # Each device that computes in a memory may have a copy there.
        copies = int(np.bincount(problem.machine.places.values).max())
        most += copies * float(arrays.tensor_bytes.sum())
        most += float(problem.costs.workspace_bytes.max(initial=0))
    return bool(limits) and most > min(limits)
