"""Ideals DP: the optimal contiguous split for throughput, by dynamic programming over ideals.

Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020;
here with a rising threshold on the load, which leaves few pairs of ideals (`splits/ideals.py`). A
graph with too many ideals is linearised.
"""

from dataclasses import dataclass

from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Progress, Report, quiet, setting


@dataclass(frozen=True, kw_only=True)
class IdealsDp(Placer):
    summary = "The best contiguous split into pipeline stages, exactly (workload files)"
    paper = "Tarnawski et al.: Efficient algorithms for device placement, NeurIPS 2020"
    objectives = (Objective.THROUGHPUT,)
    executions = (Execution.CALL,)
    exact = True
    quick_up_to = 1_000

    max_ideals: int = setting(
        100_000, "Graphs with more downward-closed sets are linearised and solved nearly as well"
    )
    orders: int = setting(9, "Linear orders to try where the graph has too many such sets")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        from placement.splits.bounds.loads import throughput_bound_s
        from placement.splits.exact.ideals import TooManyIdeals, best_chain
        from placement.splits.exact.linear import best_intervals
        from placement.splits.model.contract import class_units, contiguous_units
        from placement.splits.model.feasible import no_split, require_room
        from placement.splits.model.instance import from_problem
        from placement.splits.model.placements import placement_of

        instance = from_problem(problem)
        free, units = class_units(instance), contiguous_units(instance)
        require_room(free)
        require_room(units)
        note = "the best contiguous split"
        try:
            found = best_chain(units, max_ideals=self.max_ideals)
        except TooManyIdeals as error:
            note = f"{error} This split is the best into intervals of {self.orders} linear orders"
            found = best_intervals(units, num_orders=self.orders, seed=self.seed)
        if found is None:
            raise no_split(units, "contiguous split")
        report(Progress(found.load_s, throughput_bound_s(free), 1, 1, note))
        return placement_of(problem, units.device_of_class(found.device_of_unit))


PLACER = IdealsDp
