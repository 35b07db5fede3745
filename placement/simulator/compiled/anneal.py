"""Simulated annealing and descent over placements, driven by the critical path (compiled)."""

import math

import numpy as np

from placement.compiled.jit import inner, jit
from placement.compiled.random import below, uniform
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.compiled.links import crosses
from placement.simulator.compiled.loads import pipeline_s
from placement.simulator.compiled.memory import find_peaks
from placement.simulator.compiled.moves import checkpoint_before, relocate
from placement.simulator.compiled.run import run
from placement.simulator.flat import Flat
from placement.simulator.run_state import (
    ACCEPTED,
    BEST,
    NO_ROOM,
    REFUSED,
    Parts,
    RunState,
    Trace,
)

# The critical path is traced anew after this many accepted moves.
TRACE_EVERY = 16
POWER = 16.0
# The share of moves that move a block, and of exchanges that move one back; how many units are
# looked at for an exchange.
BLOCKS, EXCHANGED_BLOCKS, EXCHANGES = 0.7, 0.5, 6


@jit
def trace_critical(flat: Flat, state: RunState, critical: Ints, since: int) -> int:
    """Write the units of a critical path of the base run, last first, as far as kernels are at
    position `since` or later; how many there are.

    Backwards from the kernel that ends last, each time to the one whose tensor came latest, or else
    to the one before it on the device's engine.
    """
    device, order, position, first = state.device, state.order, state.position, state.first
    producer, on_host, host = flat.producer, flat.on_host, flat.host
    num_devices = flat.call_s.size
    k, num = int(np.argmax(state.end_s + state.tail_s)), 0
    while k >= 0 and num < critical.size and position[k] >= since:
        if num == 0 or critical[num - 1] != flat.unit_of_kernel[k]:
            critical[num] = flat.unit_of_kernel[k]
            num += 1
        d = device[k]
        before = position[k] - 1
        while before >= 0 and flat.engine[device[order[before]]] != flat.engine[d]:
            before -= 1
        latest_s = state.end_s[order[before]] if before >= 0 else 0.0
        cause = order[before] if before >= 0 else -1
        for j in range(flat.in_ptr[k], flat.in_ptr[k + 1]):
            t = flat.in_tensors[j]
            at = t * num_devices + d
            came = crosses(producer, device, on_host, host, t, d) and first[at] == position[k]
            if came and producer[t] >= 0 and state.arrived_s[at] > latest_s:
                latest_s, cause = state.arrived_s[at], producer[t]
        k = cause
    return num


@jit
def energy(
    flat: Flat, state: RunState, since: int, save: bool, limit_s: float, throughput: bool
) -> float:
    """What a search minimises, infinite where it is above the limit."""
    if throughput:
        value_s = pipeline_s(flat, state, POWER)
        return value_s if value_s <= limit_s else np.inf
    return run(flat, state, since, save, limit_s)


@inner
def neighbour_device(flat: Flat, state: RunState, unit: int, generator: Ints) -> int:
    """The device of a random maker or reader of one of the unit's kernels, or -1."""
    num = flat.kernel_ptr[unit + 1] - flat.kernel_ptr[unit]
    if num == 0:
        return -1
    k = flat.kernels_of_unit[flat.kernel_ptr[unit] + below(num, generator)]
    num_in = flat.in_ptr[k + 1] - flat.in_ptr[k]
    num_out = flat.out_ptr[k + 1] - flat.out_ptr[k]
    if num_in + num_out == 0:
        return -1
    i = below(num_in + num_out, generator)
    if i < num_in:
        p = flat.producer[flat.in_tensors[flat.in_ptr[k] + i]]
        return int(state.device[p]) if p >= 0 else -1
    t = flat.out_tensors[flat.out_ptr[k] + i - num_in]
    num_readers = flat.consumer_ptr[t + 1] - flat.consumer_ptr[t]
    if num_readers == 0:
        return -1
    reader = flat.consumers[flat.consumer_ptr[t] + below(num_readers, generator)]
    return int(state.device[reader])


@inner
def find_sources(
    flat: Flat, devices: Ints, units: Ints, dest: int, only_from: int, sources: Ints
) -> int:
    """Which of the units may go to `dest`, of those on `only_from` unless it is -1; how many.

    `sources` takes the device that each would come from, -1 for those that stay.
    """
    num = 0
    for i in range(units.size):
        u = units[i]
        moves = devices[u] != dest and flat.allowed[u, dest]
        moves = moves and (only_from < 0 or devices[u] == only_from)
        sources[i] = devices[u] if moves else -1
        num += moves
    return num


@inner
def bytes_moved(units: Ints, sources: Ints, unit_bytes: Floats) -> float:
    """Weights and state of those that move."""
    total = 0.0
    for i in range(units.size):
        if sources[i] >= 0:
            total += unit_bytes[units[i]]
    return total


