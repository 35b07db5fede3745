"""Lower bounds that hold for every placement: no schedule of the problem can be faster."""

import numpy as np

from placement.bounds.memory_bound import beyond_memory_s
from placement.bounds.series_bound import series_bound_s
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.simulator.alike import alike_rows

# Entries of the cost table that improving the shares of the work may visit (some 50 ms), and the
# rounds that are enough where the table is small.
_MAX_VISITED = 20_000_000
_MAX_ROUNDS = 200
# Workloads with more kernels have no bound of their own: it would take longer than a second.
_MOST_KERNELS = {Objective.LATENCY: 1_000, Objective.THROUGHPUT: 20_000}
# Sums of the same times in another order differ by this much at most.
_ROUNDING = 1e-12


def lower_bound(problem: Problem, placement: Placement | None = None) -> float:
    """Seconds that no placement can beat, in the problem's objective.

    Throughput: the work shared as well as the devices' speeds allow, and the largest single unit.
    Latency: the shared work, the longest path through each unit with its transfers, and for
    placements within memory the longest path where accelerators cannot hold all weights
    (`memory_bound.py`) and blocks in series (`series_bound.py`); where ops run in calls (execution
    "call") the host runs any number at a time, so only the longest path without transfers holds.
    Small workloads have better bounds
    (`splits/bounds/`). The bound also holds for what a given placement does beyond the usual:
    several calls of an accelerator, or replicas.
    """
    calls_each = max((placement.calls or {}).values(), default=1) if placement else 1
    replicated = placement is not None and placement.replicas is not None
    if problem.objective is Objective.THROUGHPUT:
        bound_s = shared_work_s(problem)
        if not replicated:
            bound_s = max(bound_s, largest_unit_s(problem), split_bound_s(problem, calls_each))
        return bound_s
    if problem.execution is Execution.CALL:
        return max(longest_path_s(problem), split_bound_s(problem, calls_each))
    beyond_s = _rounded_down(beyond_memory_s(problem))
    series_s = _rounded_down(series_bound_s(problem))
    return max(shared_work_s(problem), ceft_through_units_s(problem), beyond_s, series_s)


def split_bound_s(problem: Problem, calls_each: int = 1) -> float:
    """The bound of a workload that is small enough for it and has alike accelerators, else 0."""
    if len(problem.kernels.ops) > _MOST_KERNELS[problem.objective]:
        return 0.0
    from placement.splits.bounds.chain import latency_bound_s
    from placement.splits.bounds.loads import throughput_bound_s
    from placement.splits.model.contract import class_units
    from placement.splits.model.instance import from_problem

    try:
        instance = from_problem(problem)
        if problem.objective is Objective.THROUGHPUT:
            return _rounded_down(throughput_bound_s(class_units(instance)))
        return _rounded_down(latency_bound_s(instance, calls_each))
    except ValueError:
        return 0.0


def largest_unit_s(problem: Problem) -> float:
    """The unit that takes longest even on its fastest allowed device."""
    return float(_unit_s(problem).min(axis=1, initial=np.inf).max(initial=0.0))


def longest_path_s(problem: Problem) -> float:
    """The longest path with each kernel on its fastest allowed device and free transfers."""
    allowed = problem.allowed[problem.unit_of_kernel]
    fastest = np.where(allowed, problem.costs.compute_s, np.inf).min(axis=1, initial=np.inf)
    longest: list[float] = fastest.tolist()
    for k, readers in reversed(list(enumerate(problem.kernels.successors))):
        longest[k] += max((longest[r] for r in readers), default=0.0)
    return max(longest, default=0.0)


def ceft_through_units_s(problem: Problem) -> float:
    """The longest over units of the least over devices of the longest path through the unit there.

    Paths count transfers as CEFT does; a unit's kernels share their device. At least CEFT's length,
    which is at least `longest_path_s`.
    """
    from placement.bounds.ceft import least_through_s

    return _rounded_down(float(least_through_s(problem).max(initial=0.0)))


def shared_work_s(problem: Problem) -> float:
    """Seconds in which the devices could do all work if units were divisible at will.

    That is the fractional makespan on unrelated machines, a linear program. By its dual, shares
    x_d >= 0 of sum 1 bound it by the sum over units of the least x_d * w(u, d), whatever the
    shares. They start at the devices' relative speeds and follow the dual's subgradient: devices
    that get too much work become dearer. Devices that compute on one are one. Equal devices have
    equal shares, which is never worse, for the dual is concave.
    """
    unit_s = np.full((problem.num_devices, problem.num_units), np.inf)
    np.minimum.at(unit_s, problem.machine.places.engine, _unit_s(problem).T)
    unit_s = unit_s[np.unique(problem.machine.places.engine)]
    classes = alike_rows(unit_s)
    unit_s, sizes = unit_s[classes.first], classes.sizes
    total = int(sizes.sum())
    even, shares = np.full(sizes.size, 1.0 / total), _speeds(unit_s, sizes)
    best = max(_dual_s(unit_s, sizes, each)[0] for each in (even, shares))
    num_rounds = min(_MAX_ROUNDS, max(4, _MAX_VISITED // max(1, unit_s.size)))
    for number in range(num_rounds if sizes.size > 1 else 0):
        value, loads = _dual_s(unit_s, sizes, shares)
        best = max(best, value)
        if not loads.max() > 0.0:
            break
        step = 0.5 / np.sqrt(1.0 + number)
        shares = shares * np.exp(step * (loads - (loads * sizes).sum() / total) / loads.max())
        shares /= (shares * sizes).sum()
    return _rounded_down(best)


def _rounded_down(seconds: float) -> float:
    """A bound must not exceed by a rounding error what a simulation adds up in another order."""
    return seconds * (1.0 - _ROUNDING)


def _unit_s(problem: Problem) -> Floats:
    return np.where(problem.allowed, problem.unit_s, np.inf)


def _speeds(unit_s: Floats, sizes: Ints) -> Floats:
    """Shares (C,) by speed: the mean over a device's units of least time / its own time."""
    least = unit_s.min(axis=0, initial=np.inf)
    runs = np.isfinite(unit_s) & (unit_s > 0.0)
    ratio = np.divide(least, unit_s, out=np.zeros_like(unit_s), where=runs)
    speeds = ratio.sum(axis=1) / np.maximum(1, runs.sum(axis=1)) + 1e-9
    shares: Floats = speeds / (speeds * sizes).sum()
    return shares


def _dual_s(unit_s: Floats, sizes: Ints, shares: Floats) -> tuple[float, Floats]:
    """The bound of these shares of classes of so many devices, and the seconds of work (C,) that
    each device gets under them."""
    cheapest = shares[0] * unit_s[0]
    chosen = np.zeros(cheapest.size, dtype=np.int64)
    for c in range(1, len(unit_s)):
        price = shares[c] * unit_s[c]
        chosen[price < cheapest] = c
        np.minimum(cheapest, price, out=cheapest)
    seconds = unit_s[chosen, np.arange(chosen.size)]
    loads = np.bincount(chosen, weights=seconds, minlength=len(unit_s)) / sizes
    return float(cheapest.sum()), np.asarray(loads, dtype=np.float64)
