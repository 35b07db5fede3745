"""Linear DP (DPL): the best split into intervals of a linear order of the graph.

Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020.
For throughput the intervals are pipeline stages; for latency they are calls of accelerators, one
each, and runs of CPU ops. Several orders are tried.
"""

from dataclasses import dataclass

from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Progress, Report, quiet, setting
from placement.splits.model.instance import SplitInstance, from_problem

# Pairs of ops that all orders together may visit: some seconds.
MOST_PAIRS = 200_000_000


@dataclass(frozen=True, kw_only=True)
class LinearDp(Placer):
    summary = "The best contiguous split of the linearised graph, fast on large ones (workloads)"
    paper = "Tarnawski et al.: Efficient algorithms for device placement, NeurIPS 2020"
    objectives = tuple(Objective)
    executions = (Execution.CALL,)
    quick_up_to = 3_000

    orders: int = setting(9, "Linear orders to try; large graphs try fewer, at least one")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        from placement.splits.bounds.loads import throughput_bound_s
        from placement.splits.exact.linear import best_intervals
        from placement.splits.model.contract import class_units, contiguous_units
        from placement.splits.model.feasible import no_split, require_room
        from placement.splits.model.placements import placement_of

        instance = from_problem(problem)
        if problem.objective is Objective.LATENCY:
            return self._place_calls(problem, instance, report)
        free, units = class_units(instance), contiguous_units(instance)
        require_room(free)
        require_room(units)
        found = best_intervals(units, num_orders=self._num_orders(problem), seed=self.seed)
        if found is None:
            raise no_split(units, "contiguous split into intervals of a linear order")
        report(Progress(found.load_s, throughput_bound_s(free), 1, 1))
        return placement_of(problem, units.device_of_class(found.device_of_unit))

    def _place_calls(self, problem: Problem, instance: SplitInstance, report: Report) -> Placement:
        from placement.splits.annealing.latency import best_start
        from placement.splits.model.contract import call_units
        from placement.splits.model.feasible import no_split, require_room
        from placement.splits.model.placements import placement_of_calls

        units = call_units(instance)
        require_room(units)
        found = best_start(instance, num_orders=self._num_orders(problem), seed=self.seed)
        if found is None:
            raise no_split(units, "split into one call per accelerator")
        report(Progress(found.latency_s, 0.0, 1, 1))
        return placement_of_calls(problem, instance, found.slot_of_class, 1)

    def _num_orders(self, problem: Problem) -> int:
        """As many orders as take seconds; each takes time with the square of the graph's size."""
        return max(1, min(self.orders, MOST_PAIRS // max(1, len(problem.kernels.ops)) ** 2))


PLACER = LinearDp
