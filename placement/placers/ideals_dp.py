"""Ideals DP: the optimal contiguous split for throughput, by dynamic programming over ideals.

Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020;
here with a rising threshold on the load, which leaves few pairs of ideals
(`splits/exact/ideals.py`). A workload with too many ideals is linearised. Models, whose tensors
cross links, are divided by `splits/stages/`, where the ops of graphs with too many are joined.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from placement.core.formatting import gap, percent
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers._stages import found_stages, place_stages
from placement.placers.base import Placer, Progress, Report, Step, quiet, setting
from placement.splits.stages.search import Evaluate, Split, best_split

if TYPE_CHECKING:
    from placement.splits.exact.table import Chain
    from placement.splits.model.contract import Units


@dataclass(frozen=True, kw_only=True)
class IdealsDp(Placer):
    summary = "The best contiguous split into pipeline stages, exactly"
    paper = "Tarnawski et al.: Efficient algorithms for device placement, NeurIPS 2020"
    objectives = (Objective.THROUGHPUT,)
    executions = (Execution.CALL, Execution.SEGMENT)
    exact = True
    quick_up_to = 1_000
    quick_models_up_to = 6_000
    pseudo_code = (
        "list the ideals: sets of ops that need nothing from outside",
        "best[ideal][devices] = the least largest load of all ways to divide the ideal among them",
        "    its last stage is what it has more than some smaller ideal; try all of these",
        "from the whole graph back: which smaller ideal did the best value come from?",
        "predict what is sent between the stages exactly, and answer the best",
    )

    max_ideals: int = setting(
        100_000, "Workloads with more downward-closed sets are linearised and solved nearly as well"
    )
    max_model_ideals: int = setting(
        6_000, "Models with more downward-closed sets have light ops joined to others first", low=2
    )
    orders: int = setting(
        9, "Linear orders to try where there are too many such sets; of models first"
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        if problem.execution is Execution.SEGMENT:
            return place_stages(problem, report, partial(self._stages, problem, report))
        return self._pipeline(problem, report)[1]

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.ideals import of_split, of_workload

        if problem.execution is Execution.SEGMENT:
            search = partial(self._stages, problem, report)
            return of_split(problem, *found_stages(problem, report, search), most)
        return of_workload(problem, *self._pipeline(problem, report), most)

    def _pipeline(self, problem: Problem, report: Report) -> tuple["Chain", Placement]:
        return pipeline(
            problem,
            report,
            max_ideals=self.max_ideals,
            orders=self.orders,
            seed=self.seed,
            note="the best contiguous split",
        )

    def _stages(
        self, problem: Problem, report: Report, evaluate: Evaluate, memory_share: float
    ) -> Split | None:
        return best_split(
            problem,
            evaluate,
            most_ideals=self.max_model_ideals,
            num_orders=self.orders,
            seed=self.seed,
            memory_share=memory_share,
            more=lambda best_s: report(Progress(best_s)),
        )


def pipeline(
    problem: Problem,
    report: Report,
    *,
    max_ideals: int,
    orders: int,
    seed: int,
    note: str,
    most_replicas: int = 1,
) -> tuple["Chain", Placement]:
    """The best contiguous split, as it was found and as a placement; ValueError without any."""
    from placement.splits.exact.ideals import TooManyIdeals, best_chain
    from placement.splits.exact.linear import best_intervals

    def search(units: "Units") -> tuple["Chain | None", str]:
        replicas = {"most_replicas": most_replicas}
        try:
            found = best_chain(units, max_ideals=max_ideals, **replicas)
            return found, note if found is None else _proven(found, note)
        except TooManyIdeals as error:
            why = f"{error} This split is the best into intervals of {orders} linear orders"
            return best_intervals(units, num_orders=orders, seed=seed, **replicas), why

    return contiguous(problem, report, search, "contiguous split", most_replicas)


def _proven(found: "Chain", note: str) -> str:
    """What is known of a chain: the best, or how far from the best it can be."""
    if found.load_s <= found.bound_s:
        return note
    return f"at most {percent(gap(found.load_s, found.bound_s) or 0.0)} above {note}"


def contiguous(
    problem: Problem,
    report: Report,
    search: "Callable[[Units], tuple[Chain | None, str]]",
    what: str,
    most_replicas: int = 1,
) -> tuple["Chain", Placement]:
    """What a search in contiguous units finds and notes; ValueError where it finds no `what`."""
    from placement.splits.bounds.loads import throughput_bound_s
    from placement.splits.model.contract import class_units, contiguous_units
    from placement.splits.model.feasible import no_split, require_room
    from placement.splits.model.instance import from_problem
    from placement.splits.model.placements import placement_of

    instance = from_problem(problem)
    free, units = class_units(instance), contiguous_units(instance)
    require_room(free)
    require_room(units)
    found, note = search(units)
    if found is None:
        raise no_split(units, what)
    report(Progress(found.load_s, throughput_bound_s(free, most_replicas), 1, 1, note))
    return found, placement_of(problem, units.device_of_class(found.device_of_unit))


PLACER = IdealsDp
