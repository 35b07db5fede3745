"""State of a list scheduler: what devices do, hold and have received; the earliest finish there.

A tensor is sent once per device; on links that carry one at a time it waits for its link. Where
kernels share calls, one that reads from another device pays for the call that it starts. Memory is
followed as in Baechi's m-ETF (Jeon et al., SoCC 2020): weights stay, a value goes when all its
readers are scheduled.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.placers._lists.gaps_compiled import Gaps, find_gap, idle, take_gap
from placement.simulator.flat import Flat


class Lanes(NamedTuple):
    """Kernels (K), tensors (T), units (U) and devices (D) of a schedule in the making.

    `device` (K,) and `device_of_unit` (U,) are -1 where nothing is decided. `arrival_s` (T, D) is
    -1 where a tensor was not sent, `link_free_s` (D * D,) when a channel has carried all that it
    was given, `free_s` (D,) when a device has run all it was given. `needed_bytes` (U,) is what a
    unit's weights and values take, `unread` (T,) the readers of a tensor that are not scheduled
    yet. `ready_s` and `crosses` (D,) are the answers of `inputs_ready`, `begins_s`, `ends_s` and
    `offer_s` (D,) those of `least_finish`.
    Without `insertion` a kernel never runs before one that its device was given earlier.
    """

    insertion: bool
    gaps: Gaps
    call_s: Floats
    limit_bytes: Floats
    needed_bytes: Floats
    unit_bytes: Floats
    device: Ints
    start_s: Floats
    end_s: Floats
    device_of_unit: Ints
    arrival_s: Floats
    link_free_s: Floats
    free_s: Floats
    held_bytes: Floats
    unread: Ints
    ready_s: Floats
    crosses: NDArray[np.bool_]
    begins_s: Floats
    ends_s: Floats
    offer_s: Floats


def new_lanes(flat: Flat, limit_bytes: Floats, *, insertion: bool) -> Lanes:
    """Nothing scheduled yet, on devices that hold at most `limit_bytes` (D,)."""
    num_kernels, num_devices = flat.compute_s.shape
    num_tensors, num_units = flat.producer.size, flat.allowed.shape[0]
    unit_bytes = np.zeros(num_units)
    np.add.at(unit_bytes, flat.unit_of_kernel, flat.param_bytes + flat.state_bytes)
    needed_bytes = unit_bytes.copy()
    if flat.live_memory:
        made = flat.producer >= 0
        unit_of_tensor = flat.unit_of_kernel[flat.producer[made]]
        np.add.at(needed_bytes, unit_of_tensor, flat.tensor_bytes[made])
    shortest_s = flat.compute_s.min(axis=0, initial=np.inf)
    return Lanes(
        insertion=insertion,
        gaps=idle(num_kernels, shortest_s),
        call_s=np.zeros(num_devices) if flat.each_pays else flat.call_s.copy(),
        limit_bytes=limit_bytes,
        needed_bytes=needed_bytes,
        unit_bytes=unit_bytes,
        device=np.full(num_kernels, -1, dtype=np.int64),
        start_s=np.zeros(num_kernels),
        end_s=np.zeros(num_kernels),
        device_of_unit=np.full(num_units, -1, dtype=np.int64),
        arrival_s=np.full((num_tensors, num_devices), -1.0),
        link_free_s=np.zeros(num_devices * num_devices),
        free_s=np.zeros(num_devices),
        held_bytes=np.zeros(num_devices),
        unread=np.diff(flat.consumer_ptr),
        ready_s=np.zeros(num_devices),
        crosses=np.zeros(num_devices, dtype=np.bool_),
        begins_s=np.zeros(num_devices),
        ends_s=np.zeros(num_devices),
        offer_s=np.zeros(num_devices),
    )


@jit
def candidates(flat: Flat, lanes: Lanes, unit: int, found: NDArray[np.bool_]) -> None:
    """Mark in `found` (D,) the devices a unit may go to: its own once it has one, else those with
    room for it, else the roomiest."""
    found[:] = False
    if lanes.device_of_unit[unit] >= 0:
        found[lanes.device_of_unit[unit]] = True
        return
    # Fields are read once: each reading counts a reference.
    allowed, limit_bytes, held_bytes = flat.allowed, lanes.limit_bytes, lanes.held_bytes
    any_fits, needed_bytes = False, lanes.needed_bytes[unit]
    for d in range(found.size):
        found[d] = allowed[unit, d] and limit_bytes[d] - held_bytes[d] >= needed_bytes
        any_fits = any_fits or found[d]
    if not any_fits:
        found[roomiest(flat, lanes, unit)] = True


@jit
def has_room(lanes: Lanes, unit: int, d: int) -> bool:
    """Whether device d can hold a unit besides what it holds."""
    return bool(lanes.limit_bytes[d] - lanes.held_bytes[d] >= lanes.needed_bytes[unit])


@jit
def roomiest(flat: Flat, lanes: Lanes, unit: int) -> int:
    """The device that may run a unit and has the most bytes left, the first of several."""
    best, most_bytes = -1, 0.0
    for d in range(lanes.limit_bytes.size):
        room_bytes = lanes.limit_bytes[d] - lanes.held_bytes[d]
        if flat.allowed[unit, d] and (best < 0 or room_bytes > most_bytes):
            best, most_bytes = d, room_bytes
    return best


@jit
def rest_of_unit_s(flat: Flat, lanes: Lanes, k: int, d: int) -> float:
    """Compute that device d takes on with the other kernels of a unit when it takes k."""
    unit, seconds = flat.unit_of_kernel[k], 0.0
    if lanes.device_of_unit[unit] < 0:
        for i in range(flat.kernel_ptr[unit], flat.kernel_ptr[unit + 1]):
            if flat.kernels_of_unit[i] != k:
                seconds += flat.compute_s[flat.kernels_of_unit[i], d]
    return seconds


@jit
def inputs_ready(flat: Flat, lanes: Lanes, k: int, first: int, last: int) -> None:
    """Note when kernel k's inputs can be on the devices from `first` to before `last`.

    Writes `lanes.ready_s`, and `lanes.crosses`: whether an input has yet to cross. A tensor is sent
    as soon as it is made and the link is free; a model input waits in the host's memory.
    """
    # Fields are read once: each reading counts a reference.
    ready_s, crosses, arrival_s = lanes.ready_s, lanes.crosses, lanes.arrival_s
    in_tensors, producer, tensor_bytes = flat.in_tensors, flat.producer, flat.tensor_bytes
    link_free_s, move_s, s_per_byte = lanes.link_free_s, flat.move_s, flat.s_per_byte
    host, on_host, channel, num_devices = flat.host, flat.on_host, flat.channel, flat.call_s.size
    ready_s[first:last], crosses[first:last] = 0.0, False
    for i in range(flat.in_ptr[k], flat.in_ptr[k + 1]):
        t = in_tensors[i]
        p = producer[t]
        src = lanes.device[p] if p >= 0 else host
        made_s = lanes.end_s[p] if p >= 0 else 0.0
        for d in range(first, last):
            at_s = made_s
            if arrival_s[t, d] >= 0:
                at_s = arrival_s[t, d]
            elif src != d and (p >= 0 or (host >= 0 and not on_host[d])):
                if flat.one_at_a_time:
                    at_s = max(at_s, link_free_s[channel[src * num_devices + d]])
                at_s += move_s[src, d] + tensor_bytes[t] * s_per_byte[src, d]
                crosses[d] = True
            ready_s[d] = max(ready_s[d], at_s)


@jit
def duration_s(flat: Flat, lanes: Lanes, k: int, d: int) -> float:
    """Seconds kernel k takes on device d, with the call that it starts; after `inputs_ready`."""
    return float(flat.compute_s[k, d] + (lanes.call_s[d] if lanes.crosses[d] else 0.0))


@jit
def put(flat: Flat, lanes: Lanes, k: int, d: int) -> None:
    """Schedule kernel k on device d, and with it its whole unit's choice of device."""
    inputs_ready(flat, lanes, k, d, d + 1)
    seconds = duration_s(flat, lanes, k, d)
    if lanes.insertion:
        place, i, start_s = find_gap(lanes.gaps, d, lanes.ready_s[d], seconds)
        take_gap(lanes.gaps, d, place, i, start_s, start_s + seconds)
    else:
        start_s = max(lanes.ready_s[d], lanes.free_s[d])
    end_s = start_s + seconds
    unit = flat.unit_of_kernel[k]
    if lanes.device_of_unit[unit] < 0:
        lanes.device_of_unit[unit] = d
        lanes.held_bytes[d] += lanes.unit_bytes[unit]
    for i in range(flat.in_ptr[k], flat.in_ptr[k + 1]):
        receive(flat, lanes, flat.in_tensors[i], d)
    lanes.device[k], lanes.start_s[k], lanes.end_s[k] = d, start_s, end_s
    lanes.free_s[d] = max(lanes.free_s[d], end_s)
    if flat.live_memory:
        for i in range(flat.out_ptr[k], flat.out_ptr[k + 1]):
            t = flat.out_tensors[i]
            if lanes.unread[t] > 0:
                lanes.held_bytes[d] += flat.tensor_bytes[t]


