"""Calls as few as data allow: each device runs all it can before the next goes on (compiled)."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.graph import Ints
from placement.simulator.flat import Flat


@jit
def longest_calls(flat: Flat, device: Ints, order: Ints, turns: Ints) -> Ints:
    """Segment of every kernel (K,), numbered as they run, where the devices take turns.

    In its turn a device runs in one call every kernel whose inputs are there, also those that only
    this call makes ready. `turns` lists devices, each once at least, and starts over at its end.
    For two devices one of the two beginnings gives the fewest calls there are.
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
    turn, segment, num_done = 0, 0, 0
    while num_done < num_kernels:
        d = turns[turn]
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
        turn = (turn + 1) % turns.size
    return segment_of
