"""Ranks of list schedulers: upward, downward, static level, and PEFT's optimistic cost table.

Means are over devices; see `placement.placers._lists.lists.mean_costs`.
"""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.simulator.flat import Flat


@jit
def upward(flat: Flat, mean_s: Floats, move_s: Floats, back_s: Floats) -> Floats:
    """rank(i) = w(i) + max over readers j of (c(i, j) + rank(j)).

    `mean_s` (K,) is compute, `move_s` (T,) a tensor's way to another device and `back_s` (T,) a
    model output's to the host. With moves of zero this is the static level.
    """
    ranks = np.zeros(mean_s.size)
    for k in range(mean_s.size - 1, -1, -1):
        longest = 0.0
        for i in range(flat.out_ptr[k], flat.out_ptr[k + 1]):
            t = flat.out_tensors[i]
            if flat.is_output[t]:
                longest = max(longest, back_s[t])
            for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
                longest = max(longest, move_s[t] + ranks[flat.consumers[c]])
        ranks[k] = mean_s[k] + longest
    return ranks


@jit
def downward(flat: Flat, mean_s: Floats, move_s: Floats, back_s: Floats) -> Floats:
    """rank(i) = max over the kernels j that i reads from of (rank(j) + w(j) + c(j, i)).

    `back_s` (T,) is also what a model input takes from the host; see `upward`.
    """
    ranks = np.zeros(mean_s.size)
    for k in range(mean_s.size):
        for i in range(flat.in_ptr[k], flat.in_ptr[k + 1]):
            t = flat.in_tensors[i]
            p = flat.producer[t]
            before_s = back_s[t] if p < 0 else ranks[p] + mean_s[p] + move_s[t]
            ranks[k] = max(ranks[k], before_s)
    return ranks


@jit
def optimistic_cost_table(flat: Flat, move_s: Floats) -> Floats:
    """OCT(i, p) = max over readers j of min over q of (OCT(j, q) + w(j, q) + c(i, j) if q != p).

    (K, D) seconds from the end of kernel i on device p to the end of the step at best. A model
    output counts its way back to the host; c is the mean `move_s` (T,). Devices that a reader's
    unit may not use are left out of the minimum.
    """
    num_kernels, num_devices = flat.compute_s.shape
    table = np.zeros((num_kernels, num_devices))
    to_go = np.full((num_kernels, num_devices), np.inf)
    least = np.zeros(num_kernels)
    for k in range(num_kernels - 1, -1, -1):
        for i in range(flat.out_ptr[k], flat.out_ptr[k + 1]):
            t = flat.out_tensors[i]
            for d in range(num_devices):
                if flat.is_output[t] and flat.host >= 0 and not flat.on_host[d]:
                    back_s = flat.move_s[d, flat.host]
                    back_s += flat.tensor_bytes[t] * flat.s_per_byte[d, flat.host]
                    table[k, d] = max(table[k, d], back_s)
            for c in range(flat.consumer_ptr[t], flat.consumer_ptr[t + 1]):
                j = flat.consumers[c]
                for d in range(num_devices):
                    table[k, d] = max(table[k, d], min(to_go[j, d], least[j] + move_s[t]))
        least[k] = np.inf
        for d in range(num_devices):
            if flat.allowed[flat.unit_of_kernel[k], d]:
                to_go[k, d] = table[k, d] + flat.compute_s[k, d]
                least[k] = min(least[k], to_go[k, d])
    return table
