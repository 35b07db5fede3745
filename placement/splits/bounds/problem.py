"""Bounds for workload problems, whichever placer asks."""

from placement.core.problem import Objective, Problem
from placement.splits.bounds.chain import latency_bound_s
from placement.splits.bounds.loads import throughput_bound_s
from placement.splits.model.contract import class_units
from placement.splits.model.instance import from_problem


def lower_bound_s(problem: Problem, *, calls_each: int = 1, known_s: float = float("inf")) -> float:
    """Seconds that no placement of a problem with execution "call" can be below.

    For latency accelerators make up to `calls_each` calls, and `known_s` may be the latency of a
    known placement, which spares work: the bound is then at most that.
    """
    instance = from_problem(problem)
    if problem.objective is Objective.THROUGHPUT:
        return throughput_bound_s(class_units(instance))
    return latency_bound_s(instance, calls_each, known_s)
