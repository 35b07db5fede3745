"""Compiled values of many placements of a workload: the largest load, or a sample's seconds."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.annealing.sample_compiled import sample_s, slots_of
from placement.splits.model.contract import UnitArrays
from placement.splits.model.timing import TimedNodes


@jit
def largest_loads(placements: Ints, units: UnitArrays, overlap: bool, values_s: Floats) -> None:
    """Seconds of the busiest device of each placement (N, U); memory is not looked at.

    An accelerator that holds some but not all units of a net pays for it, beside its compute or,
    with `overlap`, meanwhile.
    """
    net_ptr, net_units, net_cost_s = units.net_ptr, units.net_units, units.net_cost_s
    num_accelerators, num_devices = units.num_accelerators, units.allowed.shape[1]
    compute_s, moving_s = np.zeros(num_devices), np.zeros(num_devices)
    seen = np.full(num_devices, -1, np.int64)
    for n in range(placements.shape[0]):
        compute_s[:] = 0.0
        moving_s[:] = 0.0
        for u in range(placements.shape[1]):
            d = placements[n, u]
            compute_s[d] += units.acc_s[u] if d < num_accelerators else units.cpu_s[u]
        seen[:] = -1
        for net in range(len(net_cost_s)):
            first = placements[n, net_units[net_ptr[net]]]
            is_cut = False
            for p in range(net_ptr[net] + 1, net_ptr[net + 1]):
                is_cut = is_cut or placements[n, net_units[p]] != first
            if is_cut:
                for p in range(net_ptr[net], net_ptr[net + 1]):
                    d = placements[n, net_units[p]]
                    if d < num_accelerators and seen[d] != net:
                        seen[d] = net
                        moving_s[d] += net_cost_s[net]
        most_s = 0.0
        for d in range(num_devices):
            both_s = max(compute_s[d], moving_s[d]) if overlap else compute_s[d] + moving_s[d]
            most_s = max(most_s, both_s)
        values_s[n] = most_s


@jit
def samples_s(
    placements: Ints, units: UnitArrays, nodes: TimedNodes, num_slots: int, values_s: Floats
) -> None:
    """Seconds of a sample for each placement (N, U) of units in slots, -1 for the CPUs.

    Infinite where calls wait for each other.
    """
    num = len(nodes.cpu_s)
    room, ready_s = np.zeros((5, num + num_slots), np.int64), np.zeros(num + num_slots)
    for n in range(placements.shape[0]):
        slots = slots_of(placements[n], units, nodes, num_slots)
        values_s[n] = sample_s(
            placements[n], slots.call_s, slots.nodes_in, 1, nodes.cpu_s, nodes, room, ready_s
        )
