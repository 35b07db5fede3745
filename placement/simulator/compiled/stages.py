"""Calls as few as data allow: each device runs all it can before the next goes on (compiled)."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.graph import Ints
from placement.simulator.flat import Flat


@jit
def longest_calls(flat: Flat, device: Ints, order: Ints, first: int) -> Ints:
    """Segment of every kernel (K,), numbered as they run, where the devices take turns.

    In its turn a device runs in one call every kernel whose inputs are there, also those that only
    this call makes ready. The turns begin with device `first`. For two devices one of the two
    beginnings gives the fewest calls there are.
    """
    num_kernels, num_devices = order.size, flat.call_s.size
    waits_for = np.zeros(num_kernels, dtype=np.int64)
    for t in range(flat.producer.size):
        if flat.producer[t] >= 0:
            for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
                waits_for[flat.consumers[c]] += 1
    # The ready kernels of each device: a stack that starts at top[d] and is linked by `below`.
    top, below = np.full(num_devices, -1, dtype=np.int64), np.full(num_kernels, -1, dtype=np.int64)
    for i in range(num_kernels - 1, -1, -1):
        k = order[i]
        if waits_for[k] == 0:
            below[k], top[device[k]] = top[device[k]], k
    segment_of = np.full(num_kernels, -1, dtype=np.int64)
    d, segment, num_done = first, 0, 0
    while num_done < num_kernels:
        if top[d] >= 0:
            while top[d] >= 0:
                k = top[d]
                top[d] = below[k]
                segment_of[k] = segment
                num_done += 1
                for o in range(flat.out_ptr[k], flat.out_ptr[k + 1]):
                    t = flat.out_tensors[o]
                    for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
                        reader = flat.consumers[c]
                        waits_for[reader] -= 1
                        if waits_for[reader] == 0:
                            below[reader], top[device[reader]] = top[device[reader]], reader
            segment += 1
        d = (d + 1) % num_devices
    return segment_of
