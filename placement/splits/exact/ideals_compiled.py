"""Compiled parts of the exact contiguous split: enumerating ideals, and sums over them.

An ideal (downward-closed set of units) is a row of words with 62 units each, so that every word is
a positive 64-bit integer in compiled and in plain code alike.
"""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints

WORD = 62


@jit
def enumerate_ideals(pred_ptr: Ints, pred: Ints, key: Ints, most: int) -> tuple[Ints, int]:
    """All ideals of a graph as rows of words, the empty one first, and how many there are.

    `pred[pred_ptr[u]:pred_ptr[u + 1]]` precede unit u, `key` (U,) are random keys for hashing.
    Gives up beyond `most` ideals: the count is then `most` + 1.
    """
    num_units = len(key)
    num_words = num_units // WORD + 1
    size = 1024
    rows = np.zeros((size, num_words), np.int64)
    codes = np.zeros(size, np.int64)
    table = np.full(4 * size, -1, np.int64)
    table[0] = 0
    count = 1
    row = np.zeros(num_words, np.int64)
    i = 0
    while i < count:
        for u in range(num_units):
            word, bit = u // WORD, np.int64(1) << (u % WORD)
            if rows[i, word] & bit:
                continue
            ready = True
            for p in range(pred_ptr[u], pred_ptr[u + 1]):
                if not rows[i, pred[p] // WORD] >> (pred[p] % WORD) & 1:
                    ready = False
                    break
            if not ready:
                continue
            row[:] = rows[i]
            row[word] |= bit
            code = codes[i] ^ key[u]
            slot = code % len(table)
            known = False
            while table[slot] >= 0 and not known:
                other = table[slot]
                if codes[other] == code:
                    known = True
                    for w in range(num_words):
                        if rows[other, w] != row[w]:
                            known = False
                if not known:
                    slot = (slot + 1) % len(table)
            if known:
                continue
            if count > most:
                return rows, count
            rows[count] = row
            codes[count] = code
            table[slot] = count
            count += 1
            if count == size:
                size *= 2
                rows = np.concatenate((rows, np.zeros((count, num_words), np.int64)))
                codes = np.concatenate((codes, np.zeros(count, np.int64)))
                table = np.full(4 * size, -1, np.int64)
                for j in range(count):
                    slot = codes[j] % len(table)
                    while table[slot] >= 0:
                        slot = (slot + 1) % len(table)
                    table[slot] = j
        i += 1
    return rows[:count], count


@jit
def sums_of(rows: Ints, values: Floats) -> Floats:
    """Sum of a value of units over each ideal."""
    total = np.zeros(len(rows))
    for i in range(len(rows)):
        for u in range(len(values)):
            if rows[i, u // WORD] >> (u % WORD) & 1:
                total[i] += values[u]
    return total


class Crossings(NamedTuple):
    """The nets that cross each ideal, as CSR rows, with how many of their units are inside.

    `crossing_s` (M,) is what those of an ideal cost, `net_cost_s` (T,) what each net does.
    """

    ptr: Ints
    nets: Ints
    counts: Ints
    crossing_s: Floats
    net_cost_s: Floats


@jit
def crossing_nets(rows: Ints, net_ptr: Ints, net_units: Ints, net_cost_s: Floats) -> Crossings:
    """Nets with units inside and outside each ideal."""
    num_ideals, num_nets = len(rows), len(net_cost_s)
    ptr = np.zeros(num_ideals + 1, np.int64)
    nets = np.zeros(16 * num_ideals + num_nets, np.int64)
    counts = np.zeros(16 * num_ideals + num_nets, np.int64)
    cost_s = np.zeros(num_ideals)
    end = 0
    for i in range(num_ideals):
        if end + num_nets > len(nets):
            nets = np.concatenate((nets, np.zeros(len(nets), np.int64)))
            counts = np.concatenate((counts, np.zeros(len(counts), np.int64)))
        for net in range(num_nets):
            inside = 0
            for p in range(net_ptr[net], net_ptr[net + 1]):
                u = net_units[p]
                inside += rows[i, u // WORD] >> (u % WORD) & 1
            if 0 < inside < net_ptr[net + 1] - net_ptr[net]:
                nets[end], counts[end] = net, inside
                cost_s[i] += net_cost_s[net]
                end += 1
        ptr[i + 1] = end
    return Crossings(ptr, nets[:end].copy(), counts[:end].copy(), cost_s, net_cost_s)


@jit
def contained(rows: Ints, i: int, j: int) -> bool:
    """Whether ideal i is part of ideal j."""
    for w in range(rows.shape[1]):  # noqa: SIM110 (all() over a generator does not compile)
        if rows[i, w] & ~rows[j, w]:
            return False
    return True


@jit
def cut_s(i: int, j: int, crossings: Crossings) -> float:
    """Cost of the nets with units inside and outside ideal j without ideal i.

    A net that crosses both ideals was counted twice: once too often if it has a unit between them,
    twice too often if it has none.
    """
    ptr, nets, counts, crossing_s, net_cost_s = crossings
    total = crossing_s[i] + crossing_s[j]
    a, b = ptr[i], ptr[j]
    end_a, end_b = ptr[i + 1], ptr[j + 1]
    while a < end_a and b < end_b:
        if nets[a] < nets[b]:
            a += 1
        elif nets[a] > nets[b]:
            b += 1
        else:
            total -= net_cost_s[nets[a]] * (2.0 if counts[a] == counts[b] else 1.0)
            a += 1
            b += 1
    return float(total)
