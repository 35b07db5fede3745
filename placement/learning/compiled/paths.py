"""Longest paths through units and what they send each other, before any is placed (compiled)."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints


@jit
def longest_paths(
    order: Ints,
    mean_s: Floats,
    net_s: Floats,
    out_ptr: Ints,
    out_nets: Ints,
    reader_ptr: Ints,
    readers: Ints,
) -> tuple[Floats, Floats]:
    """Seconds from each unit's start to the end, and from the start to it, along an order (U,).

    Readers that come before their maker in the order are left out.
    """
    rank_s, depth_s = np.zeros(order.size), np.zeros(order.size)
    place = np.empty(order.size, np.int64)
    for i in range(order.size):
        place[order[i]] = i
    for i in range(order.size - 1, -1, -1):
        u = order[i]
        longest_s = 0.0
        for o in range(out_ptr[u], out_ptr[u + 1]):
            n = out_nets[o]
            for r in range(reader_ptr[n], reader_ptr[n + 1]):
                if place[readers[r]] > i:
                    longest_s = max(longest_s, net_s[n] + rank_s[readers[r]])
        rank_s[u] = mean_s[u] + longest_s
    for i in range(order.size):
        u = order[i]
        for o in range(out_ptr[u], out_ptr[u + 1]):
            n = out_nets[o]
            for r in range(reader_ptr[n], reader_ptr[n + 1]):
                if place[readers[r]] > i:
                    after_s = depth_s[u] + mean_s[u] + net_s[n]
                    depth_s[readers[r]] = max(depth_s[readers[r]], after_s)
    return rank_s, depth_s


@jit
def optimistic_costs(
    order: Ints,
    work_s: Floats,
    net_s: Floats,
    out_ptr: Ints,
    out_nets: Ints,
    reader_ptr: Ints,
    readers: Ints,
) -> Floats:
    """PEFT's table (U, D): seconds from a unit's end on each device to the end of the step at best.

    Readers that come before their maker in the order are left out.
    """
    num_units, num_devices = work_s.shape
    table = np.zeros((num_units, num_devices))
    place, least_s = np.empty(num_units, np.int64), np.full(num_units, np.inf)
    for i in range(num_units):
        place[order[i]] = i
    for i in range(num_units - 1, -1, -1):
        u = order[i]
        for o in range(out_ptr[u], out_ptr[u + 1]):
            n = out_nets[o]
            for r in range(reader_ptr[n], reader_ptr[n + 1]):
                v = readers[r]
                if place[v] > i:
                    for d in range(num_devices):
                        here_s = min(table[v, d] + work_s[v, d], least_s[v] + net_s[n])
                        table[u, d] = max(table[u, d], here_s)
        for d in range(num_devices):
            least_s[u] = min(least_s[u], table[u, d] + work_s[u, d])
    return table
