"""Round robin: units dealt to the devices in turn, in topological order.

A baseline with no idea of costs: it shows what crossings cost. It searches nothing, so where a
device cannot hold its part it says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.placers.base import Placer, Report, Step, quiet, setting
from placement.search.feasible import require_memory
from placement.search.step_parts import device_names, table, unit_called
from placement.search.steps import Kind

if TYPE_CHECKING:
    from placement.placers._steps.filling import Put


@dataclass(frozen=True, kw_only=True)
class RoundRobin(Placer):
    summary = "Ops dealt to the devices in turn: a baseline that ignores all costs"
    objectives = tuple(Objective)
    tells_up_to = 300
    pseudo_code = (
        "take the ops in the order of the model",
        "    put each on the next device in turn, of those that may run it",
        "predict the step",
    )

    run_length: int = setting(
        1, "How many neighbours in a row stay on a device before the next", low=1
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        devices = [turns[at] for turns, at in self._dealt(problem)]
        return require_memory(problem, problem.placement_of(devices))

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.filling import walk

        answer = self.place(problem)
        return walk(problem, self._puts(problem), (), answer, most, line=1, last_line=2)

    def _dealt(self, problem: Problem) -> Iterator[tuple[list[int], int]]:
        """For each unit the devices that may run it, and whose turn it is of these."""
        for unit in range(problem.num_units):
            allowed = np.flatnonzero(problem.allowed[unit]).tolist()
            yield allowed, (unit // self.run_length) % len(allowed)

    def _puts(self, problem: Problem) -> Iterator["Put"]:
        from placement.placers._steps.filling import Put

        names = device_names(problem)
        for unit, (turns, at) in enumerate(self._dealt(problem)):
            op, device = unit_called(problem, unit), names[turns[at]]
            why = f"It is the turn of {device}, so {op} goes there, whatever it takes."
            if len(turns) == 1:
                why = f"Only {device} may run {op}."
            rows = [(names[d], float(problem.unit_s[unit, d])) for d in turns]
            columns: dict[str, Kind] = {"device": "text", "own time": "seconds"}
            yield Put(unit, turns[at], why, (table(f"Turns for {op}", columns, rows, (at,)),))


PLACER = RoundRobin
