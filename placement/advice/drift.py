"""Drift of a computer: what its devices take for the model alone, now and when it was measured.

On a quiet computer, too, the same program takes 2.1 ms now and 2.5 a minute later, because others
leave it less of the last cache or a lower clock, and a profile is of the minute in which it was
measured. A run that times the unplaced model on each device, as the profile did, knows by how much,
and so tells an error of the prediction from a drift of the computer. What refinements have learned
since plays no part: these are two measurements of the same program.

One thing that changes no device alone is where a host puts the cores of a virtual computer. It
shows in the core-to-core latency: some 40 ns where they share a cache, a multiple of that where
they do not, half of it or less where they are threads of one core.
"""

import statistics
from collections.abc import Mapping

from placement.core.load import MOVED
from placement.core.problem import Problem
from placement.core.profile import Profile
from placement.core.schedule import Schedule


def drift(profile: Profile | None, alone_s: Mapping[str, float | None]) -> float | None:
    """How many times as long the model alone takes now as when it was measured; 1.1 is slower.

    `alone_s` has seconds of a step by device, None where the model does not fit. The median over
    devices; None where nothing can be compared.
    """
    if profile is None:
        return None
    found = [
        now_s / then_s
        for device, then_s in zip(profile.machine.devices, profile.step_s, strict=True)
        if then_s and (now_s := alone_s.get(device.name))
    ]
    return statistics.median(found) if found else None


def profiled_core_to_core_s(problem: Problem, schedule: Schedule) -> float | None:
    """The core-to-core latency when the costs were measured; None where one core computes."""
    used = {segment.device for segment in schedule.segments}
    num_cores = sum(d.cores for d in problem.machine.devices if d.name in used and d.on_host)
    load = problem.costs.load
    return load.core_to_core_s if load is not None and num_cores > 1 else None


def have_moved(then_s: float | None, now_s: float | None) -> bool:
    """Whether two core-to-core latencies are of cores in different places."""
    if not then_s or not now_s:
        return False
    return max(then_s, now_s) > MOVED * min(then_s, now_s)
