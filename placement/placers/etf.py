"""ETF: earliest task first.

Hwang, Chow, Anger and Lee, "Scheduling precedence graphs in systems with interprocessor
communication times", SIAM J. Computing 1989. At every step the pair of a ready kernel and a device
with the least start time is scheduled, ties by static level. Exact up to a thousand evaluations per
kernel; beyond (tens of thousands of ready kernels behind one link) the best of a few pairs is taken
at each step. Memory is looked at only when the result without limits breaks one.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import earliest_start
from placement.placers.base import Placer, Report, Step, quiet
from placement.search.feasible import SCALES

# Of the memory limits: none at first.
_SHARES = (math.inf, *SCALES)


@dataclass(frozen=True, kw_only=True)
class Etf(Placer):
    summary = "Whatever can start first, on the device where it can (earliest task first)"
    paper = (
        "Hwang, Chow, Anger, Lee: Scheduling with communication times, SIAM J. Comp. 18(2), 1989"
    )
    quick_up_to = 50_000
    tells_up_to = 300
    pseudo_code = (
        "level of an op = the longest way of mean times from its start to the end, nothing sent",
        "for each ready op and each device: when are its inputs there, when is it free",
        "put the op that can start first there; of several the one with the highest level",
        "cut the plan into calls and predict the step",
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return earliest_start(problem, report, scales=_SHARES)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._lists.start_steps import start_steps

        return start_steps(problem, _SHARES, most)


PLACER = Etf
