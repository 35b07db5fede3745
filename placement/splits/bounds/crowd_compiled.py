"""Compiled search for the cheapest part of one accelerator that holds many of some units."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.graph import Ints
from placement.splits.model.contract import UnitArrays
from placement.splits.model.instance import Bools


@jit
def least_load(
    order: Ints,
    in_crowd: Bools,
    num_wanted: int,
    units: UnitArrays,
    upper_s: float,
    max_nodes: int,
) -> tuple[float, bool]:
    """Least load of a part with `num_wanted` units of a crowd at least, if below `upper_s`.

    Depth first over the units of `order`, in or out; nets with a unit on each side are paid, units
    still wanted cost their least work. False if `max_nodes` did not suffice.
    """
    acc_s, size_bytes, net_cost_s = units.acc_s, units.size_bytes, units.net_cost_s
    unit_ptr, unit_nets = units.unit_ptr, units.unit_nets
    num = len(order)
    rest_s = np.full((num + 1, num_wanted + 1), np.inf)
    rest_s[:, 0] = 0.0
    for i in range(num - 1, -1, -1):
        for r in range(1, num_wanted + 1):
            rest_s[i, r] = rest_s[i + 1, r]
            if in_crowd[order[i]]:
                rest_s[i, r] = min(rest_s[i, r], acc_s[order[i]] + rest_s[i + 1, r - 1])
    inside, outside = np.zeros(len(net_cost_s), np.int64), np.zeros(len(net_cost_s), np.int64)
    load = np.zeros(num + 1)
    size = np.zeros(num + 1)
    wanted = np.full(num + 1, num_wanted)
    tried = np.zeros(num + 1, np.int64)
    best, nodes, i = upper_s, 0, 0
    while i >= 0:
        if i < num and tried[i] > 0:
            # Take back the last decision on this unit.
            u = order[i]
            for p in range(unit_ptr[u], unit_ptr[u + 1]):
                if tried[i] == 1:
                    inside[unit_nets[p]] -= 1
                else:
                    outside[unit_nets[p]] -= 1
        if i == num or tried[i] == 2 or load[i] + rest_s[i, wanted[i]] >= best:
            if i == num and load[i] < best and wanted[i] == 0:
                best = load[i]
            tried[i] = 0
            i -= 1
            continue
        nodes += 1
        if nodes > max_nodes:
            return best, False
        tried[i] += 1
        u, put = order[i], tried[i] == 1
        load[i + 1], size[i + 1], wanted[i + 1] = load[i], size[i], wanted[i]
        if put:
            load[i + 1] += acc_s[u]
            size[i + 1] += size_bytes[u]
            wanted[i + 1] = max(0, wanted[i] - in_crowd[u])
        for p in range(unit_ptr[u], unit_ptr[u + 1]):
            net = unit_nets[p]
            if put:
                load[i + 1] += net_cost_s[net] * (inside[net] == 0 and outside[net] > 0)
                inside[net] += 1
            else:
                load[i + 1] += net_cost_s[net] * (outside[net] == 0 and inside[net] > 0)
                outside[net] += 1
        if size[i + 1] <= units.limit_bytes:
            i += 1
    return best, True
