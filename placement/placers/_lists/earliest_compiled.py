"""Earliest start time scheduling: the common loop of ETF, m-ETF and m-SCT.

At every step the pair of a ready kernel and a device with the least start time is taken. Start
times only grow, so each device keeps its pairs in two heaps by times that may be out of date:
`later` by the time the data are there, `now` by rank, for pairs whose data were there before the
device is free. A pair is looked at again when it comes to the front.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.placers._lists.lanes_compiled import Lanes, has_room, inputs_ready, put, roomiest
from placement.schedule.order_compiled import num_waited_for, pop, push
from placement.simulator.flat import Flat

# Looks at out-of-date pairs that a run may spend per kernel before it takes the best of a few.
LOOKS_PER_KERNEL = 1000
FEW = 16


class Pairs(NamedTuple):
    """Ready kernels by device; `rank` (K,) breaks ties, `by_rank` (K,) is its inverse.

    The heaps `now` and `later` of device d are the first `num_now[d]` and `num_later[d]` entries of
    their rows (D, K); items are ranks. `struck` (K, D) marks pairs given up for lack of memory,
    `num_left` (K,) counts those that remain, and `forced` (K,) kernels that go where the most room
    is. `waiting` (K,) counts the inputs that are not scheduled yet. `floor_s` (D,) is from when on
    a device can start anything.
    """

    rank: Ints
    by_rank: Ints
    now_keys: Floats
    now: Ints
    num_now: Ints
    later_keys: Floats
    later: Ints
    num_later: Ints
    struck: NDArray[np.bool_]
    num_left: Ints
    forced: NDArray[np.bool_]
    waiting: Ints
    floor_s: Floats


class Favourites(NamedTuple):
    """Favourite child of each kernel (K,), -1 for none, and seconds to send it what it reads.

    `last` (D,) is the kernel each device ran last. A device is awake from that kernel's end until
    the favourite child's input could be elsewhere: it keeps itself free for the child. `are_some`
    is whether any kernel has a favourite.
    """

    are_some: bool
    child: Ints
    move_s: Floats
    last: Ints


def new_pairs(flat: Flat, rank: Ints) -> Pairs:
    """No kernel entered yet; ties go to the least rank."""
    num_kernels, num_devices = flat.compute_s.shape
    by_rank = np.empty(num_kernels, dtype=np.int64)
    by_rank[rank] = np.arange(num_kernels)
    return Pairs(
        rank=rank,
        by_rank=by_rank,
        now_keys=np.zeros((num_devices, num_kernels)),
        now=np.zeros((num_devices, num_kernels), dtype=np.int64),
        num_now=np.zeros(num_devices, dtype=np.int64),
        later_keys=np.zeros((num_devices, num_kernels)),
        later=np.zeros((num_devices, num_kernels), dtype=np.int64),
        num_later=np.zeros(num_devices, dtype=np.int64),
        struck=np.zeros((num_kernels, num_devices), dtype=np.bool_),
        num_left=np.zeros(num_kernels, dtype=np.int64),
        forced=np.zeros(num_kernels, dtype=np.bool_),
        waiting=num_waited_for(num_kernels, flat.producer, flat.consumer_ptr, flat.consumers),
        floor_s=np.zeros(num_devices),
    )


@jit
def earliest_start(flat: Flat, lanes: Lanes, pairs: Pairs, favourites: Favourites) -> None:
    """Schedule every kernel, always the pair of kernel and device that can start first.

    Ties go to the least rank, then the first device. A pair whose device lacks room when it would
    be taken is struck out; a kernel without any pair left goes to the roomiest device.
    """
    num_kernels = lanes.device.size
    enter_ready(flat, lanes, pairs)
    looks = LOOKS_PER_KERNEL * num_kernels
    for _ in range(num_kernels):
        looks = put_first(flat, lanes, pairs, favourites, looks)


@jit
def enter_ready(flat: Flat, lanes: Lanes, pairs: Pairs) -> None:
    """Enter the kernels that wait for no other."""
    for k in range(lanes.device.size):
        if pairs.waiting[k] == 0:
            enter(flat, lanes, pairs, k)


@jit
def put_first(flat: Flat, lanes: Lanes, pairs: Pairs, favourites: Favourites, looks: int) -> int:
    """Schedule the pair that can start first, and enter what becomes ready; the looks left."""
    pairs.floor_s[:] = lanes.free_s
    if favourites.are_some:
        for d in range(lanes.free_s.size):
            until_s = awake_until_s(flat, lanes, pairs, favourites, d)
            pairs.floor_s[d] = max(lanes.free_s[d], until_s)
    k, d, looks = first_pair(flat, lanes, pairs, favourites, pairs.floor_s, looks)
    fixed = lanes.device_of_unit[flat.unit_of_kernel[k]] >= 0
    put(flat, lanes, k, d)
    favourites.last[d] = k
    if not fixed:
        recall(flat, lanes, pairs, flat.unit_of_kernel[k])
    for i in range(flat.out_ptr[k], flat.out_ptr[k + 1]):
        t = flat.out_tensors[i]
        for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
            j = flat.consumers[c]
            pairs.waiting[j] -= 1
            if pairs.waiting[j] == 0:
                enter(flat, lanes, pairs, j)
    return looks


@jit
def enter(flat: Flat, lanes: Lanes, pairs: Pairs, k: int) -> None:
    """Enter a kernel that became ready for every device it may run on."""
    unit = flat.unit_of_kernel[k]
    fixed = lanes.device_of_unit[unit]
    inputs_ready(flat, lanes, k, 0, lanes.free_s.size)
    # Fields are read once: each reading counts a reference.
    ready_s, allowed, rank = lanes.ready_s, flat.allowed, pairs.rank[k]
    keys, items, num_later = pairs.later_keys, pairs.later, pairs.num_later
    for d in range(ready_s.size):
        if allowed[unit, d] and (fixed < 0 or fixed == d):
            pairs.num_left[k] += 1
            num_later[d] = push(keys[d], items[d], num_later[d], ready_s[d], rank)


@jit
def enter_later(pairs: Pairs, d: int, at_s: float, rank: int) -> None:
    """Enter a kernel on one device, by the time its data can be there."""
    keys, items = pairs.later_keys[d], pairs.later[d]
    pairs.num_later[d] = push(keys, items, pairs.num_later[d], at_s, rank)


@jit
def recall(flat: Flat, lanes: Lanes, pairs: Pairs, unit: int) -> None:
    """Enter again, on a unit's new device, its ready kernels that were struck out there."""
    d = lanes.device_of_unit[unit]
    for i in range(flat.kernel_ptr[unit], flat.kernel_ptr[unit + 1]):
        k = flat.kernels_of_unit[i]
        if lanes.device[k] < 0 and pairs.struck[k, d]:
            pairs.struck[k, d] = False
            inputs_ready(flat, lanes, k, d, d + 1)
            enter_later(pairs, d, lanes.ready_s[d], pairs.rank[k])


