"""Cutting an order of kernels at every crossing between devices (compiled)."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.graph import Ints
from placement.simulator.compiled.links import crosses, find_first_uses
from placement.simulator.flat import Flat
from placement.simulator.run_state import UNUSED


@jit
def cut(flat: Flat, device: Ints, order: Ints, position: Ints) -> Ints:
    """Segment of every kernel, numbered by their first kernel's place in the order.

    A kernel opens a segment where the one before it on its device was closed or where it is the
    first reader of a tensor that comes from elsewhere; it closes its segment where a tensor of its
    is sent elsewhere.
    """
    num_devices = flat.call_s.size
    producer, on_host, host = flat.producer, flat.on_host, flat.host
    in_ptr, in_tensors, out_ptr, out_tensors = (
        flat.in_ptr,
        flat.in_tensors,
        flat.out_ptr,
        flat.out_tensors,
    )
    first = np.empty(flat.producer.size * num_devices, dtype=np.int32)
    find_first_uses(flat, device, position, first)
    segment_of = np.empty(order.size, dtype=np.int64)
    current = np.full(num_devices, -1, dtype=np.int64)
    num_segments = 0
    for i in range(order.size):
        k = order[i]
        d = device[k]
        opens = flat.each_pays or current[d] < 0
        for j in range(in_ptr[k], in_ptr[k + 1]):
            t = in_tensors[j]
            if first[t * num_devices + d] == i and crosses(producer, device, on_host, host, t, d):
                opens = True
        if opens:
            current[d] = num_segments
            num_segments += 1
        segment_of[k] = current[d]
        for o in range(out_ptr[k], out_ptr[k + 1]):
            t = out_tensors[o]
            for e in range(num_devices):
                if e != d and first[t * num_devices + e] != UNUSED:
                    current[d] = -1
            if flat.is_output[t] and host >= 0 and not on_host[d]:
                current[d] = -1
    return segment_of
