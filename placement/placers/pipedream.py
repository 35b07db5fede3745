"""PipeDream's optimiser: a chain of layers cut into stages of even load.

Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019. The
graph is taken as a chain in topological order; A(j, m), the least maximal load of the first j
layers on m devices, is the least over i of max(A(i, m - 1), load of layers i to j). What crosses a
cut of the chain is sent through all stages between, as in a chain of layers, so that branches count
more than they cost. Stages are not replicated here (`replicate` does that). Of phases that count
apart, and of clusters, it knows nothing; its stages are valued with them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Report, Step, quiet
from placement.placers.ideals_dp import contiguous
from placement.splits.exact.table import Chain
from placement.splits.model.contract import Units


@dataclass(frozen=True, kw_only=True)
class PipeDream(Placer):
    summary = "Pipeline stages of a chain of layers by PipeDream's optimiser (workload files)"
    paper = "Narayanan et al.: PipeDream, SOSP 2019"
    objectives = (Objective.THROUGHPUT,)
    executions = (Execution.CALL,)
    quick_up_to = 3_000
    pseudo_code = (
        "take the graph as a chain of layers, in the order of the model",
        "best[first j layers][m devices] = the least largest load of all ways to cut them",
        "    the last stage is layers i to j on one device; try all i",
        "from the last layer back: where did the best last stage begin?",
        "answer these stages",
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return self._pipeline(problem, report)[1]

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.ideals import LAYERS, of_workload

        return of_workload(problem, *self._pipeline(problem, report), most, LAYERS)

    def _pipeline(self, problem: Problem, report: Report) -> tuple[Chain, Placement]:
        from placement.splits.exact.chain import chain_of_layers

        def search(units: Units) -> tuple[Chain | None, str]:
            return chain_of_layers(units), ""

        what = "division of the chain of layers into stages"
        return contiguous(problem, report, search, what)


PLACER = PipeDream
