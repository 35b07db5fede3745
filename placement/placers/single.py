"""Best single device: everything on the one device that finishes first.

The baseline that every other placement has to beat.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import EXECUTIONS, Problem
from placement.placers._base import Placer, Progress, Report, quiet, setting
from placement.placers._feasible import require_memory
from placement.segments import make_schedule
from placement.simulate import step_time_s


@dataclass(frozen=True, kw_only=True)
class Single(Placer):
    summary = "Everything on the one device that finishes first (or on the device you name)"
    objectives = ("latency", "throughput")
    executions = EXECUTIONS
    quick_up_to = 1_000_000

    device: str = setting("", "Name of the device to use; empty tries each and takes the best")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        if self.device:
            problem.machine.device(self.device)
        best: tuple[float, Placement] | None = None
        refusal: ValueError | None = None
        for d, device in enumerate(problem.machine.devices):
            if self.device not in ("", device.name):
                continue
            try:
                placement = require_memory(problem, _everything_on(problem, d))
            except ValueError as error:
                refusal = refusal or error
                continue
            value = step_time_s(problem, make_schedule(problem, placement))
            if best is None or value < best[0]:
                best = (value, placement)
            if not report(Progress(best_s=best[0], step=d + 1, of=problem.num_devices)):
                break
        if best is None:
            assert refusal is not None
            raise refusal
        return best[1]


def _everything_on(problem: Problem, d: int) -> Placement:
    """All units on device d; those that it may not run (pins, support) on their fastest device."""
    elsewhere = np.where(problem.allowed, problem.unit_s, np.inf).argmin(axis=1)
    return problem.placement_of(np.where(problem.allowed[:, d], d, elsewhere))


PLACER = Single