@jit
def strike(flat: Flat, lanes: Lanes, pairs: Pairs, k: int, d: int) -> None:
    """Give up a pair for lack of memory; the last one gives way to the roomiest device."""
    pairs.struck[k, d] = True
    pairs.num_left[k] -= 1
    if pairs.num_left[k] == 0:
        pairs.forced[k] = True
        d = roomiest(flat, lanes, flat.unit_of_kernel[k])
        pairs.struck[k, d] = False
        inputs_ready(flat, lanes, k, d, d + 1)
        enter_later(pairs, d, lanes.ready_s[d], pairs.rank[k])


@jit
def fits(flat: Flat, lanes: Lanes, pairs: Pairs, k: int, d: int) -> bool:
    """Whether memory lets kernel k go to device d."""
    unit = flat.unit_of_kernel[k]
    return bool(lanes.device_of_unit[unit] >= 0 or pairs.forced[k] or has_room(lanes, unit, d))


@jit
def gone(flat: Flat, lanes: Lanes, pairs: Pairs, k: int, d: int) -> bool:
    """Whether a pair no longer counts: scheduled, struck out, or its unit is on another device."""
    at = lanes.device_of_unit[flat.unit_of_kernel[k]]
    return bool(lanes.device[k] >= 0 or pairs.struck[k, d] or (at >= 0 and at != d))


@jit
def awake_until_s(flat: Flat, lanes: Lanes, pairs: Pairs, favourites: Favourites, d: int) -> float:
    """Until when device d keeps itself free for the favourite child of its last kernel, or -1."""
    last = favourites.last[d]
    if last < 0 or favourites.child[last] < 0:
        return -1.0
    child = favourites.child[last]
    if gone(flat, lanes, pairs, child, d) or not flat.allowed[flat.unit_of_kernel[child], d]:
        return -1.0
    return float(lanes.end_s[last] + favourites.move_s[last])


@jit
def drop_gone(flat: Flat, lanes: Lanes, pairs: Pairs) -> None:
    """Take pairs that no longer count out of the heaps for as long as one is at the front.

    Else each of them would have all devices looked at again.
    """
    drop(flat, lanes, pairs, pairs.now_keys, pairs.now, pairs.num_now)
    drop(flat, lanes, pairs, pairs.later_keys, pairs.later, pairs.num_later)


@jit
def drop(
    flat: Flat, lanes: Lanes, pairs: Pairs, keys: Floats, items: Ints, num_items: Ints
) -> None:
    """The same of one heap for each device; see `gone`."""
    # Fields are read once: each reading counts a reference.
    by_rank, struck, device = pairs.by_rank, pairs.struck, lanes.device
    unit_of_kernel, device_of_unit = flat.unit_of_kernel, lanes.device_of_unit
    for d in range(num_items.size):
        while num_items[d] > 0:
            k = by_rank[items[d, 0]]
            at = device_of_unit[unit_of_kernel[k]]
            if not (device[k] >= 0 or struck[k, d] or (at >= 0 and at != d)):
                break
            num_items[d] = pop(keys[d], items[d], num_items[d])