@inner
def apply(
    flat: Flat,
    state: RunState,
    devices: Ints,
    units: Ints,
    dest: int,
    room_bytes: Floats,
    unit_bytes: Floats,
    sources: Ints,
    touched: Ints,
) -> None:
    """Move those of the units that have a source to `dest`."""
    for i in range(units.size):
        if sources[i] >= 0:
            u = units[i]
            relocate(flat, state, u, dest, touched)
            devices[u] = dest
            room_bytes[sources[i]] += unit_bytes[u]
            room_bytes[dest] -= unit_bytes[u]


@inner
def undo(
    flat: Flat,
    state: RunState,
    devices: Ints,
    units: Ints,
    dest: int,
    room_bytes: Floats,
    unit_bytes: Floats,
    sources: Ints,
    touched: Ints,
) -> None:
    """Take back what `apply` did."""
    for i in range(units.size - 1, -1, -1):
        if sources[i] >= 0:
            u = units[i]
            relocate(flat, state, u, sources[i], touched)
            devices[u] = sources[i]
            room_bytes[sources[i]] -= unit_bytes[u]
            room_bytes[dest] += unit_bytes[u]


@inner
def first_of(sources: Ints) -> int:
    """The device that the first of those that move comes from."""
    for i in range(sources.size):
        if sources[i] >= 0:
            return int(sources[i])
    return -1


@inner
def group_of(unit: int, share: float, blocks: Parts, generator: Ints) -> int:
    """A random block of the unit with a chance of `share`, else -1 for the unit alone."""
    blocks_of_ptr, blocks_of = blocks[2], blocks[3]
    num = blocks_of_ptr[unit + 1] - blocks_of_ptr[unit]
    if num > 0 and uniform(generator) < share:
        return int(blocks_of[blocks_of_ptr[unit] + below(num, generator)])
    return -1


@inner
def members(unit: int, block: int, blocks: Parts, one: Ints) -> Ints:
    """The units of a block, or the unit alone, in `one`, where there is none."""
    if block < 0:
        one[0] = unit
        return one
    units: Ints = blocks[1][blocks[0][block] : blocks[0][block + 1]]
    return units


@inner
def fits(flat: Flat, state: RunState, workspace: Ints, room_bytes: Floats) -> bool:
    """Whether weights, state and values fit; if so the room is what they leave at their peak."""
    peaks = find_peaks(flat, state, workspace)
    for d in range(peaks.size):
        if peaks[d] > flat.limit_bytes[d]:
            return False
    for d in range(peaks.size):
        room_bytes[d] = flat.limit_bytes[d] - peaks[d]
    return True


@inner
def find_exchange(
    flat: Flat,
    devices: Ints,
    inside: Ints,
    blocks: Parts,
    bounds_bytes: tuple[float, float],
    ends: tuple[int, int],
    unit_bytes: Floats,
    sources: Ints,
    one: Ints,
    generator: Ints,
) -> tuple[int, int]:
    """A unit, and its block or -1, that can go from the device ends[0] to ends[1], with at least
    bounds_bytes[0], what must be freed there, and at most bounds_bytes[1], the room here; (-1, -1)
    where a few random ones do not.

    `sources` takes where its units come from.
    """
    for _ in range(EXCHANGES):
        unit = inside[below(inside.size, generator)]
        if devices[unit] != ends[0]:
            continue
        block = group_of(unit, EXCHANGED_BLOCKS, blocks, generator)
        units = members(unit, block, blocks, one)
        if find_sources(flat, devices, units, ends[1], ends[0], sources) == 0:
            continue
        if bounds_bytes[0] <= bytes_moved(units, sources, unit_bytes) <= bounds_bytes[1]:
            return int(unit), block
    return -1, -1


@inner
def write(
    trace: Trace,
    move: tuple[int, int, int, int, int],
    came: int,
    temperature_s: float,
    limit_s: float,
    values: Floats,
) -> None:
    """Write down what came of a move (`Trace`), as long as there is room."""
    row = trace.num[0]
    if row < trace.moves.shape[0]:
        for i in range(5):
            trace.moves[row, i] = move[i]
        trace.moves[row, 5] = came
        trace.figures[row, 0] = temperature_s
        trace.figures[row, 1] = limit_s
        trace.figures[row, 2] = values[0]
        trace.figures[row, 3] = values[1]
        trace.num[0] = row + 1


