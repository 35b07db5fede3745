"""HEFT: heterogeneous earliest finish time, with insertion into gaps.

Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for
heterogeneous computing", IEEE TPDS 2002. Kernels are taken by falling upward rank and put where
they finish first. Beyond the paper: fused groups move as one, memory is respected, a tensor is sent
once per device over a first-in first-out link, and a crossing costs the call it starts.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import earliest_finish, falling, mean_costs, way_back_s
from placement.placers.base import Placer, Report, quiet, setting
from placement.simulator.flat import Flat, flatten


@dataclass(frozen=True, kw_only=True)
class Heft(Placer):
    summary = "Ops by urgency, each on the device where it finishes first (list scheduling)"
    paper = "Topcuoglu, Hariri, Wu: HEFT and CPOP, IEEE TPDS 13(3), 2002"
    quick_up_to = 1_000_000

    insertion: bool = setting(True, "Use idle gaps between ops that are already scheduled")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        flat = flatten(problem)
        order = falling(problem, mean_upward_ranks(flat))
        back_s = way_back_s(flat)
        anywhere = np.full(order.size, -1, dtype=np.int64)
        return earliest_finish(
            problem, flat, report, order, back_s, anywhere, insertion=self.insertion
        )


def mean_upward_ranks(flat: Flat) -> Floats:
    """rank(i) = mean w(i) + max over readers j of (mean c(i, j) + rank(j)), per kernel (K,)."""
    from placement.placers._lists.ranks_compiled import upward

    return upward(flat, *mean_costs(flat))


PLACER = Heft