@jit
def front(pairs: Pairs, floor_s: Floats) -> tuple[int, float, int]:
    """Device, start time and rank of the pair that may start first, by times that may be old.

    Device -1 if no pair is left. `floor_s` (D,) is when each device can start anything.
    """
    # Fields are read once: each reading counts a reference.
    now, now_keys, num_now = pairs.now, pairs.now_keys, pairs.num_now
    later, later_keys, num_later = pairs.later, pairs.later_keys, pairs.num_later
    best_d, best_s, best_rank = -1, np.inf, 0
    for d in range(floor_s.size):
        while num_later[d] > 0 and later_keys[d, 0] <= floor_s[d]:
            rank = later[d, 0]
            num_later[d] = pop(later_keys[d], later[d], num_later[d])
            num_now[d] = push(now_keys[d], now[d], num_now[d], 0.0, rank)
        start_s, rank = floor_s[d], now[d, 0]
        if num_now[d] == 0:
            if num_later[d] == 0:
                continue
            start_s, rank = later_keys[d, 0], later[d, 0]
        if best_d < 0 or start_s < best_s or (start_s == best_s and rank < best_rank):
            best_d, best_s, best_rank = d, start_s, rank
    return best_d, best_s, best_rank


@jit
def take_front(pairs: Pairs, d: int) -> None:
    """Take the pair out of device d's heaps that `front` saw."""
    if pairs.num_now[d] > 0:
        pairs.num_now[d] = pop(pairs.now_keys[d], pairs.now[d], pairs.num_now[d])
    else:
        pairs.num_later[d] = pop(pairs.later_keys[d], pairs.later[d], pairs.num_later[d])


@jit
def first_pair(
    flat: Flat, lanes: Lanes, pairs: Pairs, favourites: Favourites, floor_s: Floats, looks: int
) -> tuple[int, int, int]:
    """The pair (kernel, device) that can start first, and the looks that remain."""
    best_k, best_d, best_s, best_rank = -1, -1, np.inf, lanes.device.size
    free_s = lanes.free_s
    for d in range(floor_s.size):
        if floor_s[d] > free_s[d]:
            k, start_s, rank = reserved(flat, lanes, pairs, favourites, d)
            if k >= 0 and (start_s < best_s or (start_s == best_s and rank < best_rank)):
                best_k, best_d, best_s, best_rank = k, d, start_s, rank
    few = FEW
    # What a device keeps itself free for shows in what lies in front, gone or not.
    if not favourites.are_some:
        drop_gone(flat, lanes, pairs)
    while True:
        d, bound_s, rank = front(pairs, floor_s)
        worse = d < 0 or bound_s > best_s or (bound_s == best_s and rank >= best_rank)
        if best_k >= 0 and (worse or (looks <= 0 and few <= 0)):
            return best_k, best_d, looks
        take_front(pairs, d)
        k = pairs.by_rank[rank]
        if gone(flat, lanes, pairs, k, d):
            continue
        if not fits(flat, lanes, pairs, k, d):
            strike(flat, lanes, pairs, k, d)
            continue
        looks, few = looks - 1, few - 1
        inputs_ready(flat, lanes, k, d, d + 1)
        # Back into the heap with its time of today; it leaves for good once it is scheduled.
        enter_later(pairs, d, lanes.ready_s[d], rank)
        start_s = max(lanes.ready_s[d], floor_s[d])
        if start_s < best_s or (start_s == best_s and rank < best_rank):
            best_k, best_d, best_s, best_rank = k, d, start_s, rank


@jit
def reserved(
    flat: Flat, lanes: Lanes, pairs: Pairs, favourites: Favourites, d: int
) -> tuple[int, float, int]:
    """What device d may start although it is awake: kernel (-1 for none), start and rank.

    The favourite child itself goes before all others at the same time. Another kernel must be
    urgent: first by rank of those that wait, with its data on every device when this one is free.
    """
    free_s = lanes.free_s[d]
    best_k, best_s, best_rank = -1, np.inf, 0
    child = favourites.child[favourites.last[d]]
    if pairs.waiting[child] == 0 and fits(flat, lanes, pairs, child, d):
        inputs_ready(flat, lanes, child, d, d + 1)
        best_k, best_s, best_rank = child, max(lanes.ready_s[d], free_s), -1
    if pairs.num_now[d] > 0 and best_s > free_s:
        k = pairs.by_rank[pairs.now[d, 0]]
        if not gone(flat, lanes, pairs, k, d) and fits(flat, lanes, pairs, k, d):
            inputs_ready(flat, lanes, k, 0, lanes.free_s.size)
            if lanes.ready_s.max() <= free_s:
                best_k, best_s, best_rank = k, free_s, pairs.rank[k]
    return best_k, best_s, best_rank
