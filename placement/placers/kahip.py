"""KaHIP: graph partitioning by flows and localised local search, parts of equal work.

Sanders and Schulz, "Think locally, act globally: highly balanced graph partitioning", SEA 2013. A
baseline like METIS; it makes parts of equal work only, so slow devices are left out where they
would hold up the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers._partition import Partition, UnitGraph, library, partitioned
from placement.placers.base import Placer, Report, Step, quiet, setting

# The preconfiguration "strong" of the library.
STRONG = 2


@dataclass(frozen=True, kw_only=True)
class Kahip(Placer):
    summary = "Parts of equal work with few transfers between them, by the partitioner KaHIP"
    paper = "Sanders, Schulz: Think locally, act globally, SEA 2013"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    needs = ("kahip",)
    pseudo_code = (
        "weigh ops by their least time, and pairs by the mean time to send what passes between",
        "for the fastest device, the two fastest, and so on: one part for each",
        "    KaHIP divides the graph into parts of equal work, so that light pairs are cut",
        "    ops that may not run there, or have no room, move elsewhere; predict the step",
        "answer the best of these placements",
    )

    imbalance: float = setting(0.03, "How much more than its share of the work a part may have")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return partitioned(problem, {"": self._partition()}, report)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.partition import walk

        return walk(problem, "KaHIP", {"": self._partition()}, most)

    def _partition(self) -> Partition:
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

        return partition


PLACER = Kahip
