"""The simulator where host devices share memory bandwidth: from event to event (compiled).

While n host devices compute, each is slower by contention * (n - 1); so times depend on what runs
at the same time elsewhere, and the run follows the clock instead of the order. The loop is one long
function because handing its arrays over for every event makes it half as slow again.
"""

import numpy as np

from placement.compiled.jit import inlined, inner
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.compiled.checkpoints import kept, restored
from placement.simulator.compiled.links import (
    crosses,
    details_of,
    overhead_s,
    send,
    send_inputs,
    ways_of,
)
from placement.simulator.flat import Flat
from placement.simulator.run_state import STRIDE, Flags, Parts, RunState


@inlined
def next_of(order: Ints, device: Ints, d: int, i: int) -> int:
    """First position from i on that belongs to device d."""
    while i < order.size and device[order[i]] != d:
        i += 1
    return i


@inlined
def when_ready(
    reads: Parts,
    orders: Parts,
    arrivals: Parts,
    d: int,
    free_s: Floats,
    next_at: Ints,
    running: Ints,
    since_at: Ints,
    begun: bool,
) -> tuple[float, bool]:
    """When device d's next kernel has all it waits for, infinite while that is open or none is
    left; and whether something crosses for it."""
    in_ptr, in_tensors, producer, on_host, host = reads
    order, device, position, first = orders
    base_s, written_s = arrivals
    i = next_at[d]
    ready_s, fresh = np.inf, False
    if i < order.size:
        k = order[i]
        ready_s = free_s[d]
        for j in range(in_ptr[k], in_ptr[k + 1]):
            t = in_tensors[j]
            at = t * on_host.size + d
            if first[at] == i and crosses(producer, device, on_host, host, t, d):
                fresh = True
                p = producer[t]
                again = begun
                if p >= 0:
                    q = device[p]
                    again = position[p] >= since_at[q]
                    if position[p] >= next_at[q] or running[q] == p:
                        ready_s = np.inf
                ready_s = max(ready_s, written_s[at] if again else base_s[at])
    return ready_s, fresh


@inlined
def share(
    contention: float,
    on_host: Flags,
    running: Ints,
    ends_s: Floats,
    now_s: float,
    busy: int,
    rate: float,
) -> float:
    """The rate at which host devices compute now, with the ends of what runs put off to it."""
    new_rate = 1.0 / (1.0 + contention * max(0, busy - 1))
    if new_rate != rate:
        for e in range(running.size):
            if running[e] >= 0 and on_host[e]:
                ends_s[e] = now_s + (ends_s[e] - now_s) * rate / new_rate
    return new_rate


