"""Compiled split of what two devices hold: the best one there is, by a sweep along a row."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.graph import Ints
from placement.splits.annealing.throughput_compiled import loads_of
from placement.splits.model.contract import UnitArrays

# What a net's units before a place are: all on the second device, all on the first, on both. A code
# has two bits for each net that is open.
BOTH = 2
MOST_OPEN = 31
# States of a place beyond which two devices are left as they are, and the table of their codes.
MOST_STATES, TABLE = 256, 1024


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
    num_accelerators, num_nets = units.num_accelerators, len(units.net_cost_s)
    net_ptr, unit_ptr, unit_nets = units.net_ptr, units.unit_ptr, units.unit_nets
    before = loads_of(device, units)
    now = (before.load[a] / scale_s) ** power + (before.load[b] / scale_s) ** power
    members = np.zeros(len(row), np.int64)
    num = 0
    left = np.zeros(num_nets, np.int64)
    for u in row:
        if device[u] == a or device[u] == b:
            members[num] = u
            num += 1
            for p in range(unit_ptr[u], unit_ptr[u + 1]):
                left[unit_nets[p]] += 1
    outside = left < net_ptr[1:] - net_ptr[:-1]
    slot_of = np.full(num_nets, -1, np.int64)
    is_taken = np.zeros(MOST_OPEN, np.bool_)
    width = num_steps + 1
    per_s = num_steps / cap_s
    load_a, load_b = np.zeros((MOST_STATES, width)), np.zeros((MOST_STATES, width))
    next_a, next_b = np.zeros((MOST_STATES, width)), np.zeros((MOST_STATES, width))
    label = np.zeros((MOST_STATES, width), np.int64)
    next_label = np.zeros((MOST_STATES, width), np.int64)
    live = np.zeros(MOST_STATES, np.int64)
    codes, next_codes = np.zeros(MOST_STATES, np.int64), np.zeros(MOST_STATES, np.int64)
    place_of, number_of = np.full(TABLE, -1, np.int64), np.zeros(TABLE, np.int64)
    labels = np.zeros(1 << 16, np.int32)
    live[0], num_states, num_labels = 1, 1, 1
    most_nets = 0
    for u in range(len(device)):
        most_nets = max(most_nets, unit_ptr[u + 1] - unit_ptr[u])
    is_first = np.zeros(most_nets, np.bool_)
    for i in range(num):
        u = members[i]
        first = unit_ptr[u]
        # Bits of the nets that end here, which no later state tells apart.
        ended = 0
        for p in range(first, unit_ptr[u + 1]):
            net = unit_nets[p]
            left[net] -= 1
            is_first[p - first] = slot_of[net] < 0
            if slot_of[net] < 0 and left[net] > 0:
                slot = 0
                while slot < MOST_OPEN and is_taken[slot]:
                    slot += 1
                if slot == MOST_OPEN:
                    return False
                slot_of[net] = slot
            if left[net] == 0 and slot_of[net] >= 0:
                ended |= 3 << (2 * slot_of[net])
            if slot_of[net] >= 0:
                is_taken[slot_of[net]] = True
        num_next = 0
        for s in range(num_states):
            for choice in range(2):
                d = a if choice == 1 else b
                if not units.allowed[u, d]:
                    continue
                code = codes[s]
                work_s = units.acc_s[u] if d < num_accelerators else units.cpu_s[u]
                more_a, more_b = (work_s, 0.0) if choice == 1 else (0.0, work_s)
                for p in range(first, unit_ptr[u + 1]):
                    net = unit_nets[p]
                    slot = slot_of[net]
                    pays_one = pays_both = False
                    if is_first[p - first]:
                        pays_one = outside[net]
                        if slot >= 0:
                            code |= choice << (2 * slot)
                    else:
                        so_far = (code >> (2 * slot)) & 3
                        if so_far != choice and so_far != BOTH:
                            code = (code & ~(3 << (2 * slot))) | (BOTH << (2 * slot))
                            pays_one, pays_both = True, not outside[net]
                    if a < num_accelerators and (pays_both or (pays_one and choice == 1)):
                        more_a += units.net_cost_s[net]
                    if b < num_accelerators and (pays_both or (pays_one and choice == 0)):
                        more_b += units.net_cost_s[net]
                code &= ~ended
                at = (code * 1000003 ^ (code >> 17)) & (TABLE - 1)
                while place_of[at] == i and next_codes[number_of[at]] != code:
                    at = (at + 1) & (TABLE - 1)
                if place_of[at] != i:
                    if num_next == MOST_STATES:
                        return False
                    place_of[at], number_of[at] = i, num_next
                    next_codes[num_next] = code
                    next_a[num_next], next_b[num_next] = np.inf, np.inf
                    num_next += 1
                to = number_of[at]
                for g in range(live[s]):
                    then_a, then_b = load_a[s, g] + more_a, load_b[s, g] + more_b
                    if then_a > cap_s:
                        break
                    if then_b > cap_s:
                        continue
                    h = min(int(then_a * per_s), num_steps)
                    if then_a + then_b < next_a[to, h] + next_b[to, h]:
                        next_a[to, h], next_b[to, h] = then_a, then_b
                        next_label[to, h] = 2 * label[s, g] + choice
        while num_labels + num_next * width > len(labels):
            longer = np.zeros(2 * len(labels), np.int32)
            longer[:num_labels] = labels[:num_labels]
            labels = longer
        for s in range(num_next):
            least, kept = np.inf, 0
            for g in range(width):
                if next_b[s, g] < least:
                    least = next_b[s, g]
                    load_a[s, kept], load_b[s, kept] = next_a[s, g], least
                    labels[num_labels], label[s, kept] = next_label[s, g], num_labels
                    num_labels += 1
                    kept += 1
            live[s] = kept
            codes[s] = next_codes[s]
        num_states = num_next
        for p in range(first, unit_ptr[u + 1]):
            net = unit_nets[p]
            if left[net] == 0 and slot_of[net] >= 0:
                is_taken[slot_of[net]] = False
    best, at_best = now * (1.0 - 1e-9), -1
    if num_states == 0:
        return False
    for g in range(live[0]):
        then = (load_a[0, g] / scale_s) ** power + (load_b[0, g] / scale_s) ** power
        if then < best:
            best, at_best = then, g
    if at_best < 0:
        return False
    was = device.copy()
    number = label[0, at_best]
    for i in range(num - 1, -1, -1):
        both = labels[number]
        device[members[i]] = a if both % 2 == 1 else b
        number = both // 2
    held_bytes = np.zeros(2)
    for i in range(num):
        held_bytes[1 if device[members[i]] == a else 0] += units.size_bytes[members[i]]
    too_large = (a < num_accelerators and held_bytes[1] > units.limit_bytes) or (
        b < num_accelerators and held_bytes[0] > units.limit_bytes
    )
    if too_large:
        device[:] = was
    return not too_large
