"""Pipeline with replicated stages: the best contiguous split whose parts may share accelerators.

The extension for replication (data parallelism) of Tarnawski et al., "Efficient algorithms for
device placement of DNN graph operators", NeurIPS 2020; in PipeDream (SOSP 2019) too. A part on r
accelerators is held by each of them, whole, and they take samples in turn: the time between
samples is its load (compute and transfers) over r, as each transfer is made for each sample by the
accelerator that has it. Keeping the weights of replicas alike costs what the problem's rules say
(`sync_bytes_per_ms`), else nothing. A part with a pinned op, and what is on a CPU, is not
replicated, and nothing is where accelerators are in clusters.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Report, Step, quiet, setting
from placement.placers.ideals_dp import pipeline
from placement.splits.exact.table import Chain
from placement.splits.model.instance import device_columns


@dataclass(frozen=True, kw_only=True)
class Replicate(Placer):
    summary = "Pipeline stages, exactly, where several accelerators may share one (workload files)"
    paper = "Tarnawski et al.: Efficient algorithms for device placement, NeurIPS 2020"
    objectives = (Objective.THROUGHPUT,)
    executions = (Execution.CALL,)
    exact = True
    pseudo_code = (
        "list the ideals: sets of ops that need nothing from outside",
        "best[ideal][devices] = the least largest load of all ways to divide the ideal among them",
        "    its last stage is what it has more than some smaller ideal, on some accelerators",
        "from the whole graph back: which smaller ideal did the best value come from?",
        "answer these stages, each with its replicas",
    )

    replicas: int = setting(0, "Accelerators that may share a stage at most; 0: all of them", low=0)
    max_ideals: int = setting(
        100_000, "Graphs with more downward-closed sets are linearised and solved nearly as well"
    )
    orders: int = setting(9, "Linear orders to try where the graph has too many such sets")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return self._pipeline(problem, report)[1]

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.ideals import of_workload

        return of_workload(problem, *self._pipeline(problem, report), most)

    def _pipeline(self, problem: Problem, report: Report) -> tuple[Chain, Placement]:
        accelerators = len(device_columns(problem).accelerators)
        if problem.rules.has_clusters:
            raise ValueError(
                "In which clusters replicas are is not known to 'replicate'; leave --cluster-size"
                " out, or place with 'ideals_dp'."
            )
        found, placement = pipeline(
            problem,
            report,
            max_ideals=self.max_ideals,
            orders=self.orders,
            seed=self.seed,
            note="the best contiguous split with replicas",
            most_replicas=max(1, min(self.replicas or accelerators, accelerators)),
        )
        return found, replace(placement, replicas=_named(problem, found))


def _named(problem: Problem, found: Chain) -> dict[str, int]:
    """Replicas by name of the device that stands for them, for devices that have any part."""
    columns = device_columns(problem)
    used = np.unique(found.device_of_unit).tolist()
    return {problem.machine.devices[columns.all[d]].name: int(found.replicas[d]) for d in used}


PLACER = Replicate
