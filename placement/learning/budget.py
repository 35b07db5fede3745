"""What a search by samples may spend: seconds, or placements that it values."""

import math
import time
from dataclasses import dataclass, field

from placement.core.problem import Problem


@dataclass(frozen=True)
class Budget:
    """Ends after some seconds or evaluations, whichever comes first; 0 evaluations: no limit.

    With evaluations alone the answer depends on nothing but input and seed.
    """

    time_limit_s: float | None
    max_evaluations: int
    begun_s: float = field(default_factory=time.perf_counter)

    def spent(self, evaluations: int) -> float:
        """The share that is used up, at most 1."""
        share = evaluations / self.max_evaluations if self.max_evaluations else 0.0
        if self.time_limit_s is not None:
            passed_s = time.perf_counter() - self.begun_s
            share = max(share, passed_s / max(1e-9, self.time_limit_s))
        return min(1.0, share)

    def part(self, evaluations: int, among: int) -> "Budget":
        """An even part of what is left after so many evaluations."""
        left_s, left = None, 0
        if self.time_limit_s is not None:
            passed_s = time.perf_counter() - self.begun_s
            left_s = max(0.0, self.time_limit_s - passed_s) / among
        if self.max_evaluations:
            left = max(1, math.ceil((self.max_evaluations - evaluations) / among))
        return Budget(left_s, left)


# Visits of kernels and tensors that a search may make when nobody limits it, and its placements.
DEFAULT_VISITS = 40_000_000
FEWEST, MOST = 2_000, 100_000
PER_CHOICE = 100


def default_evaluations(problem: Problem, cost: int = 1) -> int:
    """Placements for a search that nobody limits: fewer on graphs where each costs more, and on
    those with little to choose; `cost` is how many times as much each takes as its value alone."""
    visits = len(problem.kernels.ops) + problem.kernels.arrays.consumers.size
    choices = int(problem.allowed.sum() - problem.allowed.any(axis=1).sum())
    most = max(FEWEST, min(MOST, DEFAULT_VISITS // max(1, visits)))
    return max(1, min(most, PER_CHOICE * choices) // cost)
