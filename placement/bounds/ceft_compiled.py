"""The tables of CEFT and of its mirror image, compiled: one pass over the kernels each."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.simulator.flat import Flat


@jit
def earliest_finish(flat: Flat) -> Floats:
    """(K, D): no schedule ends kernel k on device d before this; infinite where not allowed."""
    finish = np.full(flat.compute_s.shape, np.inf)
    for k in range(flat.compute_s.shape[0]):
        finish_of(flat, finish, k)
    return finish


@jit
def finish_of(flat: Flat, finish: Floats, k: int) -> None:
    """Write kernel k's row of the table, from the rows of what it reads from."""
    for d in range(finish.shape[1]):
        if not flat.allowed[flat.unit_of_kernel[k], d]:
            continue
        ready = 0.0
        for i in range(flat.in_ptr[k], flat.in_ptr[k + 1]):
            ready = max(ready, arrival(flat, finish, flat.in_tensors[i], d))
        finish[k, d] = ready + flat.compute_s[k, d]


@jit
def arrival(flat: Flat, finish: Floats, t: int, d: int) -> float:
    """Earliest time of tensor t on device d, sent from the producer's best device for it."""
    producer = flat.producer[t]
    if producer < 0:
        return move(flat, t, flat.host, d) if flat.host >= 0 and not flat.on_host[d] else 0.0
    earliest = np.inf
    for src in range(finish.shape[1]):
        earliest = min(earliest, finish[producer, src] + move(flat, t, src, d))
    return earliest


@jit
def move(flat: Flat, t: int, src: int, dst: int) -> float:
    """Seconds of tensor t from one device to another."""
    if src == dst:
        return 0.0
    return float(flat.move_s[src, dst] + flat.tensor_bytes[t] * flat.s_per_byte[src, dst])


@jit
def back_home(flat: Flat, t: int, d: int) -> float:
    """Seconds of a tensor from device d to the host, if it is a model output that has to go."""
    if not flat.is_output[t] or flat.host < 0 or flat.on_host[d]:
        return 0.0
    return move(flat, t, d, flat.host)


@jit
def latest_rest(flat: Flat) -> Floats:
    """(K, D): from the end of kernel k on device d no schedule ends the step in less."""
    num_kernels, num_devices = flat.compute_s.shape
    rest = np.full((num_kernels, num_devices), np.inf)
    for k in range(num_kernels - 1, -1, -1):
        for d in range(num_devices):
            if not flat.allowed[flat.unit_of_kernel[k], d]:
                continue
            longest = 0.0
            for i in range(flat.out_ptr[k], flat.out_ptr[k + 1]):
                t = flat.out_tensors[i]
                longest = max(longest, back_home(flat, t, d))
                for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
                    reader, shortest = flat.consumers[c], np.inf
                    for dst in range(num_devices):
                        after = flat.compute_s[reader, dst] + rest[reader, dst]
                        shortest = min(shortest, move(flat, t, d, dst) + after)
                    longest = max(longest, shortest)
            rest[k, d] = longest
    return rest
