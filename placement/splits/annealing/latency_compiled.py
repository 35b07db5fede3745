"""Compiled annealing of units over the slots of subgraph calls (slots as in `sample_compiled`)."""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import inlined, jit
from placement.compiled.random import below, seeded, uniform
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.annealing.sample_compiled import move, sample_s, slots_of
from placement.splits.model.contract import UnitArrays
from placement.splits.model.instance import Bools
from placement.splits.model.timing import TimedNodes


class CallArrays(NamedTuple):
    """An instance with calls: units, timed nodes, CSR rows of the units after and before each unit.

    `allowed` (U, A + 1) tells which accelerators may hold a unit, and last whether CPUs may.
    """

    units: UnitArrays
    nodes: TimedNodes
    after_ptr: Ints
    after: Ints
    before_ptr: Ints
    before: Ints
    allowed: Bools
    calls_each: int


@inlined
def propose(
    step: int, slot: Ints, calls: CallArrays, group: Ints, marked: Ints, chance: Ints
) -> tuple[int, int]:
    """A slot and how many units of one slot, listed in `group`, are to go there; none at times.

    One unit, or one with all that follows or precedes it in its call, or with some that follow it
    on the CPUs; to the slot of a neighbour, or to any. `marked` (U,) is scratch between steps.
    """
    net_ptr, net_units = calls.units.net_ptr, calls.units.net_units
    unit_ptr, unit_nets = calls.units.unit_ptr, calls.units.unit_nets
    num_slots = (calls.allowed.shape[1] - 1) * calls.calls_each
    u = below(len(slot), chance)
    s = slot[u]
    kind = below(8, chance)
    down = below(2, chance) == 0
    to = s
    group[0] = u
    if kind > 0:
        p = unit_ptr[u] + below(max(1, unit_ptr[u + 1] - unit_ptr[u]), chance)
        if p < unit_ptr[u + 1]:
            net = unit_nets[p]
            pins = net_ptr[net + 1] - net_ptr[net]
            to = slot[net_units[net_ptr[net] + below(pins, chance)]]
    if to == s:
        to = below(num_slots + 1, chance) - 1
    if to == s:
        return to, 0
    most = 1
    if kind > 3 and s >= 0:
        most = 1 << (1 + below(7, chance))
    elif kind > 1 and s < 0:
        most, down = 1 + below(5, chance), True
    ptr = calls.after_ptr if down else calls.before_ptr
    near = calls.after if down else calls.before
    marked[u] = step
    size, at = 1, 0
    while at < size and size < most:
        v = group[at]
        at += 1
        for p in range(ptr[v], ptr[v + 1]):
            w = near[p]
            if slot[w] == s and marked[w] != step and (s >= 0 or size < most):
                marked[w] = step
                group[size] = w
                size += 1
    return to, size


@jit
def may_hold(units: Ints, column: int, allowed: Bools) -> bool:
    """Whether each of some units may be where the column says."""
    for u in units:  # noqa: SIM110 (all() over a generator does not compile)
        if not allowed[u, column]:
            return False
    return True


@jit
def bytes_with(units: Ints, same: bool, held_bytes: Floats, size_bytes: Floats) -> float:
    """Bytes of an accelerator, by call, and of units that join it; `same` if they are there."""
    more = 0.0
    for u in units:
        more += size_bytes[u]
    total = more
    for held in held_bytes:
        total += held
    return total - more if same else total


@jit
def anneal(
    slot: Ints,
    best_slot: Ints,
    best_s: float,
    calls: CallArrays,
    temperature_s: float,
    iterations: int,
    seed: int,
) -> float:
    """Metropolis steps at one temperature from `slot`; improves `best_slot`, returns its seconds.

    The state keeps within memory and out of cycles if it did at the start.
    """
    chance = seeded(seed)
    units, nodes, calls_each, cpu_s = calls.units, calls.nodes, calls.calls_each, calls.nodes.cpu_s
    num_units, num = len(slot), len(cpu_s)
    last = calls.allowed.shape[1] - 1
    num_slots = last * calls_each
    slots = slots_of(slot, units, nodes, num_slots)
    call_s, nodes_in = slots.call_s, slots.nodes_in
    room = np.zeros((5, num + num_slots), np.int64)
    ready_s = np.zeros(num + num_slots)
    now_s = sample_s(slot, call_s, nodes_in, calls_each, cpu_s, nodes, room, ready_s)
    group = np.zeros(num_units, np.int64)
    old = np.zeros(num_units, np.int64)
    marked = np.full(num_units, -1, np.int64)
    for step in range(iterations):
        to, size = propose(step, slot, calls, group, marked, chance)
        if size == 0:
            continue
        column = to // calls_each if to >= 0 else last
        if not may_hold(group[:size], column, calls.allowed):
            continue
        if to >= 0:
            held_bytes = slots.held_bytes[column * calls_each : (column + 1) * calls_each]
            s = slot[group[0]]
            same = s >= 0 and s // calls_each == column
            size_bytes, limit_bytes = units.size_bytes, units.limit_bytes
            if bytes_with(group[:size], same, held_bytes, size_bytes) > limit_bytes:
                continue
        for i in range(size):
            old[i] = slot[group[i]]
            move(group[i], to, slot, slots, units, nodes)
        then_s = sample_s(slot, call_s, nodes_in, calls_each, cpu_s, nodes, room, ready_s)
        if then_s <= now_s or uniform(chance) < np.exp((now_s - then_s) / temperature_s):
            now_s = then_s
            if now_s < best_s * (1.0 - 1e-12):
                best_s = now_s
                best_slot[:] = slot
        else:
            for i in range(size):
                move(group[i], old[i], slot, slots, units, nodes)
    return best_s
