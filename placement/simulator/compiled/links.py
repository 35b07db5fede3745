"""Transfers of the simulator: who waits for which tensor, and when tensors arrive (compiled).

A tensor crosses once per device that reads it; a link is a first-in first-out channel for each
direction. Because a link's tensors all leave one device, and leave in the order in which that
device runs, the order on the link is known when the sender ends. Links of one network card share a
channel, which is given its tensors as the clock goes on (by_events.py).
"""

import numpy as np

from placement.compiled.jit import inlined, inner, jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.flat import Flat
from placement.simulator.run_state import UNUSED, Flags, Parts, RunState, Uses


@jit
def find_first_uses(flat: Flat, device: Ints, position: Ints, first: Uses) -> None:
    """Position of each tensor's first reader on each device."""
    num_devices = flat.call_s.size
    first[:] = UNUSED
    for t in range(flat.producer.size):
        for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
            k = flat.consumers[c]
            i = t * num_devices + device[k]
            first[i] = min(first[i], position[k])


@inner
def find_first_use(flat: Flat, device: Ints, position: Ints, first: Uses, t: int, d: int) -> None:
    """The same for one tensor and device, after a reader has moved."""
    found = UNUSED
    for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
        k = flat.consumers[c]
        if device[k] == d:
            found = min(found, position[k])
    first[t * flat.call_s.size + d] = found


@inner
def ways_of(flat: Flat) -> Parts:
    """The parts of a problem that `send` reads, taken out once before a loop.

    Each one more makes all simulations slower: what `overhead_s` reads it takes out itself.
    """
    return (
        flat.way_s,
        flat.way_s_per_byte,
        flat.tensor_bytes,
        flat.is_output,
        flat.on_host,
        flat.host,
        flat.one_at_a_time,
        flat.channel,
    )


@inner
def details_of(state: RunState) -> Parts:
    """The parts of a state that `send` writes if a timeline is wanted."""
    return state.sent_s, state.behind, state.sent_s.size > 0


@inlined
def crosses(producer: Ints, device: Ints, on_host: Flags, host: int, t: int, d: int) -> bool:
    """Whether tensor t is made elsewhere than on d; a model input waits in the host's memory."""
    p = producer[t]
    if p >= 0:
        return bool(device[p] != d)
    return bool(host >= 0 and not on_host[d])


@inlined
def send(
    ways: Parts,
    details: Parts,
    first: Uses,
    t: int,
    d: int,
    now_s: float,
    arrived_s: Floats,
    link_free_s: Floats,
    link_last: Ints,
) -> float:
    """Send tensor t from d to all who read it elsewhere; the last arrival, or -1 if none is.

    A model output that is made on a device with memory of its own goes back to the host.
    """
    way_s, way_s_per_byte, tensor_bytes, is_output, on_host, host, one_at_a_time, channel = ways
    sent_s, behind_of, detail = details
    num_devices = on_host.size
    returns_to = host if is_output[t] and not on_host[d] else -1
    latest_s = -1.0
    for e in range(num_devices):
        i = t * num_devices + e
        if e != d and (first[i] != UNUSED or e == returns_to):
            link = channel[d * num_devices + e]
            start_s = now_s
            behind = -1
            if one_at_a_time and link_free_s[link] > now_s:
                start_s = link_free_s[link]
                behind = link_last[link]
            # For the rest of it sender and receiver are held up: `overhead_s`.
            arrival_s = start_s + (way_s[d, e] + tensor_bytes[t] * way_s_per_byte[d, e])
            link_free_s[link] = arrival_s
            link_last[link] = i
            arrived_s[i] = arrival_s
            latest_s = max(latest_s, arrival_s)
            if detail:
                sent_s[i] = start_s
                behind_of[i] = behind
    return latest_s


@inner
def overhead_s(flat: Flat, device: Ints, position: Ints, first: Uses, k: int, d: int) -> float:
    """Seconds for which kernel k's device d is held up by what k is the first there to read of
    other devices, and by sending on what it makes.

    What only returns to the host holds up nobody there: all of it is the sender's.
    """
    overhead, move_s, s_per_byte, on_host = (
        flat.overhead,
        flat.move_s,
        flat.s_per_byte,
        flat.on_host,
    )
    num_devices = on_host.size
    seconds = 0.0
    for j in range(flat.in_ptr[k], flat.in_ptr[k + 1]):
        t = flat.in_tensors[j]
        p = flat.producer[t]
        if p >= 0 and device[p] != d and first[t * num_devices + d] == position[k]:
            e = device[p]
            whole_s = move_s[e, d] + flat.tensor_bytes[t] * s_per_byte[e, d]
            seconds += overhead[1, e, d] * whole_s
    for o in range(flat.out_ptr[k], flat.out_ptr[k + 1]):
        t = flat.out_tensors[o]
        returns_to = flat.host if flat.is_output[t] and not on_host[d] else -1
        for e in range(num_devices):
            is_read = first[t * num_devices + e] != UNUSED
            if e != d and (is_read or e == returns_to):
                whole_s = move_s[d, e] + flat.tensor_bytes[t] * s_per_byte[d, e]
                seconds += overhead[0, d, e] * whole_s
                if not is_read:
                    seconds += overhead[1, d, e] * whole_s
    return seconds


@inner
def send_inputs(
    flat: Flat,
    details: Parts,
    first: Uses,
    arrived_s: Floats,
    link_free_s: Floats,
    link_last: Ints,
) -> float:
    """Send the model inputs at time 0 to the devices with memory of their own; the last arrival."""
    producer, tensor_bytes, on_host, host = (
        flat.producer,
        flat.tensor_bytes,
        flat.on_host,
        flat.host,
    )
    move_s, s_per_byte, one_at_a_time, channel = (
        flat.move_s,
        flat.s_per_byte,
        flat.one_at_a_time,
        flat.channel,
    )
    sent_s, behind_of, detail = details
    num_devices = on_host.size
    latest_s = 0.0
    if host < 0:
        return latest_s
    for t in range(producer.size):
        if producer[t] >= 0:
            continue
        for e in range(num_devices):
            i = t * num_devices + e
            if on_host[e] or first[i] == UNUSED:
                continue
            link = channel[host * num_devices + e]
            start_s = link_free_s[link] if one_at_a_time else 0.0
            if detail:
                sent_s[i] = start_s
                behind_of[i] = link_last[link] if start_s > 0.0 else -1
            arrived_s[i] = start_s + (move_s[host, e] + tensor_bytes[t] * s_per_byte[host, e])
            link_free_s[link] = arrived_s[i]
            link_last[link] = i
            latest_s = max(latest_s, arrived_s[i])
    return latest_s


@jit
def find_tails(flat: Flat, tail_s: Floats) -> None:
    """Least seconds from each kernel's end to the end of the step: the longest path after it."""
    num_devices = flat.call_s.size
    for k in range(tail_s.size - 1, -1, -1):
        longest_s = 0.0
        for o in range(flat.out_ptr[k], flat.out_ptr[k + 1]):
            t = flat.out_tensors[o]
            for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
                r = flat.consumers[c]
                least_s = np.inf
                for d in range(num_devices):
                    if flat.allowed[flat.unit_of_kernel[r], d]:
                        least_s = min(least_s, flat.compute_s[r, d])
                longest_s = max(longest_s, least_s + tail_s[r])
        tail_s[k] = longest_s
