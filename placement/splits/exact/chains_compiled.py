"""Compiled recurrence of exact contiguous splits: the best chains of ideals below a threshold."""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.exact.ideals_compiled import Crossings, contained, cut_s

SLACK = 1e-12
# Sums of the same work in another order differ by this share at most.
MARGIN = 1e-9


class Ideals(NamedTuple):
    """Ideals (M) by rising accelerator work, then size, as words of bits, and sums over each.

    `no_acc`, `no_cpu` and `pins` count the units without a kind of device and with one of their
    own; `by_cpu` sorts ideals by CPU work.
    """

    rows: Ints
    acc_s: Floats
    cpu_s: Floats
    size_bytes: Floats
    no_acc: Ints
    no_cpu: Ints
    pins: Ints
    by_cpu: Ints


class Limits(NamedTuple):
    """What a part may take.

    Its load is at most `cap_s`; it may be on up to `most_replicas` accelerators, which share its
    load and keep its weights alike at `sync_s_per_byte`, or on one if a unit has a device of its
    own. With `overlap` the load is the larger of compute and transfers.
    """

    cap_s: float
    bytes: float
    most_replicas: int
    overlap: bool
    sync_s_per_byte: float


@jit
def shared_load_s(
    work_s: float, moved_s: float, num_bytes: float, r: int, sync_s_per_byte: float, overlap: bool
) -> float:
    """Load of each of r accelerators that share a part, whose weights they keep alike."""
    moved_s = moved_s + 4.0 * (r - 1) / r * num_bytes * sync_s_per_byte
    return (max(work_s, moved_s) if overlap else work_s + moved_s) / r


@jit
def chains(
    ideals: Ideals, crossings: Crossings, limits: Limits, offload_s: Floats, num_accelerators: int
) -> Floats:
    """Least maximal load of chains of ideals by (ideal, accelerators, CPUs).

    `offload_s[c]` is the most accelerator work that c CPUs can take.
    """
    num_ideals, num_cpus = len(ideals.rows), len(offload_s) - 1
    best = np.full((num_ideals, num_accelerators + 1, num_cpus + 1), np.inf)
    best[0, 0, 0] = 0.0
    rest_s = np.zeros((num_accelerators + 1, num_cpus + 1))
    for a in range(num_accelerators + 1):
        for c in range(num_cpus + 1):
            rest_s[a, c] = (num_accelerators - a) * limits.cap_s + offload_s[num_cpus - c]
    sorted_cpu_s = ideals.cpu_s[ideals.by_cpu]
    for i in range(num_ideals - 1):
        least_a, least_c, low_s = fewest(best[i])
        if least_a < 0:
            continue
        if least_a < num_accelerators:
            add_accelerators(i, least_a, least_c, low_s, best, rest_s, ideals, crossings, limits)
        if least_c < num_cpus:
            add_cpu(i, least_a, least_c, best, rest_s, ideals, sorted_cpu_s, limits.cap_s)
    return best


@jit
def fewest(best: Floats) -> tuple[int, int, float]:
    """Fewest accelerators (-1: no chain), fewest CPUs and least load of the chains to an ideal."""
    least_a, least_c, low_s = -1, best.shape[1], np.inf
    for a in range(best.shape[0]):
        for c in range(best.shape[1]):
            if best[a, c] < np.inf:
                least_a = a if least_a < 0 else least_a
                least_c = min(least_c, c)
                low_s = min(low_s, best[a, c])
    return least_a, least_c, low_s


