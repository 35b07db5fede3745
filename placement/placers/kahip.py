"""KaHIP: graph partitioning by flows and localised local search, parts of equal work.

Sanders and Schulz, "Think locally, act globally: highly balanced graph partitioning", SEA 2013. A
baseline like METIS; it makes parts of equal work only, so slow devices are left out where they
would hold up the others.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers._partition import UnitGraph, library, partitioned
from placement.placers.base import Placer, Report, quiet, setting

# The preconfiguration "strong" of the library.
STRONG = 2


@dataclass(frozen=True, kw_only=True)
class Kahip(Placer):
    summary = "Parts of equal work with few transfers between them, by the partitioner KaHIP"
    paper = "Sanders, Schulz: Think locally, act globally, SEA 2013"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    needs = ("kahip",)

    imbalance: float = setting(0.03, "How much more than its share of the work a part may have")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        kahip = library("kahip")

        def partition(graph: UnitGraph, shares: list[float]) -> Ints:
            _, part = kahip.kaffpa(
                graph.weight.tolist(),
                graph.ptr.tolist(),
                graph.edge_weight.tolist(),
                graph.neighbour.tolist(),
                len(shares),
                self.imbalance,
                True,
                self.seed,
                STRONG,
            )
            return np.array(part, dtype=np.int64)

        return partitioned(problem, [partition], report)


PLACER = Kahip