@jit
def receive(flat: Flat, lanes: Lanes, t: int, d: int) -> None:
    """Note that one more reader of tensor t is scheduled, on device d: send it, or let it go."""
    p = flat.producer[t]
    src = lanes.device[p] if p >= 0 else flat.host
    crosses = src != d and (p >= 0 or (flat.host >= 0 and not flat.on_host[d]))
    if crosses and lanes.arrival_s[t, d] < 0:
        at_s = lanes.end_s[p] if p >= 0 else 0.0
        link = flat.channel[src * flat.call_s.size + d]
        if flat.one_at_a_time:
            at_s = max(at_s, lanes.link_free_s[link])
        at_s += flat.move_s[src, d] + flat.tensor_bytes[t] * flat.s_per_byte[src, d]
        lanes.arrival_s[t, d] = lanes.link_free_s[link] = at_s
        if flat.live_memory:
            lanes.held_bytes[d] += flat.tensor_bytes[t]
    lanes.unread[t] -= 1
    if lanes.unread[t] == 0 and flat.live_memory:
        if p >= 0:
            lanes.held_bytes[src] -= flat.tensor_bytes[t]
        arrival_s, held_bytes = lanes.arrival_s, lanes.held_bytes
        for other in range(held_bytes.size):
            if arrival_s[t, other] >= 0:
                held_bytes[other] -= flat.tensor_bytes[t]


