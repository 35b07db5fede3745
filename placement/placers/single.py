"""Best single device: everything on the one device that finishes first.

The baseline that every other placement has to beat.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Progress, Report, quiet, setting
from placement.schedule.segments import make_schedule
from placement.search.feasible import require_memory
from placement.simulator.evaluator import Evaluator
from placement.simulator.throughput import value_s


@dataclass(frozen=True, kw_only=True)
class Single(Placer):
    summary = "Everything on the one device that finishes first (or on the device you name)"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    quick_up_to = 1_000_000

    device: str = setting("", "Name of the device to use; empty tries each and takes the best")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        if self.device:
            problem.machine.device(self.device)
        names = [d.name for d in problem.machine.devices]
        wanted = [d for d, name in enumerate(names) if self.device in ("", name)]
        values = {d: _value_s(problem, d) for d in wanted}
        refusal: ValueError | None = None
        for d in sorted(wanted, key=lambda d: (values[d], d)):
            try:
                placement = require_memory(problem, _everything_on(problem, d))
            except ValueError as error:
                refusal = refusal or error
                continue
            report(Progress(best_s=values[d], step=1, of=1))
            return placement
        assert refusal is not None
        raise refusal


def _value_s(problem: Problem, d: int) -> float:
    """Seconds of the objective with everything on one device, cut wherever it has to cross."""
    if problem.execution is Execution.CALL:
        return value_s(problem, make_schedule(problem, _everything_on(problem, d)))
    order = np.arange(len(problem.kernels.ops))
    return Evaluator(problem, order).value_s(units_on(problem, d))


def _everything_on(problem: Problem, d: int) -> Placement:
    return problem.placement_of(units_on(problem, d))


def units_on(problem: Problem, d: int) -> Ints:
    """All units on device d; those that it may not run (pins, support) on their fastest device."""
    elsewhere = np.where(problem.allowed, problem.unit_s, np.inf).argmin(axis=1)
    return np.where(problem.allowed[:, d], d, elsewhere)


PLACER = Single
