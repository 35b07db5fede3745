"""m-TOPO: devices filled one after another in topological order, each up to an equal share.

Jeon et al., "Baechi: fast device placement of machine learning graphs", SoCC 2020. The cap of a
device is all memory over the number of devices plus the largest op; the next device is taken when
the cap or the device's own memory would be passed. Where no device has a limit there is nothing to
share out in bytes: seconds of compute take the place of memory.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import lanes_for
from placement.placers.base import Placer, Progress, Report, quiet
from placement.search.feasible import within_memory
from placement.simulator.flat import flatten


@dataclass(frozen=True, kw_only=True)
class MTopo(Placer):
    summary = "Devices filled in topological order, each with an equal share of memory (Baechi)"
    paper = "Jeon et al.: Baechi, SoCC 2020"
    quick_up_to = 1_000_000

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        def attempt(scale: float) -> Placement:
            load, cap = loads_and_caps(problem, scale)
            report(Progress(step=problem.num_units, of=problem.num_units))
            return problem.placement_of(fill(problem, load, cap))

        return within_memory(problem, attempt)


def loads_and_caps(problem: Problem, scale: float = 1.0) -> tuple[Floats, Floats]:
    """What each unit adds to each device (U, D), and what each device takes at most (D,)."""
    flat = flatten(problem)
    shape = flat.allowed.shape
    if np.isfinite(flat.limit_bytes).any():
        lanes = lanes_for(flat, insertion=False, scale=scale)
        load = np.repeat(lanes.needed_bytes[:, None], shape[1], axis=1)
        share = lanes.needed_bytes.sum() / shape[1] + lanes.needed_bytes.max(initial=0.0)
        return load, np.minimum(share, lanes.limit_bytes)
    mean_s = np.where(flat.allowed, problem.unit_s, 0.0).sum(axis=1) / flat.allowed.sum(axis=1)
    load = np.where(flat.allowed, problem.unit_s, mean_s[:, None])
    # Equal times on devices of unequal speed: T with sum over devices of T / (all on it) = 1.
    equal_s = 1.0 / np.sum(1.0 / np.maximum(load.sum(axis=0), 1e-300))
    return load, equal_s + load.max(axis=0, initial=0.0)


def fill(problem: Problem, load: Floats, cap: Floats) -> list[int]:
    """Device of each unit, in declared order: the current device until its cap, then the next.

    A unit that the current device may not run goes to the next that may and has room, as does
    everything when the last device is full; where none has room, to the one with the most.
    """
    current, num_devices = 0, problem.num_devices
    left, devices = cap.copy(), []
    allowed = problem.allowed
    for unit in range(problem.num_units):
        while current < num_devices - 1 and load[unit, current] > left[current]:
            current += 1
        ring = [(current + i) % num_devices for i in range(num_devices)]
        usable = [d for d in ring if allowed[unit, d]]
        fitting = [d for d in usable if load[unit, d] <= left[d]]
        d = fitting[0] if fitting else max(usable, key=lambda d: (left[d], -d))
        left[d] -= load[unit, d]
        devices.append(d)
    return devices


PLACER = MTopo
