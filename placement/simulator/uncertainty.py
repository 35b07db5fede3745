"""How far a measured step may be from its prediction: a range that holds nine of ten.

Three things are added up. What kernels scatter: the interquartile ranges of the profile, of the
kernels on the critical path, as standard deviations that do not depend on each other (the root of
the sum of their squares, 1.645 of it). What a computer drifts between the profile and the step, and
what the rules leave out: `DRIFT` of the step, either way, and up to `BUSY_DRIFT` by the share of
the profile that others may have disturbed, for they do so now more and now less. And each
hand-over on the critical path, which takes up to `HAND_OVER_S` longer where a core that has slept
must be woken and finds its caches cold, and hardly ever less. `benchmarks/README.md` tells how many
measurements all three hold.
"""

import math

from placement.core.objective import Execution, Objective
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span

DRIFT, BUSY_DRIFT, HAND_OVER_S = 0.05, 0.1, 1.5e-5
# Of a normal distribution: standard deviations that hold nine of ten, and an interquartile range.
NINE_OF_TEN, QUARTILES = 1.645, 1.349
Range = tuple[float, float]


def range_of(
    problem: Problem, schedule: Schedule, path: tuple[Span, ...], step_s: float
) -> Range | None:
    """Seconds between which a step is measured in nine of ten cases, by its critical path.

    None where nothing was measured, and for throughput, whose busiest device no path explains.
    """
    costs = problem.costs
    measured = costs.origin == "measured" and costs.spread is not None
    if not measured or problem.objective is not Objective.LATENCY or not math.isfinite(step_s):
        return None
    if problem.execution is Execution.CALL:
        return None
    scattered_s = NINE_OF_TEN * math.sqrt(_variance(problem, schedule, path))
    handed_over = sum(span.kind == "transfer" and span.segment >= 0 for span in path)
    disturbed = costs.load.disturbed if costs.load else 1.0
    drift = DRIFT + disturbed * (BUSY_DRIFT - DRIFT)
    wider_s = step_s * (1 + drift) + scattered_s
    # As many times less as it may be more: times are never below zero.
    low_s = step_s**2 / wider_s if wider_s else 0.0
    return low_s, wider_s + handed_over * HAND_OVER_S


def _variance(problem: Problem, schedule: Schedule, path: tuple[Span, ...]) -> float:
    """Of the seconds of all kernels whose segments are on a path."""
    spread = problem.costs.spread
    assert spread is not None
    kernels, devices = problem.kernels.index, problem.machine.index
    total = 0.0
    for number in {span.segment for span in path if span.kind == "compute"}:
        segment = schedule.segments[number]
        rows, column = [kernels[name] for name in segment.kernels], devices[segment.device]
        deviation = spread[rows, column] * problem.costs.compute_s[rows, column] / QUARTILES
        total += float((deviation**2).sum())
    return total


def is_tie(a: float, a_range: Range | None, b: float, b_range: Range | None) -> bool:
    """Whether nobody can tell which of two predictions is less: one lies in the other's range."""
    return any(
        limits is not None and limits[0] <= value <= limits[1]
        for value, limits in ((a, b_range), (b, a_range))
    )