@inner
def pick(
    flat: Flat,
    state: RunState,
    inside: Ints,
    critical: Ints,
    num_critical: int,
    blocks: Parts,
    generator: Ints,
) -> tuple[int, int, int]:
    """A random unit, half of the time of the critical path; its block or -1; and a device."""
    unit = inside[below(inside.size, generator)]
    if num_critical > 0 and uniform(generator) < 0.5:
        unit = critical[below(num_critical, generator)]
    dest = below(flat.call_s.size, generator)
    if uniform(generator) < 0.4:
        near = neighbour_device(flat, state, unit, generator)
        dest = near if near >= 0 else dest
    return int(unit), group_of(unit, BLOCKS, blocks, generator), int(dest)


@inner
def temperature(heat: tuple[float, float], share: float) -> float:
    """Seconds after a share of the moves, falling by the same factor with each; 0 of a descent."""
    return heat[0] * (heat[1] / heat[0]) ** share if heat[1] > 0.0 else 0.0


@jit
def search(
    flat: Flat,
    state: RunState,
    chain: Parts,
    blocks: Parts,
    trace: Trace,
    num_moves: int,
    heat: tuple[float, float],
    throughput: bool,
    watch_memory: bool,
    window: tuple[Ints, int],
) -> None:
    """Make a number of moves of the units in `window`, whose kernels begin at a position.

    The temperature falls from heat[0] to heat[1] (in seconds); with heat[1] zero only moves that do
    not worsen the base are kept. `chain` is the search's own state; see search/chain.py. Half of
    the moves start at the critical path; most move a block. Where a device has no room for what
    should go there, something of it goes back to where that came from. What happened to the first
    moves is in `trace`, as far as it has room.
    """
    devices, best, values, counts, critical, generator, room_bytes, unit_bytes, workspace = chain
    num_devices, num_units = flat.call_s.size, devices.size
    inside, since_position = window
    sources, one = np.empty(num_units, dtype=np.int64), np.empty(1, dtype=np.int64)
    sources_back, one_back = np.empty(num_units, dtype=np.int64), np.empty(1, dtype=np.int64)
    touched = np.empty(num_devices, dtype=np.int64)
    for step in range(num_moves):
        if not throughput and counts[0] >= TRACE_EVERY:
            counts[1] = trace_critical(flat, state, critical, since_position)
            counts[0] = 0
        unit, block, dest = pick(flat, state, inside, critical, counts[1], blocks, generator)
        units = members(unit, block, blocks, one)
        chance = uniform(generator)
        if find_sources(flat, devices, units, dest, int(-1), sources) == 0:
            continue
        temperature_s = temperature(heat, step / num_moves)
        limit_s = values[0] - temperature_s * math.log(chance)
        needed = bytes_moved(units, sources, unit_bytes)
        back_unit, back_block, back_to = int(-1), int(-1), int(-1)
        if needed > room_bytes[dest]:
            back_to = first_of(sources[: units.size])
            bounds_bytes = (needed - room_bytes[dest], needed + room_bytes[back_to])
            back_unit, back_block = find_exchange(
                flat,
                devices,
                inside,
                blocks,
                bounds_bytes,
                (dest, back_to),
                unit_bytes,
                sources_back,
                one_back,
                generator,
            )
            if back_unit < 0:
                move = (unit, block, dest, back_unit, back_block)
                write(trace, move, int(NO_ROOM), temperature_s, limit_s, values)
                continue
        move = (unit, block, dest, back_unit, back_block)
        back = members(back_unit, back_block, blocks, one_back) if back_unit >= 0 else one_back[:0]
        touched[:] = state.order.size
        apply(flat, state, devices, back, back_to, room_bytes, unit_bytes, sources_back, touched)
        apply(flat, state, devices, units, dest, room_bytes, unit_bytes, sources, touched)
        since = int(0) if throughput else checkpoint_before(flat, state, touched)
        value_s = energy(flat, state, since, bool(False), limit_s, throughput)
        within, came = bool(True), int(REFUSED)
        if value_s <= limit_s:
            within = not watch_memory or fits(flat, state, workspace, room_bytes)
            # What lacks room is no base to go on from, unless the last one lacked it as well:
            # nothing better than it might ever fit.
            came = int(ACCEPTED) if within or counts[3] == 0 else int(NO_ROOM)
        if came < ACCEPTED:
            undo(flat, state, devices, units, dest, room_bytes, unit_bytes, sources, touched)
            undo(flat, state, devices, back, back_to, room_bytes, unit_bytes, sources_back, touched)
            write(trace, move, came, temperature_s, limit_s, values)
            continue
        values[0] = energy(flat, state, since, bool(True), np.inf, throughput)
        counts[0] += 1
        counts[3] = int(within)
        if within and values[0] < values[1] * (1 - 1e-12):
            values[1] = values[0]
            best[:] = devices
            counts[2] += 1
            came = int(BEST)
        write(trace, move, came, temperature_s, limit_s, values)