@jit
def earliest_finish(flat: Flat, lanes: Lanes, order: Ints, outlook_s: Floats, wanted: Ints) -> None:
    """Schedule every kernel, each where its finish time plus `outlook_s` (K, D) is least.

    What the rest of its unit computes there counts too. Kernel k goes to device `wanted[k]` where
    that is not -1 and a candidate; ties go to the first device.
    """
    found = np.zeros(flat.allowed.shape[1], dtype=np.bool_)
    for k in order:
        candidates(flat, lanes, flat.unit_of_kernel[k], found)
        d = wanted[k]
        if d < 0 or not found[d]:
            d = least_finish(flat, lanes, k, found, outlook_s[k])
        put(flat, lanes, k, d)


@jit
def least_finish(
    flat: Flat, lanes: Lanes, k: int, found: NDArray[np.bool_], outlook_s: Floats
) -> int:
    """The device among those `found` (D,) where kernel k's finish plus outlook (D,) is least.

    Writes for each of them when it would begin and end there, and that sum: `begins_s`, `ends_s`
    and `offer_s` of the lanes.
    """
    inputs_ready(flat, lanes, k, 0, found.size)
    ready_s, free_s, insertion = lanes.ready_s, lanes.free_s, lanes.insertion
    begins_s, ends_s, offer_s = lanes.begins_s, lanes.ends_s, lanes.offer_s
    compute_s, call_s, crosses = flat.compute_s, lanes.call_s, lanes.crosses
    unit = flat.unit_of_kernel[k]
    is_alone = flat.kernel_ptr[unit + 1] - flat.kernel_ptr[unit] == 1
    best = -1
    for d in range(found.size):
        if not found[d]:
            continue
        seconds = compute_s[k, d] + (call_s[d] if crosses[d] else 0.0)
        start_s = max(ready_s[d], free_s[d])
        if insertion and start_s > ready_s[d]:
            _, _, start_s = find_gap(lanes.gaps, d, ready_s[d], seconds)
        begins_s[d], ends_s[d] = start_s, start_s + seconds
        rest_s = 0.0 if is_alone else rest_of_unit_s(flat, lanes, k, d)
        offer_s[d] = start_s + seconds + rest_s + outlook_s[d]
        if best < 0 or offer_s[d] < offer_s[best]:
            best = d
    return best
