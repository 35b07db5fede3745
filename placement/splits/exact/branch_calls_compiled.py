"""Compiled branch and bound over the calls of units, a few per accelerator, for latency."""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.annealing.sample_compiled import sample_s
from placement.splits.model.contract import UnitArrays
from placement.splits.model.instance import Bools
from placement.splits.model.timing import TimedNodes


class Walk(NamedTuple):
    """Where a search stands: units in the order (U,) in which they are decided, depth (1,), columns
    tried last by depth (U,), slots of units (U,), which of them are decided (U,)."""

    order: Ints
    depth: Ints
    choice: Ints
    slot: Ints
    decided: Bools


@jit
def certain_times(
    slot: Ints, decided: Bools, units: UnitArrays, num_slots: int
) -> tuple[Floats, Floats]:
    """Seconds and bytes that each slot has whatever is decided later.

    A net is paid by a slot that has some of its units while another is decided to be elsewhere.
    """
    net_ptr, net_units, net_cost_s = units.net_ptr, units.net_units, units.net_cost_s
    seconds, held_bytes = np.zeros(num_slots), np.zeros(num_slots)
    held = np.zeros(num_slots, np.int64)
    for u in range(len(slot)):
        if slot[u] >= 0:
            seconds[slot[u]] += units.acc_s[u]
            held_bytes[slot[u]] += units.size_bytes[u]
    for net in range(len(net_cost_s)):
        held[:] = 0
        seen = 0
        for p in range(net_ptr[net], net_ptr[net + 1]):
            u = net_units[p]
            seen += decided[u]
            if slot[u] >= 0:
                held[slot[u]] += 1
        for s in range(num_slots):
            if 0 < held[s] < seen:
                seconds[s] += net_cost_s[net]
    return seconds, held_bytes


@jit
def least_sample_s(
    walk: Walk, calls_each: int, units: UnitArrays, nodes: TimedNodes, least_s: Floats
) -> float:
    """Seconds that no split with the decided slots can be below; exact if all are decided.

    What is undecided takes its `least_s` on its own. If it joined a call, that call would take as
    much longer, and wait for no less; only a way out of a call and back into it, or into an earlier
    one of the same accelerator, which would close, must not count.
    """
    slot, decided = walk.slot, walk.decided
    num_slots = units.num_accelerators * calls_each
    call_s, held_bytes = certain_times(slot, decided, units, num_slots)
    for a in range(units.num_accelerators):
        if held_bytes[a * calls_each : (a + 1) * calls_each].sum() > units.limit_bytes:
            return np.inf
    cpu_s, unit_of, succ_ptr, succ = nodes.cpu_s, nodes.unit_of, nodes.succ_ptr, nodes.succ
    num = len(cpu_s)
    nodes_in = np.zeros(num_slots, np.int64)
    seconds = np.zeros(num)
    may_close = False
    for n in range(num):
        u = unit_of[n]
        seconds[n] = cpu_s[n] if decided[u] else least_s[n]
        if slot[u] >= 0:
            nodes_in[slot[u]] += 1
        if not decided[u]:
            for p in range(succ_ptr[n], succ_ptr[n + 1]):
                may_close = may_close or decided[unit_of[succ[p]]]
    room = np.zeros((5, num + num_slots), np.int64)
    ready_s = np.zeros(num + num_slots)
    value_s = sample_s(slot, call_s, nodes_in, calls_each, seconds, nodes, room, ready_s)
    return 0.0 if may_close and value_s == np.inf else value_s


@jit
def branch_calls(
    walk: Walk,
    allowed: Bools,
    alike: bool,
    calls_each: int,
    units: UnitArrays,
    nodes: TimedNodes,
    least_s: Floats,
    best: Ints,
    best_s: float,
    max_nodes: int,
) -> tuple[float, bool]:
    """Search on for `max_nodes` nodes; the least seconds, and whether the search is complete.

    Units get calls of accelerators or, last column of `allowed` (U, A + 1), the CPUs one after
    another, the first new accelerator only where they are `alike`.
    """
    order, depth, choice = walk.order, walk.depth, walk.choice
    slot, decided = walk.slot, walk.decided
    num, last = len(order), allowed.shape[1] - 1
    num_slots = last * calls_each
    num_tried = 0
    while depth[0] >= 0:
        if num_tried >= max_nodes:
            return best_s, False
        i = depth[0]
        u = order[i]
        opened = 0
        for at in range(i):
            opened = max(opened, slot[order[at]] // calls_each + 1)
        column = choice[i] + 1
        while column <= num_slots and (
            not allowed[u, min(column // calls_each, last)]
            or (alike and opened < column // calls_each and column < num_slots)
        ):
            column += 1
        if column > num_slots:
            choice[i], slot[u], decided[u] = -1, -1, False
            depth[0] -= 1
            continue
        num_tried += 1
        choice[i], decided[u] = column, True
        slot[u] = column if column < num_slots else -1
        value_s = least_sample_s(walk, calls_each, units, nodes, least_s)
        if value_s < best_s * (1.0 - 1e-12):
            if i + 1 == num:
                best_s = value_s
                best[:] = slot
            else:
                depth[0] += 1
    return best_s, True
