"""Placements within memory: the bytes they need, what helps where some lack, the best of several.

Whether memory suffices is decided by the definition in `core.violations`, on the schedule that the
placement gets. A method that misses it tries again with tightened limits; then the result is
repaired, by packing units anew and moving single ones; then a `ValueError` says by figures what is
missing. Packing is hard in general, so the error says "found", not "exists", unless the weights
alone settle it.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.formatting import apart, num_bytes
from placement.core.graph import Ints, Narrower
from placement.core.placement import Placement
from placement.core.problem import Execution, Problem
from placement.core.violations import needed_bytes, violations
from placement.costs.offload import refusal, with_offload
from placement.schedule.segments import cut_value_s, cuts_of, make_schedule
from placement.simulator.evaluator import can_overflow, has_requests
from placement.simulator.lowering import host_of
from placement.simulator.throughput import value_s


def missing_bytes(problem: Problem, placement: Placement) -> Floats:
    """Bytes by device (D,) that a placement's schedule needs beyond the limits."""
    limits = limit_bytes(problem)
    at_most: Floats = np.full(limits.size, np.inf)
    if not has_requests(problem):
        at_most = _bytes_at_most(problem, problem.kernel_devices(placement))
    if (at_most <= limits).all():
        return np.zeros(limits.size)
    return np.maximum(0.0, peak_bytes(problem, placement) - limits)


def peak_bytes(problem: Problem, placement: Placement) -> Floats:
    """Most bytes by device (D,) that a placement's schedule holds at one time."""
    peaks = needed_bytes(problem, make_schedule(problem, placement))
    return np.array(peaks, dtype=np.float64)


def limit_bytes(problem: Problem) -> Floats:
    """Memory for the weights of each device (D,), infinite where there is no limit."""
    return problem.machine.limit_bytes.copy()


def _own(problem: Problem) -> NDArray[np.bool_]:
    """Which devices (D,) have a memory of their own, so that each counts once."""
    places = problem.machine.places
    return np.equal(places.weights, np.arange(places.weights.size))


def unit_bytes(problem: Problem) -> Floats:
    """Weights and state by unit (U,)."""
    weights = np.zeros(problem.num_units)
    np.add.at(weights, problem.unit_of_kernel, problem.kernels.arrays.resident_bytes)
    return weights


def _bytes_at_most(problem: Problem, device: Ints) -> Floats:
    """Bytes by device that no schedule exceeds: weights, state, workspace and all values, made or
    received."""
    arrays, num_devices = problem.kernels.arrays, len(problem.machine.devices)
    places = problem.machine.places
    arriving = np.where(places.streams[device], arrays.param_bytes, 0.0)
    total = np.zeros(num_devices)
    np.add.at(total, places.weights[device], arrays.param_bytes)
    np.add.at(total, places.values[device], arrays.state_bytes)
    if problem.memory_model == "sum":
        return total
    memory, device = places.values[device], places.engine[device]
    there = np.zeros((arrays.producer.size, num_devices), dtype=np.bool_)
    readers = np.repeat(np.arange(arrays.producer.size), np.diff(arrays.consumer_ptr))
    there[readers, device[arrays.consumers]] = True
    made = np.flatnonzero(arrays.producer >= 0)
    there[made, device[arrays.producer[made]]] = True
    host = host_of(problem)
    if host >= 0:
        # Outputs return there, wherever they are made.
        there[made[arrays.is_output[made]], host] = True
    np.add.at(total, places.values, arrays.tensor_bytes @ there)
    scratch = np.zeros(num_devices)
    np.maximum.at(scratch, memory, problem.costs.workspace_bytes + arriving)
    return total + scratch


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
    require_room_for_weights(problem)
    tried: list[tuple[float, int, Placement]] = []

    def attempts() -> Iterator[Placement]:
        yield from map(attempt, scales)
        yield from repacked(problem, min(tried)[2])
        yield from (relieved(problem, placement) for _, _, placement in sorted(tried)[:STARTS])

    for placement in attempts():
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


def require_room_for_weights(problem: Problem) -> None:
    """ValueError where the weights alone exceed all devices, or a unit each device it may use."""
    reason = no_room_for_weights(problem)
    if reason:
        raise ValueError(f"{reason}; {remedy(problem)}.")


def no_room_for_weights(problem: Problem) -> str:
    """Why no placement at all keeps to memory, as far as weights alone tell, without a full stop;
    empty where they do not."""
    limits, weights = limit_bytes(problem), unit_bytes(problem)
    total = limits[_own(problem)].sum()
    if weights.sum() > total:
        needed, there = apart(float(weights.sum()), float(total))
        return f"The weights need {needed}, all devices together have {there}"
    unit = _too_big(problem)
    if unit is None:
        return ""
    name = problem.graph.ops[problem.ops_of_unit[unit][0]].name
    needed, there = apart(float(weights[unit]), _most_bytes(problem)[unit])
    return (
        f"The weights of op {name!r} and what moves with it need {needed}, no device it may run on"
        f" has more than {there}"
    )


def _most_bytes(problem: Problem) -> Floats:
    """The most memory that a device has on which a unit (U,) may run."""
    limits = limit_bytes(problem)
    most: Floats = np.where(problem.allowed, limits, -1.0).max(axis=1, initial=-1.0)
    return most


def _too_big(problem: Problem) -> int | None:
    """The first unit that no device holds on which it may run."""
    too_big = np.flatnonzero(unit_bytes(problem) > _most_bytes(problem))
    return int(too_big[0]) if too_big.size else None


