"""Choosing among placements by what they are worth as final schedules."""

import math
from collections.abc import Iterable

from placement.core.placement import Placement
from placement.core.problem import Execution, Problem
from placement.core.violations import violations
from placement.schedule.segments import cut_value_s, cuts_of, make_schedule
from placement.search.feasible import missing_bytes
from placement.simulator.evaluator import can_overflow
from placement.simulator.throughput import value_s


def final_s(problem: Problem, placement: Placement) -> float:
    """Seconds of the objective with segments merged, infinite where the placement breaks a rule."""
    if problem.execution is Execution.CALL:
        schedule = make_schedule(problem, placement)
        broken = violations(problem, schedule, placement.calls)
        return math.inf if broken else value_s(problem, schedule, placement.replicas)
    if missing_bytes(problem, placement).any():
        return math.inf
    if can_overflow(problem):
        return value_s(problem, make_schedule(problem, placement), placement.replicas)
    # Where memory cannot run short no schedule needs to be spelled out.
    return cut_value_s(problem, cuts_of(problem, placement)[1])


def best_of(problem: Problem, placements: Iterable[Placement]) -> Placement:
    """The placement with the least final value, the first of equals; with none that fits memory a
    ValueError."""
    best: tuple[float, Placement] | None = None
    for placement in placements:
        value_s = final_s(problem, placement)
        if value_s < (math.inf if best is None else best[0]):
            best = (value_s, placement)
    if best is None:
        raise ValueError(
            "No placement within memory was found; give the devices more memory, remove pins or"
            " use a smaller batch."
        )
    return best[1]
