"""Round robin: units dealt to the devices in turn, in topological order.

A baseline with no idea of costs: it shows what crossings cost. It searches nothing, so where a
device cannot hold its part it says so.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.placers.base import Placer, Report, quiet, setting
from placement.search.feasible import require_memory


@dataclass(frozen=True, kw_only=True)
class RoundRobin(Placer):
    summary = "Ops dealt to the devices in turn: a baseline that ignores all costs"
    objectives = tuple(Objective)

    run_length: int = setting(
        1, "How many neighbours in a row stay on a device before the next", low=1
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        devices = []
        for unit in range(problem.num_units):
            allowed = np.flatnonzero(problem.allowed[unit])
            devices.append(int(allowed[(unit // self.run_length) % len(allowed)]))
        return require_memory(problem, problem.placement_of(devices))


PLACER = RoundRobin
