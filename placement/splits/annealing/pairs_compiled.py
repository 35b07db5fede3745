"""Compiled split of what two devices hold: the best one there is, by a sweep along a row.

A state is what the nets that are open at a place look like so far; of each state the splits that
lead there are kept by their loads, none of which is better than another on both devices.
"""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import inlined, jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.annealing.throughput_compiled import loads_of
from placement.splits.bounds.row import Labels
from placement.splits.model.contract import UnitArrays
from placement.splits.model.instance import Bools

# What a net's units before a place are: all on the second device, all on the first, on both. A code
# has two bits for each net that is open.
BOTH = 2
MOST_OPEN = 31
# States of a place beyond which two devices are left as they are, and the table of their codes.
MOST_STATES, TABLE = 256, 1024


class Nets(NamedTuple):
    """Nets at a place of the row: how many units of each are still to come (T,), which slot of a
    code it has (T,), -1 for none, whether other devices hold some of it (T,), and which slots are
    taken. `is_first` says of each net of the unit at hand whether that is its first one."""

    left: Ints
    slot_of: Ints
    outside: Bools
    is_taken: Bools
    is_first: Bools


class States(NamedTuple):
    """States of a place: their codes (S,), and of each the splits by load, of which `live` (S,)
    are kept: loads of both devices and labels (S, steps + 1)."""

    codes: Ints
    live: Ints
    load_a: Floats
    load_b: Floats
    label: Ints


class Table(NamedTuple):
    """Numbers of states by their codes: for which place an entry was made, and the number."""

    place: Ints
    number: Ints


@jit
def members_of(a: int, b: int, device: Ints, row: Ints) -> Ints:
    """The units of two devices, as they stand in the row."""
    members = np.zeros(len(row), np.int64)
    num = 0
    for u in row:
        if device[u] == a or device[u] == b:
            members[num] = u
            num += 1
    return members[:num]


@jit
def nets_of(members: Ints, units: UnitArrays) -> Nets:
    """The nets before the first of some units."""
    unit_ptr, net_ptr, num_nets = units.unit_ptr, units.net_ptr, len(units.net_cost_s)
    left = np.zeros(num_nets, np.int64)
    for u in members:
        for p in range(unit_ptr[u], unit_ptr[u + 1]):
            left[units.unit_nets[p]] += 1
    outside = left < net_ptr[1:] - net_ptr[:-1]
    most_nets = 0
    for u in range(len(unit_ptr) - 1):
        most_nets = max(most_nets, unit_ptr[u + 1] - unit_ptr[u])
    slots = np.full(num_nets, -1, np.int64)
    return Nets(left, slots, outside, np.zeros(MOST_OPEN, np.bool_), np.zeros(most_nets, np.bool_))


@jit
def states_of(width: int) -> States:
    """Room for the states of a place; the first is where nothing is open and nothing has a load."""
    load_a, load_b = np.zeros((MOST_STATES, width)), np.zeros((MOST_STATES, width))
    label, live = np.zeros((MOST_STATES, width), np.int64), np.zeros(MOST_STATES, np.int64)
    live[0] = 1
    return States(np.zeros(MOST_STATES, np.int64), live, load_a, load_b, label)


@inlined
def enter(u: int, units: UnitArrays, nets: Nets) -> int:
    """Give a slot to each net that opens with a unit; the bits of those that end with it, which no
    later state tells apart, or -1 where there are no slots left."""
    left, slot_of, is_taken = nets.left, nets.slot_of, nets.is_taken
    first = units.unit_ptr[u]
    ended = 0
    for p in range(first, units.unit_ptr[u + 1]):
        net = units.unit_nets[p]
        left[net] -= 1
        nets.is_first[p - first] = slot_of[net] < 0
        if slot_of[net] < 0 and left[net] > 0:
            slot = 0
            while slot < MOST_OPEN and is_taken[slot]:
                slot += 1
            if slot == MOST_OPEN:
                return -1
            slot_of[net] = slot
        if left[net] == 0 and slot_of[net] >= 0:
            ended |= 3 << (2 * slot_of[net])
        if slot_of[net] >= 0:
            is_taken[slot_of[net]] = True
    return ended


@inlined
def leave(u: int, units: UnitArrays, nets: Nets) -> None:
    """Free the slots of the nets that end with a unit."""
    for p in range(units.unit_ptr[u], units.unit_ptr[u + 1]):
        net = units.unit_nets[p]
        if nets.left[net] == 0 and nets.slot_of[net] >= 0:
            nets.is_taken[nets.slot_of[net]] = False


@inlined
def joined(
    u: int, choice: int, a: int, b: int, code: int, units: UnitArrays, nets: Nets
) -> tuple[int, float, float]:
    """A state's code with a unit on the first device (choice 1) or the second (0), and what loads
    grow by: the unit's work, and each net that an accelerator now pays for."""
    num_accelerators, first = units.num_accelerators, units.unit_ptr[u]
    d = a if choice == 1 else b
    work_s = units.acc_s[u] if d < num_accelerators else units.cpu_s[u]
    more_a, more_b = (work_s, 0.0) if choice == 1 else (0.0, work_s)
    for p in range(first, units.unit_ptr[u + 1]):
        net = units.unit_nets[p]
        slot = nets.slot_of[net]
        pays_one = pays_both = False
        if nets.is_first[p - first]:
            pays_one = nets.outside[net]
            if slot >= 0:
                code |= choice << (2 * slot)
        else:
            so_far = (code >> (2 * slot)) & 3
            if so_far != choice and so_far != BOTH:
                code = (code & ~(3 << (2 * slot))) | (BOTH << (2 * slot))
                pays_one, pays_both = True, not nets.outside[net]
        if a < num_accelerators and (pays_both or (pays_one and choice == 1)):
            more_a += units.net_cost_s[net]
        if b < num_accelerators and (pays_both or (pays_one and choice == 0)):
            more_b += units.net_cost_s[net]
    return code, more_a, more_b