@jit
def add_accelerators(
    i: int,
    least_a: int,
    least_c: int,
    low_s: float,
    best: Floats,
    rest_s: Floats,
    ideals: Ideals,
    crossings: Crossings,
    limits: Limits,
) -> None:
    """Lengthen the chains that end in ideal i by a part on accelerators.

    `rest_s[a, c]` is the work that devices can take which are left after a accelerators and c CPUs.
    """
    rows, acc_s, size_bytes, pins = ideals.rows, ideals.acc_s, ideals.size_bytes, ideals.pins
    crossing_s = crossings.crossing_s
    allowance = limits.cap_s * (1.0 + SLACK)
    widest = allowance * limits.most_replicas
    whole_s = acc_s[-1]
    margin_s = whole_s * MARGIN
    reach_s = whole_s - rest_s[least_a + 1, least_c] - margin_s
    for j in range(max(i + 1, np.searchsorted(acc_s, reach_s)), len(acc_s)):
        load_s = acc_s[j] - acc_s[i]
        if load_s > widest:
            break
        if ideals.no_acc[j] != ideals.no_acc[i] or pins[j] > pins[i] + 1:
            continue
        moved_s = abs(crossing_s[j] - crossing_s[i])
        if (max(load_s, moved_s) if limits.overlap else load_s + moved_s) > widest:
            continue
        if size_bytes[j] - size_bytes[i] > limits.bytes or not contained(rows, i, j):
            continue
        most = 1 if pins[j] > pins[i] else limits.most_replicas
        if not useful(best[i], best[j], least_a, least_c, max(low_s, load_s / most), most):
            continue
        moved_s, num_bytes = cut_s(i, j, crossings), size_bytes[j] - size_bytes[i]
        for r in range(1, most + 1):
            sync_s = limits.sync_s_per_byte
            each_s = shared_load_s(load_s, moved_s, num_bytes, r, sync_s, limits.overlap)
            if each_s > allowance:
                continue
            for a in range(least_a, best.shape[1] - r):
                for c in range(least_c, best.shape[2]):
                    value_s = max(each_s, best[i, a, c])
                    fits = whole_s - acc_s[j] <= rest_s[a + r, c] + margin_s
                    if fits and value_s < best[j, a + r, c]:
                        best[j, a + r, c] = value_s


@jit
def useful(
    best: Floats, reached: Floats, least_a: int, least_c: int, bound_s: float, most: int
) -> bool:
    """Whether one more part of `bound_s` or more can better a chain to the ideal that it reaches.

    `best` are the chains before the part, `reached` (both A + 1, C + 1) those that end as it does.
    """
    for a in range(least_a + 1, best.shape[0]):
        for c in range(least_c, best.shape[1]):
            if bound_s < reached[a, c] and (most > 1 or best[a - 1, c] < reached[a, c]):
                return True
    return False


@jit
def add_cpu(
    i: int,
    least_a: int,
    least_c: int,
    best: Floats,
    rest_s: Floats,
    ideals: Ideals,
    sorted_cpu_s: Floats,
    cap_s: float,
) -> None:
    """Lengthen the chains that end in ideal i by a part on a CPU."""
    acc_s, cpu_s, no_cpu, pins = ideals.acc_s, ideals.cpu_s, ideals.no_cpu, ideals.pins
    by_cpu = ideals.by_cpu
    allowance = cap_s * (1.0 + SLACK)
    whole_s = acc_s[-1]
    margin_s = whole_s * MARGIN
    for at in range(np.searchsorted(sorted_cpu_s, cpu_s[i]), len(by_cpu)):
        j = by_cpu[at]
        load_s = cpu_s[j] - cpu_s[i]
        if load_s > allowance:
            break
        if j <= i or no_cpu[j] != no_cpu[i] or pins[j] > pins[i] + 1:
            continue
        if whole_s - acc_s[j] > rest_s[least_a, least_c + 1] + margin_s:
            continue
        if not contained(ideals.rows, i, j):
            continue
        for a in range(least_a, best.shape[1]):
            for c in range(least_c, best.shape[2] - 1):
                value_s = max(load_s, best[i, a, c])
                fits = whole_s - acc_s[j] <= rest_s[a, c + 1] + margin_s
                if fits and value_s < best[j, a, c + 1]:
                    best[j, a, c + 1] = value_s
