"""Placements within memory: what every list scheduler does when a device cannot hold its part.

Whether memory suffices is decided by the definition in `core.violations`, on the schedule that the
placement gets. A method that misses it tries again with tightened limits; then the result is
repaired (`_repair.py`); then a `ValueError` says by figures what is missing. Packing is hard in
general, so the error says "found", not "exists", unless the weights alone settle it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from placement._tasks import host_of
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.violations import sequential_peak_bytes
from placement.segments import make_schedule

# Shares of the memory limits that are given to a method one after another.
SCALES = (1.0, 0.9, 0.75, 0.6, 0.45, 0.3)
# Placements, those that exceed least, from which units are moved one by one.
STARTS = 3


def within_memory(
    problem: Problem, attempt: Callable[[float], Placement], scales: Sequence[float] = SCALES
) -> Placement:
    """The first of the attempts, one per share of the memory limits, that keeps to memory.

    If none does, the one that exceeds least is repaired. Raises a ValueError that names the device
    and the bytes it lacks when that fails too.
    """
    from placement.placers._repair import all_placements, relieved, repacked

    require_room_for_weights(problem)
    tried: list[tuple[float, int, Placement]] = []
    for scale in scales:
        placement = attempt(scale)
        missing = missing_bytes(problem, placement)
        if not missing.any():
            return placement
        tried.append((float(missing.sum()), len(tried), placement))
    for placement in repacked(problem, min(tried)[2]):
        missing = missing_bytes(problem, placement)
        if not missing.any():
            return placement
        tried.append((float(missing.sum()), len(tried), placement))
    for _, _, placement in sorted(tried)[:STARTS]:
        placement = relieved(problem, placement)
        missing = missing_bytes(problem, placement)
        if not missing.any():
            return placement
        tried.append((float(missing.sum()), len(tried), placement))
    for placement in all_placements(problem):
        if not missing_bytes(problem, placement).any():
            return placement
    raise ValueError(
        f"No placement within memory was found: {_lacks(problem, min(tried)[2])};"
        f" {remedy(problem)}."
    )


def require_memory(problem: Problem, placement: Placement) -> Placement:
    """The placement itself; a ValueError says what a device lacks that cannot hold its part."""
    if missing_bytes(problem, placement).any():
        raise ValueError(
            f"The placement does not fit: {_lacks(problem, placement)}; {remedy(problem)}."
        )
    return placement


def missing_bytes(problem: Problem, placement: Placement) -> Floats:
    """Bytes by device (D,) that a placement's schedule needs beyond the limits."""
    limits = limit_bytes(problem)
    if (_bytes_at_most(problem, problem.kernel_devices(placement)) <= limits).all():
        return np.zeros(limits.size)
    return np.maximum(0.0, peak_bytes(problem, placement) - limits)


def peak_bytes(problem: Problem, placement: Placement) -> Floats:
    """Most bytes by device (D,) that a placement's schedule holds at one time."""
    peaks = sequential_peak_bytes(problem, make_schedule(problem, placement))
    return np.array(peaks, dtype=np.float64)


def limit_bytes(problem: Problem) -> Floats:
    """Memory by device (D,), infinite where there is no limit."""
    limits = [np.inf if d.memory_bytes is None else d.memory_bytes for d in problem.machine.devices]
    return np.array(limits, dtype=np.float64)


def require_room_for_weights(problem: Problem) -> None:
    """ValueError where the weights alone exceed all devices, or a unit each device it may use."""
    limits, weights = limit_bytes(problem), unit_bytes(problem)
    if weights.sum() > limits.sum():
        raise ValueError(
            f"The weights need {weights.sum():.0f} bytes, all devices together have"
            f" {limits.sum():.0f}; {remedy(problem)}."
        )
    most = np.where(problem.allowed, limits, -1.0).max(axis=1, initial=-1.0)
    too_big = np.flatnonzero(weights > most)
    if too_big.size:
        unit = int(too_big[0])
        name = problem.graph.ops[problem.ops_of_unit[unit][0]].name
        raise ValueError(
            f"The weights of op {name!r} and what moves with it need {weights[unit]:.0f} bytes, no"
            f" device it may run on has more than {most[unit]:.0f}; {remedy(problem)}."
        )


def _bytes_at_most(problem: Problem, device: Ints) -> Floats:
    """Bytes by device that no schedule exceeds: weights, all values made or received, workspace."""
    arrays, num_devices = problem.kernels.arrays, problem.num_devices
    total = np.zeros(num_devices)
    np.add.at(total, device, arrays.param_bytes)
    if problem.memory_model == "sum":
        return total
    there = np.zeros((arrays.producer.size, num_devices), dtype=np.bool_)
    readers = np.repeat(np.arange(arrays.producer.size), np.diff(arrays.consumer_ptr))
    there[readers, device[arrays.consumers]] = True
    made = np.flatnonzero(arrays.producer >= 0)
    there[made, device[arrays.producer[made]]] = True
    host = host_of(problem)
    if host >= 0:
        # Outputs return there, wherever they are made.
        there[made[arrays.is_output[made]], host] = True
    total += arrays.tensor_bytes @ there
    scratch = np.zeros(num_devices)
    np.maximum.at(scratch, device, problem.costs.workspace_bytes)
    return total + scratch


def unit_bytes(problem: Problem) -> Floats:
    """Weights by unit (U,)."""
    weights = np.zeros(problem.num_units)
    np.add.at(weights, problem.unit_of_kernel, problem.kernels.arrays.param_bytes)
    return weights


def _lacks(problem: Problem, placement: Placement) -> str:
    missing = missing_bytes(problem, placement)
    return ", ".join(
        f"device {problem.machine.devices[d].name!r} lacks {missing[d]:.0f} bytes"
        for d in np.flatnonzero(missing)
    )


def remedy(problem: Problem) -> str:
    pins = " remove pins," if problem.pins else ""
    return f"give the devices more memory,{pins} use a smaller batch or add a device"