def _lacks(problem: Problem, placement: Placement) -> str:
    missing = missing_bytes(problem, placement)
    return ", ".join(
        f"device {problem.machine.devices[d].name!r} lacks {num_bytes(missing[d])}"
        for d in np.flatnonzero(missing)
    )


def remedy(problem: Problem) -> str:
    """What helps where memory lacks.

    Fewer pins, narrower weights and streams were found to, by placing within memory once more; a
    smaller batch, more memory and another device are named where nothing speaks against them.
    """
    ways = list[str]()
    if problem.pins and _has_room(replace(problem, pins=())):
        ways.append("remove pins")
    smaller = [s.dtype for s in problem.kernels.narrower if _has_room(_stored_as(problem, s))]
    if smaller:
        ways.append(
            f"store the weights as {' or '.join(smaller)} (--dtype; in the studio Model, Open"
            " dimensions)"
        )
    streams = not problem.offloads and not refusal(problem) and with_offload(problem)
    if streams and streams is not problem and _has_room(streams):
        ways.append("let weights stream from host memory (--offload; in the studio Devices)")
    if _has_batch(problem) and not no_room_for_weights(problem):
        ways.append("use a smaller batch")
    ways.append("give the devices more memory")
    if _too_big(problem) is None:
        ways.append("add a device")
    return " or ".join(filter(None, (", ".join(ways[:-1]), ways[-1])))


def _has_room(problem: Problem) -> bool:
    """Whether a placement within memory is found at once; one that is hard to find does not count.

    Tried are each device for all that it may run, and what packing makes of it.
    """
    if no_room_for_weights(problem):
        return False
    others = problem.allowed.argmax(axis=1)
    alone = [
        problem.placement_of(np.where(problem.allowed[:, d], d, others))
        for d in range(problem.num_devices)
    ]
    tried = itertools.chain(alone, repacked(problem, alone[0]))
    return any(not missing_bytes(problem, placement).any() for placement in tried)


def _stored_as(problem: Problem, stored: Narrower) -> Problem:
    """The problem with weights of fewer bits, whose times are those of before."""
    pairs = zip(problem.kernels.ops, stored.param_bytes, strict=True)
    ops = tuple(replace(op, param_bytes=weights) for op, weights in pairs)
    return replace(problem, kernels=replace(problem.kernels, ops=ops, narrower=()))


def _has_batch(problem: Problem) -> bool:
    """Whether a step takes in several samples at a time, as far as the shapes of inputs tell."""
    return any(tensor.shape and tensor.shape[0] > 1 for tensor in problem.graph.inputs)


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
    weights, limits, memory = (
        unit_bytes(problem),
        limit_bytes(problem),
        problem.machine.places.weights,
    )
    falling = np.argsort(-weights, kind="stable").tolist()
    for reserve in RESERVES:
        room = limits * (1.0 - reserve)
        devices = device_of_unit.copy()
        for unit in falling:
            allowed = np.flatnonzero(problem.allowed[unit])
            own = int(devices[unit])
            if room[memory[own]] < weights[unit] or own not in allowed:
                devices[unit] = allowed[int(room[memory[allowed]].argmax())]
            room[memory[devices[unit]]] -= weights[unit]
        yield problem.placement_of(devices)
    for reserve in RESERVES:
        yield problem.placement_of(_filled(problem, weights, limits * (1.0 - reserve)))


def _filled(problem: Problem, weights: Floats, room: Floats) -> list[int]:
    """Units in declared order, each on the first allowed device with room, else the roomiest."""
    left, devices, memory = room.copy(), list[int](), problem.machine.places.weights
    for unit, weight in enumerate(weights.tolist()):
        allowed = np.flatnonzero(problem.allowed[unit])
        fitting = allowed[left[memory[allowed]] >= weight]
        d = int(fitting[0]) if fitting.size else int(allowed[left[memory[allowed]].argmax()])
        left[memory[d]] -= weight
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
    here = np.flatnonzero(problem.machine.places.weights[devices] == worst)
    falling = here[np.argsort(-size[here], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(size[falling]), lacking)) + 1
    closest = here[np.argsort(np.abs(size[here] - lacking), kind="stable")]
    targets = [d for d in np.argsort(-room, kind="stable").tolist() if room[d] > 0]
    for units in (falling[:enough], *closest[:, None]):
        for d in targets:
            if size[units].sum() <= room[d] and problem.allowed[units, d].all():
                yield units, d


def final_s(problem: Problem, placement: Placement) -> float:
    """Seconds of the objective with segments merged, infinite where the placement breaks a rule."""
    if problem.execution is Execution.CALL:
        schedule = make_schedule(problem, placement)
        broken = violations(problem, schedule, placement.calls)
        return math.inf if broken else value_s(problem, schedule, placement.replicas)
    if missing_bytes(problem, placement).any():
        return math.inf
    if can_overflow(problem):
        return value_s(problem, make_schedule(problem, placement), placement.replicas)
    # Where memory cannot run short no schedule needs to be spelled out.
    return cut_value_s(problem, cuts_of(problem, placement)[1])


def best_of(problem: Problem, placements: Iterable[Placement]) -> Placement:
    """The placement with the least final value, the first of equals; with none that fits memory a
    ValueError."""
    best: tuple[float, Placement] | None = None
    for placement in placements:
        value_s = final_s(problem, placement)
        if value_s < (math.inf if best is None else best[0]):
            best = (value_s, placement)
    if best is None:
        raise ValueError(f"No placement within memory was found; {remedy(problem)}.")
    return best[1]
