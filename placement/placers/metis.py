"""METIS: multilevel graph partitioning, parts balanced by the devices' speeds.

Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
SIAM J. Sci. Comput. 1998; by repeated bisection and for all parts at once, whichever is better. A
baseline: it balances work and cuts few transfers, but knows nothing of the order of execution.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers._partition import Partition, UnitGraph, library, partitioned
from placement.placers.base import Placer, Report, Step, quiet


@dataclass(frozen=True, kw_only=True)
class Metis(Placer):
    summary = "Balanced parts with few transfers between them, by the graph partitioner METIS"
    paper = "Karypis, Kumar: A fast and high quality multilevel scheme, SISC 20, 1998"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    needs = ("pymetis",)
    quick_up_to = 3_000
    pseudo_code = (
        "weigh ops by their least time, and pairs by the mean time to send what passes between",
        "for the fastest device, the two fastest, and so on: one part for each",
        "    METIS divides the graph, parts by the speeds of devices, so that light pairs are cut",
        "    ops that may not run there, or have no room, move elsewhere; predict the step",
        "answer the best of these placements",
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return partitioned(problem, self._partitions(), report)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.partition import walk

        return walk(problem, "METIS", self._partitions(), most)

    def _partitions(self) -> dict[str, Partition]:
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

        return {
            "by halves of halves": partial(partition, True),
            "all parts at once": partial(partition, False),
        }


def _ints(values: Ints) -> list[int]:
    numbers: list[int] = values.tolist()
    return numbers


PLACER = Metis
