"""Linear DP (DPL): the best split into intervals of a linear order of the graph.

Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020.
For throughput the intervals are pipeline stages; for latency they are calls of accelerators, one
each, and runs of CPU ops. Several orders are tried. Of models, whose tensors cross links, the
intervals are stages for both (`splits/stages/`); for latency these run in turn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers._stages import found_stages, place_stages
from placement.placers.base import Placer, Progress, Report, Step, quiet, setting
from placement.placers.ideals_dp import contiguous
from placement.splits.exact.table import Chain
from placement.splits.model.contract import Units
from placement.splits.model.instance import from_problem
from placement.splits.stages.search import Evaluate, Split, best_of_orders

# Pairs of ops that all orders together may visit: some seconds.
MOST_PAIRS = 200_000_000


@dataclass(frozen=True, kw_only=True)
class LinearDp(Placer):
    summary = "The best contiguous split of the linearised graph, fast on large ones"
    paper = "Tarnawski et al.: Efficient algorithms for device placement, NeurIPS 2020"
    objectives = tuple(Objective)
    executions = (Execution.CALL, Execution.SEGMENT)
    quick_up_to = 3_000
    quick_models_up_to = 12_000

    pseudo_code = (
        "put the ops in a row: as listed, depth first from both ends, and by chance",
        "best[first ops of the row][devices] = the least value of all ways to cut them into stages",
        "    the last stage is a piece of the row; try all its beginnings",
        "from the end of the row back: where did the best last stage begin?",
        "of all rows answer the best, by exact transfers",
    )

    orders: int = setting(9, "Linear orders to try; large graphs try fewer, at least one")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        if problem.execution is Execution.SEGMENT:
            return place_stages(problem, report, partial(self._stages, problem, report))
        if problem.objective is Objective.LATENCY:
            return self._place_calls(problem, report)
        return self._pipeline(problem, report)[1]

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.ideals import ORDERS, of_calls, of_split, of_workload

        if problem.execution is Execution.SEGMENT:
            search = partial(self._stages, problem, report)
            return of_split(problem, *found_stages(problem, report, search), most, ORDERS)
        if problem.objective is Objective.LATENCY:
            return of_calls(problem, self._place_calls(problem, report), most)
        return of_workload(problem, *self._pipeline(problem, report), most, ORDERS)

    def _pipeline(self, problem: Problem, report: Report) -> tuple[Chain, Placement]:
        from placement.splits.exact.linear import best_intervals

        orders = self._num_orders(problem)
        what = "contiguous split into intervals of a linear order"

        def search(units: Units) -> tuple[Chain | None, str]:
            return best_intervals(units, num_orders=orders, seed=self.seed), ""

        return contiguous(problem, report, search, what)

    def _stages(
        self, problem: Problem, report: Report, evaluate: Evaluate, memory_share: float
    ) -> Split | None:
        return best_of_orders(
            problem,
            evaluate,
            num_orders=self.orders,
            seed=self.seed,
            memory_share=memory_share,
            more=lambda best_s: report(Progress(best_s)),
        )

    def _place_calls(self, problem: Problem, report: Report) -> Placement:
        from placement.splits.annealing.latency import best_start
        from placement.splits.model.contract import call_units
        from placement.splits.model.feasible import no_split, require_room
        from placement.splits.model.placements import placement_of_calls

        instance = from_problem(problem)
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
