"""The simulator where devices do not slow each other down: one pass over the order (compiled).

Each device runs its kernels in the order, each as soon as the device is free and its inputs have
arrived, so a kernel's times follow from those before it in the order. Devices with one engine are
free together.
"""

import numpy as np

from placement.compiled.jit import inner
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
from placement.simulator.run_state import STRIDE, RunState


@inner
def run_in_order(flat: Flat, state: RunState, since: int, save: bool, limit_s: float) -> float:
    """Seconds of the step, run from checkpoint `since`; infinite once it must exceed `limit_s`.

    With `save` the run becomes the base of later trials, else the base stays as it is (which a
    machine with wide devices needs).
    """
    # Arrays are bound once: taking one out of a tuple counts a reference, each time.
    device, order, position, first = state.device, state.order, state.position, state.first
    base_s, load_s, tail_s = state.arrived_s, state.load_s, state.tail_s
    start_of, end_of = state.start_s, state.end_s
    written_s = base_s if save else state.trial_s
    in_ptr, in_tensors, out_ptr, out_tensors = (
        flat.in_ptr,
        flat.in_tensors,
        flat.out_ptr,
        flat.out_tensors,
    )
    producer, compute_s, call_s, wide = flat.producer, flat.compute_s, flat.call_s, flat.wide
    on_host, host, each_pays, engine = flat.on_host, flat.host, flat.each_pays, flat.engine
    ways, details, has_overhead = ways_of(flat), details_of(state), flat.has_overhead
    num_devices = call_s.size
    times_s, places = np.empty(state.times_s.shape[1]), np.empty(state.places.shape[1], np.int64)
    restored(state, since, times_s, places, num_devices)
    free_s, done_s = times_s[:num_devices], times_s[2 * num_devices : 3 * num_devices]
    link_free_s, opened = times_s[3 * num_devices : -3], places[:num_devices]
    link_last, step_s = places[3 * num_devices : -1], times_s[-1]
    begin, checks = since * STRIDE, save and state.times_s.shape[0] > 0
    for i in range(begin, order.size):
        if checks and i % STRIDE == 0:
            times_s[-1] = step_s
            kept(state, i // STRIDE, times_s, places)
        if i == 0:
            step_s = send_inputs(flat, details, first, written_s, link_free_s, link_last)
        k = order[i]
        d = device[k]
        start_s = 0.0 if wide[d] else free_s[engine[d]]
        called = each_pays or opened[d] == 0
        for j in range(in_ptr[k], in_ptr[k + 1]):
            t = in_tensors[j]
            at = t * num_devices + d
            p = producer[t]
            if not crosses(producer, device, on_host, host, t, d):
                # Elsewhere this follows from the device being free.
                if wide[d] and p >= 0:
                    start_s = max(start_s, end_of[p])
            elif first[at] == i or wide[d]:
                again = position[p] >= begin if p >= 0 else begin == 0
                start_s = max(start_s, written_s[at] if again else base_s[at])
                called = True
        work_s = compute_s[k, d]
        end_s = start_s + ((call_s[d] + work_s) if called else work_s)
        if has_overhead:
            end_s += overhead_s(flat, device, position, first, k, d)
        free_s[engine[d]] = end_s
        done_s[d] += work_s
        step_s = max(step_s, end_s)
        at_least_s = end_s + max(tail_s[k], load_s[d] - done_s[d])
        if at_least_s > limit_s * (1 + 1e-9):
            return np.inf
        if save:
            start_of[k], end_of[k] = start_s, end_s
        opened[d] = 1
        for o in range(out_ptr[k], out_ptr[k + 1]):
            t = out_tensors[o]
            arrival_s = send(ways, details, first, t, d, end_s, written_s, link_free_s, link_last)
            if arrival_s >= 0.0:
                opened[d] = 0
                step_s = max(step_s, arrival_s)
    return float(step_s)
