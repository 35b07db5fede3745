"""METIS: multilevel graph partitioning, parts balanced by the devices' speeds.

Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
SIAM J. Sci. Comput. 1998; by repeated bisection and for all parts at once, whichever is better. A
baseline: it balances work and cuts few transfers, but knows nothing of the order of execution.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers._partition import UnitGraph, library, partitioned
from placement.placers.base import Placer, Report, quiet


@dataclass(frozen=True, kw_only=True)
class Metis(Placer):
    summary = "Balanced parts with few transfers between them, by the graph partitioner METIS"
    paper = "Karypis, Kumar: A fast and high quality multilevel scheme, SISC 20, 1998"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    needs = ("pymetis",)

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        pymetis = library("pymetis")

        def partition(recursive: bool, graph: UnitGraph, shares: list[float]) -> Ints:
            _, part = pymetis.part_graph(
                len(shares),
                pymetis.CSRAdjacency(_ints(graph.ptr), _ints(graph.neighbour)),
                vweights=_ints(graph.weight),
                eweights=_ints(graph.edge_weight),
                tpwgts=shares,
                recursive=recursive,
                options=pymetis.Options(seed=self.seed),
            )
            return np.array(part, dtype=np.int64)

        return partitioned(problem, [partial(partition, True), partial(partition, False)], report)


def _ints(values: Ints) -> list[int]:
    numbers: list[int] = values.tolist()
    return numbers


PLACER = Metis
