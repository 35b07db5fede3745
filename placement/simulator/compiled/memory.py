"""Bytes that each device needs when segments run one after another (compiled).

The definition is `needed_bytes` in `core.violations`: weights, state, what a segment holds for
itself, and every tensor that leaves one from there to the last segment that reads it, on each
device that has a copy; what streams takes room while its kernel runs, and devices with one memory
fill it together. For throughput there is state for each request in flight.
"""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.compiled.segments import cut
from placement.simulator.flat import Flat
from placement.simulator.run_state import RunState


@jit
def num_stages(flat: Flat, device: Ints, order: Ints, segment_of: Ints) -> int:
    """Stages of a pipeline of these segments: one more behind each crossing between devices."""
    stage = np.zeros(order.size + 1, dtype=np.int64)
    for i in range(order.size):
        k = order[i]
        s = segment_of[k]
        for j in range(flat.in_ptr[k], flat.in_ptr[k + 1]):
            p = flat.producer[flat.in_tensors[j]]
            if p >= 0:
                crosses = flat.engine[device[p]] != flat.engine[device[k]]
                stage[s] = max(stage[s], stage[segment_of[p]] + (1 if crosses else 0))
    return int(stage.max()) + 1


@jit
def inner_peaks(
    flat: Flat, state: RunState, segment_of: Ints, made: Floats, gone: Floats, scratch: Ints
) -> Floats:
    """Most bytes that each segment (S,) holds for itself: `inner_peak_bytes` of `core.violations`.

    `made` and `gone` (K,) are bytes of values inside of segments by the kernel that makes them and
    the one behind which they are let go, `scratch` (K,) is workspace.
    """
    device, order = state.device, state.order
    num_segments = segment_of.max() + 1 if order.size else 0
    peaks, live = np.zeros(num_segments), np.zeros(num_segments)
    for k in order:
        s, d = segment_of[k], device[k]
        arriving = flat.param_bytes[k] if flat.weights_in[d] != flat.values_in[d] else 0.0
        live[s] += made[k]
        peaks[s] = max(peaks[s], live[s] + scratch[k] + arriving)
        live[s] -= gone[k]
    return peaks


@jit
def find_peaks(flat: Flat, state: RunState, workspace_bytes: Ints) -> Floats:
    """Bytes that each device (D,) needs under the placement in `state`, cut at every crossing."""
    device, order = state.device, state.order
    engine, values_in, weights_in = flat.engine, flat.values_in, flat.weights_in
    producer, consumer_ptr, consumers = flat.producer, flat.consumer_ptr, flat.consumers
    tensor_bytes, is_output = flat.tensor_bytes, flat.is_output
    num_devices = flat.call_s.size
    weights = np.zeros(num_devices)
    state_bytes = np.zeros(num_devices)
    for k in range(order.size):
        weights[weights_in[device[k]]] += flat.param_bytes[k]
        state_bytes[values_in[device[k]]] += flat.state_bytes[k]
    has_requests = flat.pipelined and state_bytes.any()
    if not (flat.live_memory or has_requests):
        return weights + state_bytes
    segment_of = cut(flat, device, order, state.position)
    num_segments = segment_of.max() + 1 if order.size else 0
    weights += state_bytes * (num_stages(flat, device, order, segment_of) if has_requests else 1)
    if not flat.live_memory:
        return weights
    position = state.position
    changes = np.zeros((num_devices, num_segments + 1))
    until = np.empty(num_devices, dtype=np.int64)
    made_bytes, gone_bytes = np.zeros(order.size), np.zeros(order.size)
    for t in range(producer.size):
        p = producer[t]
        made, last_at = (segment_of[p], position[p]) if p >= 0 else (0, -1)
        stays = p >= 0 and not is_output[t]
        until[:] = -1
        for c in range(consumer_ptr[t], consumer_ptr[t + 1]):
            r = consumers[c]
            s, e = segment_of[r], engine[device[r]]
            stays = stays and s == made
            last_at = max(last_at, position[r])
            until[e] = max(until[e], s)
        if stays:
            made_bytes[p] += tensor_bytes[t]
            gone_bytes[order[last_at]] += tensor_bytes[t]
            continue
        if p >= 0:
            e = engine[device[p]]
            until[e] = max(until[e], made, until.max())
            if is_output[t] and flat.host >= 0 and not flat.on_host[device[p]]:
                until[flat.host] = max(until[flat.host], made)
        for d in range(num_devices):
            if until[d] >= 0:
                gone = num_segments if is_output[t] else until[d] + 1
                changes[values_in[d], made] += tensor_bytes[t]
                changes[values_in[d], gone] -= tensor_bytes[t]
    inner = inner_peaks(flat, state, segment_of, made_bytes, gone_bytes, workspace_bytes)
    runs_on = np.empty(num_segments, dtype=np.int64)
    for k in range(order.size):
        runs_on[segment_of[k]] = values_in[device[k]]
    peaks = np.zeros(num_devices)
    held = np.zeros(num_devices)
    for s in range(num_segments):
        for d in range(num_devices):
            held[d] += changes[d, s]
            peaks[d] = max(peaks[d], held[d] + (inner[s] if runs_on[s] == d else 0.0))
    return weights + peaks
