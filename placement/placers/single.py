"""Best single device: everything on the one device that finishes first.

The baseline that every other placement has to beat.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.violations import violations
from placement.placers._base import Placer, Progress, Report, quiet, setting
from placement.segments import make_schedule
from placement.simulate import step_time_s


@dataclass(frozen=True, kw_only=True)
class Single(Placer):
    summary = "Everything on the one device that finishes first (or on the device you name)"
    objectives = ("latency", "throughput")

    device: str = setting("", "Name of the device to use; empty tries each and takes the best")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        if self.device:
            problem.machine.device(self.device)
        best: tuple[bool, float, Placement] | None = None
        for d, device in enumerate(problem.machine.devices):
            if self.device not in ("", device.name):
                continue
            # Units that this device may not run (pins, support) go to their fastest device.
            elsewhere = np.where(problem.allowed, problem.unit_s, np.inf).argmin(axis=1)
            units = np.where(problem.allowed[:, d], d, elsewhere)
            placement = problem.placement_of(units)
            schedule = make_schedule(problem, placement)
            broken = bool(violations(problem, schedule))
            value = step_time_s(problem, schedule)
            if best is None or (broken, value) < best[:2]:
                best = (broken, value, placement)
            if not report(Progress(best_s=best[1], step=d + 1, of=problem.num_devices)):
                break
        assert best is not None
        return best[2]


PLACER = Single
