"""Compiled parts of the exact contiguous split: enumerating ideals, and the chains over them.

An ideal (downward-closed set of units) is a row of words with 62 units each, so that every word is
a positive 64-bit integer in compiled and in plain code alike.
"""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.engine._fast_jit import jit

WORD = 62
SLACK = 1e-12


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


@jit
def crossing_nets(
    rows: Ints, net_ptr: Ints, net_units: Ints, net_cost_s: Floats
) -> tuple[Ints, Ints, Ints, Floats]:
    """Nets with units inside and outside each ideal, as CSR rows, the units inside counted.

    The last array is the cost of the crossing nets by ideal.
    """
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
    return ptr, nets[:end].copy(), counts[:end].copy(), cost_s


@jit
def contained(rows: Ints, i: int, j: int) -> bool:
    """Whether ideal i is part of ideal j."""
    for w in range(rows.shape[1]):  # noqa: SIM110 (all() over a generator does not compile)
        if rows[i, w] & ~rows[j, w]:
            return False
    return True


@jit
def cut_s(
    i: int, j: int, ptr: Ints, nets: Ints, counts: Ints, crossing_s: Floats, net_cost_s: Floats
) -> float:
    """Cost of the nets with units inside and outside ideal j without ideal i.

    A net that crosses both ideals was counted twice: once too often if it has a unit between them,
    twice too often if it has none.
    """
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


@jit
def chains(
    rows: Ints,
    acc_s: Floats,
    cpu_s: Floats,
    size_bytes: Floats,
    no_acc: Ints,
    no_cpu: Ints,
    pins: Ints,
    ptr: Ints,
    nets: Ints,
    counts: Ints,
    crossing_s: Floats,
    net_cost_s: Floats,
    by_cpu: Ints,
    offload_s: Floats,
    num_accelerators: int,
    limit_bytes: float,
    cap_s: float,
    most_replicas: int,
    overlap: bool,
) -> Floats:
    """Least maximal load of chains of ideals with no load above `cap_s`, by (ideal, accs, CPUs).

    Ideals come by rising accelerator work, then size; sums are over each ideal, `no_acc`, `no_cpu`
    and `pins` count its units without a kind of device and with a device of their own. `by_cpu`
    sorts ideals by CPU work. `offload_s[c]` is the most accelerator work that c CPUs can take.
    A part may be on up to `most_replicas` accelerators, which share its load; one with a device of
    its own is on one. With `overlap` the load is the larger of compute and transfers.
    """
    num_ideals, num_cpus = len(rows), len(offload_s) - 1
    best = np.full((num_ideals, num_accelerators + 1, num_cpus + 1), np.inf)
    best[0, 0, 0] = 0.0
    allowance = cap_s * (1.0 + SLACK)
    widest = allowance * most_replicas
    whole_s = acc_s[num_ideals - 1]
    rest_s = np.zeros((num_accelerators + 2, num_cpus + 2))
    for a in range(num_accelerators + 1):
        for c in range(num_cpus + 1):
            rest_s[a, c] = (num_accelerators - a) * cap_s + offload_s[num_cpus - c]
    margin = whole_s * 1e-9
    sorted_cpu_s = cpu_s[by_cpu]
    for i in range(num_ideals):
        least_a, least_c, low = -1, num_cpus + 1, np.inf
        for a in range(num_accelerators + 1):
            for c in range(num_cpus + 1):
                if best[i, a, c] < np.inf:
                    least_a = a if least_a < 0 else least_a
                    least_c = min(least_c, c)
                    low = min(low, best[i, a, c])
        if least_a < 0 or i == num_ideals - 1:
            continue
        if least_a < num_accelerators:
            reach = whole_s - rest_s[least_a + 1, least_c] - margin
            start = max(i + 1, np.searchsorted(acc_s, reach))
            for j in range(start, num_ideals):
                load = acc_s[j] - acc_s[i]
                if load > widest:
                    break
                if no_acc[j] != no_acc[i] or pins[j] > pins[i] + 1:
                    continue
                moved = abs(crossing_s[j] - crossing_s[i])
                if (max(load, moved) if overlap else load + moved) > widest:
                    continue
                if size_bytes[j] - size_bytes[i] > limit_bytes or not contained(rows, i, j):
                    continue
                most = 1 if pins[j] > pins[i] else most_replicas
                bound = max(low, load / most)
                useful = False
                for a in range(least_a + 1, num_accelerators + 1):
                    for c in range(least_c, num_cpus + 1):
                        better = bound < best[j, a, c]
                        better = better and (most > 1 or best[i, a - 1, c] < best[j, a, c])
                        useful = useful or better
                if not useful:
                    continue
                moved = cut_s(i, j, ptr, nets, counts, crossing_s, net_cost_s)
                load = max(load, moved) if overlap else load + moved
                for r in range(1, most + 1):
                    if load > allowance * r:
                        continue
                    for a in range(least_a, num_accelerators + 1 - r):
                        for c in range(least_c, num_cpus + 1):
                            value = max(load / r, best[i, a, c])
                            fits = whole_s - acc_s[j] <= rest_s[a + r, c] + margin
                            if fits and value < best[j, a + r, c]:
                                best[j, a + r, c] = value
        if least_c < num_cpus:
            for at in range(np.searchsorted(sorted_cpu_s, cpu_s[i]), num_ideals):
                j = by_cpu[at]
                load = cpu_s[j] - cpu_s[i]
                if load > allowance:
                    break
                if j <= i or no_cpu[j] != no_cpu[i] or pins[j] > pins[i] + 1:
                    continue
                if whole_s - acc_s[j] > rest_s[least_a, least_c + 1] + margin:
                    continue
                if not contained(rows, i, j):
                    continue
                for a in range(least_a, num_accelerators + 1):
                    for c in range(least_c, num_cpus):
                        value = max(load, best[i, a, c])
                        fits = whole_s - acc_s[j] <= rest_s[a, c + 1] + margin
                        if fits and value < best[j, a, c + 1]:
                            best[j, a, c + 1] = value
    return best
