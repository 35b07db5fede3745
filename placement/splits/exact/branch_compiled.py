"""Compiled branch and bound over devices of units, in steps that can be continued.

The search is one function because handing the tree over at every node doubles its time.
"""

from typing import NamedTuple

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.contract import UnitArrays


class Tree(NamedTuple):
    """Where a search stands: depth (1,), choices by depth (U,), loads and bytes there (U + 1, D).

    `opened` (U + 1,) counts accelerators in use; `held` (T, D) and `seen` (T,) the units of each
    net that have a device.
    """

    depth: Ints
    choice: Ints
    load_s: Floats
    held_bytes: Floats
    opened: Ints
    held: Ints
    seen: Ints


@jit
def branch(
    tree: Tree,
    order: Ints,
    units: UnitArrays,
    alike: bool,
    work_s: Floats,
    limit_bytes: Floats,
    rest_s: Floats,
    best: Ints,
    best_s: float,
    max_nodes: int,
) -> tuple[float, bool]:
    """Search on for `max_nodes` nodes; the best largest load, and whether the search is complete.

    Units of `order` get devices one after another, the first new accelerator only where they are
    `alike`. A net is paid by each accelerator that holds some, not all, of its units so far.
    `rest_s[i]` is accelerator work that the units from i on leave at least.
    """
    num, num_devices = len(order), tree.load_s.shape[1]
    depth, choice, load_s, held_bytes = tree.depth, tree.choice, tree.load_s, tree.held_bytes
    held, seen, num_accelerators = tree.held, tree.seen, units.num_accelerators
    allowed, size_bytes, net_cost_s = units.allowed, units.size_bytes, units.net_cost_s
    unit_ptr, unit_nets = units.unit_ptr, units.unit_nets
    nodes = 0
    while depth[0] >= 0:
        i = depth[0]
        if i == num:
            best_s = load_s[i].max()
            for at in range(num):
                best[order[at]] = choice[at]
            depth[0] -= 1
            continue
        u = order[i]
        if choice[i] >= 0:
            for p in range(unit_ptr[u], unit_ptr[u + 1]):
                held[unit_nets[p], choice[i]] -= 1
                seen[unit_nets[p]] -= 1
        d = choice[i] + 1
        while d < num_devices:
            unopened = alike and tree.opened[i] < d < num_accelerators
            room = held_bytes[i, d] + size_bytes[u] <= limit_bytes[d]
            better = load_s[i, d] + work_s[u, d] < best_s
            if not unopened and allowed[u, d] and room and better:
                break
            d += 1
        if d == num_devices:
            choice[i] = -1
            depth[0] -= 1
            continue
        nodes += 1
        choice[i] = d
        load_s[i + 1] = load_s[i]
        held_bytes[i + 1] = held_bytes[i]
        load_s[i + 1, d] += work_s[u, d]
        held_bytes[i + 1, d] += size_bytes[u]
        opened = tree.opened[i]
        tree.opened[i + 1] = opened + 1 if opened == d and d < num_accelerators else opened
        for p in range(unit_ptr[u], unit_ptr[u + 1]):
            net = unit_nets[p]
            if seen[net] > 0:
                if held[net, d] == 0 and d < num_accelerators:
                    load_s[i + 1, d] += net_cost_s[net]
                for e in range(num_accelerators):
                    if e != d and held[net, e] == seen[net]:
                        load_s[i + 1, e] += net_cost_s[net]
            held[net, d] += 1
            seen[net] += 1
        room_s = 0.0
        for e in range(num_accelerators):
            room_s += best_s - load_s[i + 1, e]
        if load_s[i + 1].max() < best_s and rest_s[i + 1] < room_s:
            depth[0] += 1
        if nodes >= max_nodes:
            return best_s, False
    return best_s, True
