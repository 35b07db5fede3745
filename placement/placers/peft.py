"""PEFT: predict earliest finish time, list scheduling with a look ahead to the end.

Arabnejad and Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic cost
table", IEEE TPDS 2014. The table holds the least time from the end of a task on each processor to
the end of the step, as if processors were always free. Kernels are taken by falling mean of their
row among those that are ready, and put where earliest finish plus table entry is least. Memory,
groups, links and calls as in HEFT here.
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
)
from placement.placers.base import Placer, Report, Step, quiet, setting
from placement.simulator.flat import Flat, flatten

if TYPE_CHECKING:
    from placement.placers._lists.partial_plan import Plan


WORDING = Wording("mean of table", "table", line=3, line_if_fixed=3, last_line=4)


@dataclass(frozen=True, kw_only=True)
class Peft(Placer):
    summary = "Like HEFT, but each choice of device looks ahead to the end of the step"
    paper = "Arabnejad, Barbosa: List scheduling by an optimistic cost table, IEEE TPDS 25(3), 2014"
    quick_up_to, tells_up_to = 1_000_000, 20_000
    pseudo_code = (
        "table[op, device] = the least time from its end there to the end of the step",
        "take the ready op with the highest mean of its row in the table",
        "    on each device: when would it finish, and what does the table say is left",
        "    put it where finish + table is least",
        "cut the plan into calls and predict the step",
    )

    insertion: bool = setting(True, "Use idle gaps between ops that are already scheduled")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return earliest_finish(problem, priorities(problem), report, insertion=self.insertion)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._lists.finish_steps import finish_steps, table_ahead
        from placement.placers._lists.partial_plan import ranked

        found = priorities(problem)

        def first(plan: "Plan") -> Sequence[Step]:
            why = "{op} has the highest mean: even at best, most is left after it."
            return [table_ahead(plan, found), ranked(plan, found, why, "mean of table", line=1)]

        return finish_steps(problem, found, first, WORDING, most, insertion=self.insertion)

    def step_of(self, problem: Problem, op: str) -> Step | None:
        from placement.placers._lists.finish_steps import finish_step_of

        return finish_step_of(problem, priorities(problem), WORDING, op, insertion=self.insertion)


def priorities(problem: Problem) -> Priorities:
    """Kernels by falling mean of their row; what is left after one is its entry in the table."""
    table = cost_table(flatten(problem))
    return by_falling(problem, table.mean(axis=1), table)


def cost_table(flat: Flat) -> Floats:
    """The optimistic cost table (K, D)."""
    from placement.placers._lists.ranks_compiled import optimistic_cost_table

    return optimistic_cost_table(flat, mean_costs(flat).move_s)


PLACER = Peft
