"""Repair of placements that exceed memory: packing units anew, and moving single ones.

Packing goes by weights alone, first fit by falling size; moving goes by the peaks of the schedules
that result, and so follows values too.
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.search.needs import limit_bytes, peak_bytes, unit_bytes

# Shares of the limits that packing keeps for values.
RESERVES = (0.0, 0.1, 0.25, 0.5)
# Schedules that moving may try: this many kernels in all, within these bounds.
MAX_KERNELS = 100_000
MIN_TRIES, MAX_TRIES = 4, 400
# Problems with no more placements than this are searched whole.
MAX_ALL = 1024


def repacked(problem: Problem, placement: Placement) -> Iterator[Placement]:
    """The placement with units moved off devices that hold too much, for several reserves.

    A share of each limit is kept for values; units are taken by falling weight and stay where they
    are while there is room, else go to the allowed device with the most room. The last ones fill
    the devices in topological order instead, which keeps most values where they are made.
    """
    device_of_unit = np.zeros(problem.num_units, dtype=np.int64)
    device_of_unit[problem.unit_of_kernel] = problem.kernel_devices(placement)
    weights, limits = unit_bytes(problem), limit_bytes(problem)
    falling = np.argsort(-weights, kind="stable").tolist()
    for reserve in RESERVES:
        room = limits * (1.0 - reserve)
        devices = device_of_unit.copy()
        for unit in falling:
            allowed = np.flatnonzero(problem.allowed[unit])
            own = int(devices[unit])
            if room[own] < weights[unit] or own not in allowed:
                devices[unit] = allowed[int(room[allowed].argmax())]
            room[devices[unit]] -= weights[unit]
        yield problem.placement_of(devices)
    for reserve in RESERVES:
        yield problem.placement_of(_filled(problem, weights, limits * (1.0 - reserve)))


def _filled(problem: Problem, weights: Floats, room: Floats) -> list[int]:
    """Units in declared order, each on the first allowed device with room, else the roomiest."""
    left, devices = room.copy(), []
    for unit, weight in enumerate(weights.tolist()):
        allowed = np.flatnonzero(problem.allowed[unit])
        fitting = allowed[left[allowed] >= weight]
        d = int(fitting[0]) if fitting.size else int(allowed[left[allowed].argmax()])
        left[d] -= weight
        devices.append(d)
    return devices


def relieved(problem: Problem, placement: Placement) -> Placement:
    """Units moved off the device that lacks most while that makes the bytes in excess fewer."""
    limits = limit_bytes(problem)
    devices = np.zeros(problem.num_units, dtype=np.int64)
    devices[problem.unit_of_kernel] = problem.kernel_devices(placement)
    peaks = peak_bytes(problem, placement)
    tries = min(MAX_TRIES, max(MIN_TRIES, MAX_KERNELS // max(1, len(problem.kernels.ops))))
    improved = True
    while improved and (peaks > limits).any():
        improved = False
        for units, d in _moves(problem, devices, limits - peaks):
            if tries == 0:
                return placement
            tries -= 1
            moved = devices.copy()
            moved[units] = d
            candidate = problem.placement_of(moved)
            new_peaks = peak_bytes(problem, candidate)
            if _excess(new_peaks, limits) < _excess(peaks, limits):
                placement, devices, peaks, improved = candidate, moved, new_peaks, True
                break
    return placement


def all_placements(problem: Problem) -> Iterator[Placement]:
    """Every placement of a tiny problem, in declared order of devices; none of a larger one."""
    choices = [np.flatnonzero(row).tolist() for row in problem.allowed]
    if math.prod(map(len, choices)) <= MAX_ALL:
        yield from map(problem.placement_of, itertools.product(*choices))


def _excess(peaks: Floats, limits: Floats) -> float:
    return float(np.maximum(0.0, peaks - limits).sum())


def _moves(problem: Problem, devices: Ints, room: Floats) -> Iterator[tuple[Ints, int]]:
    """Units to move off the device that lacks most, and where to, the likeliest first.

    First as many of the largest as cover what it lacks, then single ones, those that cover it most
    closely first; each to the devices with room for them, the one with the most room first.
    """
    worst = int(room.argmin())
    lacking = -float(room[worst])
    size = unit_bytes(problem)
    if problem.memory_model == "live":
        arrays = problem.kernels.arrays
        made = np.flatnonzero(arrays.producer >= 0)
        unit = problem.unit_of_kernel[arrays.producer[made]]
        np.add.at(size, unit, arrays.tensor_bytes[made])
    here = np.flatnonzero(devices == worst)
    falling = here[np.argsort(-size[here], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(size[falling]), lacking)) + 1
    closest = here[np.argsort(np.abs(size[here] - lacking), kind="stable")]
    targets = [d for d in np.argsort(-room, kind="stable").tolist() if room[d] > 0]
    for units in (falling[:enough], *closest[:, None]):
        for d in targets:
            if size[units].sum() <= room[d] and problem.allowed[units, d].all():
                yield units, d
