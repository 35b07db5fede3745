"""PEFT: predict earliest finish time, list scheduling with a look ahead to the end.

Arabnejad and Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic cost
table", IEEE TPDS 2014. The table holds the least time from the end of a task on each processor to
the end of the step, as if processors were always free. Kernels are taken by falling mean of their
row among those that are ready, and put where earliest finish plus table entry is least. Memory,
groups, links and calls as in HEFT here.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import earliest_finish, falling, mean_costs
from placement.placers.base import Placer, Report, quiet, setting
from placement.simulator.flat import Flat, flatten


@dataclass(frozen=True, kw_only=True)
class Peft(Placer):
    summary = "Like HEFT, but each choice of device looks ahead to the end of the step"
    paper = "Arabnejad, Barbosa: List scheduling by an optimistic cost table, IEEE TPDS 25(3), 2014"
    quick_up_to = 1_000_000

    insertion: bool = setting(True, "Use idle gaps between ops that are already scheduled")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        flat = flatten(problem)
        table = cost_table(flat)
        order = falling(problem, table.mean(axis=1))
        anywhere = np.full(order.size, -1, dtype=np.int64)
        return earliest_finish(
            problem, flat, report, order, table, anywhere, insertion=self.insertion
        )


def cost_table(flat: Flat) -> Floats:
    """The optimistic cost table (K, D)."""
    from placement.placers._lists.ranks_compiled import optimistic_cost_table

    return optimistic_cost_table(flat, mean_costs(flat).move_s)


PLACER = Peft