@inner
def run_by_events(flat: Flat, state: RunState, since: int, save: bool, limit_s: float) -> float:
    """Seconds of the step, run from checkpoint `since`; infinite once it must exceed `limit_s`.

    With `save` the run becomes the base of later trials, else the base stays as it is.
    """
    # Arrays are bound once: taking one out of a tuple counts a reference, each time.
    device, order, position, first = state.device, state.order, state.position, state.first
    written_s = state.arrived_s if save else state.trial_s
    load_s, tail_s, start_of, end_of = state.load_s, state.tail_s, state.start_s, state.end_s
    out_ptr, out_tensors, compute_s, call_s = (
        flat.out_ptr,
        flat.out_tensors,
        flat.compute_s,
        flat.call_s,
    )
    on_host, contention, each_pays = flat.on_host, flat.contention, flat.each_pays
    reads = (flat.in_ptr, flat.in_tensors, flat.producer, on_host, flat.host)
    orders, arrivals = (order, device, position, first), (state.arrived_s, written_s)
    ways, details, begun = ways_of(flat), details_of(state), since == 0
    has_overhead = flat.has_overhead
    num_kernels, num_devices = compute_s.shape
    times_s, places = np.empty(state.times_s.shape[1]), np.empty(state.places.shape[1], np.int64)
    restored(state, since, times_s, places, num_devices)
    free_s, ends_s = times_s[:num_devices], times_s[num_devices : 2 * num_devices]
    done_s, link_free_s = times_s[2 * num_devices : 3 * num_devices], times_s[3 * num_devices : -3]
    opened, running = places[:num_devices], places[num_devices : 2 * num_devices]
    next_at, link_last = places[2 * num_devices : 3 * num_devices], places[3 * num_devices : -1]
    now_s, rate, step_s, busy = times_s[-3], times_s[-2], times_s[-1], places[-1]
    if begun:
        step_s = send_inputs(flat, details, first, written_s, link_free_s, link_last)
    # Kernels at these positions and later end in this run.
    since_at = np.empty(num_devices, dtype=np.int64)
    ready_s, fresh = np.full(num_devices, np.inf), np.zeros(num_devices, dtype=np.bool_)
    for d in range(num_devices):
        next_at[d] = next_of(order, device, d, next_at[d])
        since_at[d] = next_at[d] if running[d] < 0 else position[running[d]]
    for d in range(num_devices):
        if running[d] < 0:
            ready_s[d], fresh[d] = when_ready(
                reads, orders, arrivals, d, free_s, next_at, running, since_at, begun
            )
    num_ended, ended_here = since * STRIDE, True
    checks = save and state.times_s.shape[0] > 0
    while num_ended < num_kernels:
        if checks and ended_here and num_ended % STRIDE == 0:
            times_s[-3], times_s[-2], times_s[-1], places[-1] = now_s, rate, step_s, busy
            kept(state, num_ended // STRIDE, times_s, places)
        ended_here = False
        d, event_s = -1, np.inf
        for e in range(num_devices):
            at_s = ends_s[e] if running[e] >= 0 else max(ready_s[e], now_s)
            if at_s < event_s:
                d, event_s = e, at_s
        if d < 0:
            return np.inf
        now_s = event_s
        if running[d] >= 0:
            k, ended_here = running[d], True
            running[d] = -1
            num_ended += 1
            free_s[d] = now_s
            done_s[d] += compute_s[k, d]
            step_s = max(step_s, now_s)
            if now_s + max(tail_s[k], load_s[d] - done_s[d]) > limit_s * (1 + 1e-9):
                return np.inf
            if save:
                end_of[k] = now_s
            for o in range(out_ptr[k], out_ptr[k + 1]):
                t = out_tensors[o]
                arrival_s = send(
                    ways, details, first, t, d, now_s, written_s, link_free_s, link_last
                )
                if arrival_s >= 0.0:
                    opened[d] = 0
                    step_s = max(step_s, arrival_s)
            for e in range(num_devices):
                if running[e] < 0 and (e == d or ready_s[e] == np.inf):
                    ready_s[e], fresh[e] = when_ready(
                        reads, orders, arrivals, e, free_s, next_at, running, since_at, begun
                    )
        elif on_host[d]:
            busy += 1
        # A device that goes straight on stays busy, so that others keep their rate.
        if ready_s[d] <= now_s:
            k = order[next_at[d]]
            running[d] = k
            next_at[d] = next_of(order, device, d, next_at[d] + 1)
            work_s = compute_s[k, d]
            if each_pays or fresh[d] or opened[d] == 0:
                work_s += call_s[d]
            if has_overhead:
                work_s += overhead_s(flat, device, position, first, k, d)
            opened[d], ready_s[d] = 1, np.inf
            if save:
                start_of[k] = now_s
            ends_s[d] = now_s + work_s
            if on_host[d]:
                ends_s[d] = now_s
                rate = share(contention, on_host, running, ends_s, now_s, busy, rate)
                ends_s[d] = now_s + work_s / rate
        elif on_host[d]:
            busy -= 1
            rate = share(contention, on_host, running, ends_s, now_s, busy, rate)
    return float(step_s)
