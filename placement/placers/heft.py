"""HEFT: heterogeneous earliest finish time, with insertion into gaps.

Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for
heterogeneous computing", IEEE TPDS 2002. Kernels are taken by falling upward rank and put where
they finish first. Beyond the paper: fused groups move as one, memory is respected, a tensor is sent
once per device over a first-in first-out link, and a crossing costs the call it starts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.core.costs import Floats
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import (
    Priorities,
    Wording,
    by_falling,
    earliest_finish,
    mean_costs,
    way_back_s,
)
from placement.placers.base import Placer, Report, Step, quiet, setting
from placement.simulator.flat import Flat, flatten

if TYPE_CHECKING:
    from placement.placers._lists.partial_plan import Plan


WORDING = Wording("rank", "left", line=3, line_if_fixed=3, last_line=4)


@dataclass(frozen=True, kw_only=True)
class Heft(Placer):
    summary = "Ops by urgency, each on the device where it finishes first (list scheduling)"
    paper = "Topcuoglu, Hariri, Wu: HEFT and CPOP, IEEE TPDS 13(3), 2002"
    quick_up_to, tells_up_to = 1_000_000, 20_000
    pseudo_code = (
        "rank of an op = its mean time + the longest mean way from its end to the end of the step",
        "take the ops by falling rank",
        "    on each device: when are its inputs there, when is there a gap, when would it finish",
        "    put it on the device where it finishes first",
        "cut the plan into calls and predict the step",
    )

    insertion: bool = setting(True, "Use idle gaps between ops that are already scheduled")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return earliest_finish(problem, priorities(problem), report, insertion=self.insertion)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._lists.finish_steps import finish_steps
        from placement.placers._lists.partial_plan import ranked

        found = priorities(problem)

        def first(plan: "Plan") -> Sequence[Step]:
            why = "{op} has the highest rank: its way to the end of the step takes longest."
            return [ranked(plan, found, why, "rank")]

        return finish_steps(problem, found, first, WORDING, most, insertion=self.insertion)

    def step_of(self, problem: Problem, op: str) -> Step | None:
        from placement.placers._lists.finish_steps import finish_step_of

        return finish_step_of(problem, priorities(problem), WORDING, op, insertion=self.insertion)


def priorities(problem: Problem) -> Priorities:
    """Kernels by falling upward rank; what is left after one is its outputs' way to the host."""
    flat = flatten(problem)
    return by_falling(problem, mean_upward_ranks(flat), way_back_s(flat))


def mean_upward_ranks(flat: Flat) -> Floats:
    """rank(i) = mean w(i) + max over readers j of (mean c(i, j) + rank(j)), per kernel (K,)."""
    from placement.placers._lists.ranks_compiled import upward

    return upward(flat, *mean_costs(flat))


PLACER = Heft
