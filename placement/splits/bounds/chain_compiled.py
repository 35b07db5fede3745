"""Compiled part of the latency bound over ideals: the cheapest chain of calls along a path."""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.exact.ideals_compiled import Crossings, contained, cut_s


class PathIdeals(NamedTuple):
    """Ideals (M) by rising accelerator work, then size, as words of bits, and sums over each.

    `path_inside` (M, P) counts the nodes of each path, `share` (P,) is what each counts for,
    `path_cpu_s` the CPU seconds of nodes, each as often as paths with it count.
    """

    rows: Ints
    num_inside: Ints
    path_inside: Ints
    share: Floats
    acc_s: Floats
    path_cpu_s: Floats
    size_bytes: Floats
    no_acc: Ints
    no_cpu: Ints


@jit
def cheapest_chain(
    ideals: PathIdeals, crossings: Crossings, num_calls: int, limit_bytes: float, upper_s: float
) -> tuple[Floats, Ints]:
    """Least seconds along the paths to each ideal with each number of calls, (M, calls + 1).

    One node more is free off the paths and costs its CPU time on them; any more nodes are a call,
    which must hold a node of a path. Chains that reach `upper_s` are dropped. Beside the seconds
    stands the ideal before, twice, and one more after a call.
    """
    rows, num_inside, path_inside, share, acc_s, path_cpu_s, size_bytes, no_acc, no_cpu = ideals
    num_ideals = len(rows)
    least = np.full((num_ideals, num_calls + 1), np.inf)
    before = np.zeros((num_ideals, num_calls + 1), np.int64)
    least[0, 0] = 0.0
    for i in range(num_ideals):
        low, first = np.inf, num_calls + 1
        for a in range(num_calls + 1):
            if least[i, a] < np.inf:
                first = min(first, a)
                low = min(low, least[i, a])
        if first > num_calls:
            continue
        for j in range(i + 1, num_ideals):
            one = num_inside[j] == num_inside[i] + 1
            work = acc_s[j] - acc_s[i]
            met, any_met = 0.0, False
            for p in range(len(share)):
                if path_inside[j, p] > path_inside[i, p]:
                    met += share[p]
                    any_met = True
            call = first < num_calls and no_acc[j] == no_acc[i] and any_met
            call = (
                call and size_bytes[j] - size_bytes[i] <= limit_bytes and low + work * met < upper_s
            )
            if not (one or call) or not contained(rows, i, j):
                continue
            step = np.inf
            if one and no_cpu[j] == no_cpu[i]:
                step = path_cpu_s[j] - path_cpu_s[i]
            elif one and not any_met:
                step = 0.0
            for a in range(first, num_calls + 1):
                if least[i, a] + step < least[j, a]:
                    least[j, a] = least[i, a] + step
                    before[j, a] = 2 * i
            if call:
                useful = False
                for a in range(first, num_calls):
                    useful = useful or least[i, a] + work * met < least[j, a + 1]
                if useful:
                    work = (work + cut_s(i, j, crossings)) * met
                    if low + work < upper_s:
                        for a in range(first, num_calls):
                            if least[i, a] + work < least[j, a + 1]:
                                least[j, a + 1] = least[i, a] + work
                                before[j, a + 1] = 2 * i + 1
    return least, before