@inlined
def number_of(code: int, place: int, table: Table, states: States, num_states: int) -> int:
    """The number of a place's state of this code, a new one where it has none; -1 if too many."""
    at = (code * 1000003 ^ (code >> 17)) & (TABLE - 1)
    while table.place[at] == place and states.codes[table.number[at]] != code:
        at = (at + 1) & (TABLE - 1)
    if table.place[at] != place:
        if num_states == MOST_STATES:
            return -1
        table.place[at], table.number[at] = place, num_states
        states.codes[num_states] = code
        states.load_a[num_states], states.load_b[num_states] = np.inf, np.inf
    return int(table.number[at])


@jit
def keep(states: States, num_states: int, labels: Labels, num_labels: int, kept: States) -> int:
    """Of each state keep the splits by rising load of the first device, and falling of the second.

    Each gets a place in `labels`; how many these are then.
    """
    for s in range(num_states):
        least, num = np.inf, 0
        for g in range(states.load_b.shape[1]):
            if states.load_b[s, g] < least:
                least = states.load_b[s, g]
                kept.load_a[s, num], kept.load_b[s, num] = states.load_a[s, g], least
                labels[num_labels], kept.label[s, num] = states.label[s, g], num_labels
                num_labels += 1
                num += 1
        kept.live[s] = num
        kept.codes[s] = states.codes[s]
    return num_labels


@jit
def with_room(labels: Labels, num_labels: int, num: int) -> Labels:
    """The labels, with room for so many."""
    while num > len(labels):
        longer = np.zeros(2 * len(labels), np.int32)
        longer[:num_labels] = labels[:num_labels]
        labels = longer
    return labels


@jit
def put(members: Ints, a: int, b: int, number: int, labels: Labels, device: Ints) -> None:
    """Put units where the label of this number has them."""
    for i in range(len(members) - 1, -1, -1):
        both = labels[number]
        device[members[i]] = a if both % 2 == 1 else b
        number = both // 2


@jit
def is_too_large(members: Ints, a: int, b: int, device: Ints, units: UnitArrays) -> bool:
    """Whether units exceed the memory of one of the two devices that they are on."""
    held_bytes = np.zeros(2)
    for u in members:
        held_bytes[1 if device[u] == a else 0] += units.size_bytes[u]
    return (a < units.num_accelerators and held_bytes[1] > units.limit_bytes) or (
        b < units.num_accelerators and held_bytes[0] > units.limit_bytes
    )


@jit
def split_again(
    a: int,
    b: int,
    device: Ints,
    row: Ints,
    units: UnitArrays,
    cap_s: float,
    scale_s: float,
    power: float,
    num_steps: int,
) -> bool:
    """Split the units of two devices so that the p-norm of their loads over `scale_s` is least.

    Changes `device` (U,) and returns True if that is less than it was. `row` (U,) are the units in
    an order in which few nets cross any place. Loads up to `cap_s` are told apart in `num_steps`
    steps; of two halves in one step and state the one with the smaller sum of loads is kept.
    """
    before = loads_of(device, units)
    now = (before.load[a] / scale_s) ** power + (before.load[b] / scale_s) ** power
    members = members_of(a, b, device, row)
    nets = nets_of(members, units)
    width, per_s = num_steps + 1, num_steps / cap_s
    states, behind = states_of(width), states_of(width)
    table = Table(np.full(TABLE, -1, np.int64), np.zeros(TABLE, np.int64))
    labels = np.zeros(1 << 16, np.int32)
    num_states, num_labels = 1, 1
    for i in range(len(members)):
        u = members[i]
        ended = enter(u, units, nets)
        if ended < 0:
            return False
        num_behind = 0
        for s in range(num_states):
            for choice in range(2):
                if not units.allowed[u, a if choice == 1 else b]:
                    continue
                code, more_a, more_b = joined(u, choice, a, b, states.codes[s], units, nets)
                to = number_of(code & ~ended, i, table, behind, num_behind)
                if to < 0:
                    return False
                num_behind = max(num_behind, to + 1)
                for g in range(states.live[s]):
                    then_a, then_b = states.load_a[s, g] + more_a, states.load_b[s, g] + more_b
                    if then_a > cap_s:
                        break
                    if then_b > cap_s:
                        continue
                    h = min(int(then_a * per_s), num_steps)
                    if then_a + then_b < behind.load_a[to, h] + behind.load_b[to, h]:
                        behind.load_a[to, h], behind.load_b[to, h] = then_a, then_b
                        behind.label[to, h] = 2 * states.label[s, g] + choice
        labels = with_room(labels, num_labels, num_labels + num_behind * width)
        num_labels = keep(behind, num_behind, labels, num_labels, states)
        num_states = num_behind
        leave(u, units, nets)
    best, at_best = now * (1.0 - 1e-9), -1
    if num_states == 0:
        return False
    for g in range(states.live[0]):
        then = (states.load_a[0, g] / scale_s) ** power + (states.load_b[0, g] / scale_s) ** power
        if then < best:
            best, at_best = then, g
    if at_best < 0:
        return False
    was = device.copy()
    put(members, a, b, states.label[0, at_best], labels, device)
    if is_too_large(members, a, b, device, units):
        device[:] = was
        return False
    return True
