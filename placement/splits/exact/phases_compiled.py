"""Compiled recurrence where phases count apart: chains of ideals within limits on both."""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.splits.exact.chains_compiled import MARGIN, SLACK, Ideals, Limits, shared_load_s
from placement.splits.exact.ideals_compiled import Crossings, contained, cut_s


class PhaseSums(NamedTuple):
    """The work of one phase in each ideal (M,) by kind of device, and its nets."""

    acc_s: Floats
    cpu_s: Floats
    crossings: Crossings


@jit
def phase_chains(
    ideals: Ideals,
    limited: PhaseSums,
    least: PhaseSums,
    limits: Limits,
    cap_s: float,
    syncs: bool,
    offload_s: Floats,
    num_accelerators: int,
) -> Floats:
    """Least largest load of one phase over chains by (ideal, accelerators, CPUs).

    Loads of the other phase are at most `limits.cap_s`, those of this one at most `cap_s`. Replicas
    keep weights alike in this phase if it `syncs`, else in the other. `offload_s[c]` is the most
    work of both phases that c CPUs take.
    """
    rows, acc_s, cpu_s, pins = ideals.rows, ideals.acc_s, ideals.cpu_s, ideals.pins
    no_acc, no_cpu, size_bytes = ideals.no_acc, ideals.no_cpu, ideals.size_bytes
    num_ideals, num_cpus = len(rows), len(offload_s) - 1
    best = np.full((num_ideals, num_accelerators + 1, num_cpus + 1), np.inf)
    best[0, 0, 0] = 0.0
    both_s = limits.cap_s + cap_s
    other_cap_s, own_cap_s = limits.cap_s * (1.0 + SLACK), cap_s * (1.0 + SLACK)
    most_each, overlap = limits.most_replicas, limits.overlap
    own_sync = limits.sync_s_per_byte if syncs else 0.0
    other_sync = 0.0 if syncs else limits.sync_s_per_byte
    whole_s = acc_s[-1]
    margin_s = whole_s * MARGIN
    # Differences of sums leave this much where there is nothing.
    crumb_s = MARGIN * (cap_s + limits.cap_s)
    rest_s = np.zeros((num_accelerators + 1, num_cpus + 1))
    for a in range(num_accelerators + 1):
        for c in range(num_cpus + 1):
            rest_s[a, c] = (num_accelerators - a) * both_s + offload_s[num_cpus - c]
    sorted_cpu_s = cpu_s[ideals.by_cpu]
    for i in range(num_ideals - 1):
        first_a, first_c, low_s = -1, num_cpus + 1, np.inf
        for a in range(num_accelerators + 1):
            for c in range(num_cpus + 1):
                if best[i, a, c] < np.inf:
                    first_a = a if first_a < 0 else first_a
                    first_c = min(first_c, c)
                    low_s = min(low_s, best[i, a, c])
        if first_a < 0:
            continue
        if first_a < num_accelerators:
            reach_s = whole_s - rest_s[first_a + 1, first_c] - margin_s
            for j in range(max(i + 1, np.searchsorted(acc_s, reach_s)), num_ideals):
                if acc_s[j] - acc_s[i] > both_s * (1.0 + SLACK) * most_each:
                    break
                if no_acc[j] != no_acc[i] or pins[j] > pins[i] + 1:
                    continue
                num_bytes = size_bytes[j] - size_bytes[i]
                most = 1 if pins[j] > pins[i] else most_each
                work_s = least.acc_s[j] - least.acc_s[i]
                other_s = limited.acc_s[j] - limited.acc_s[i]
                if work_s > own_cap_s * most + crumb_s or other_s > other_cap_s * most + crumb_s:
                    continue
                if num_bytes > limits.bytes or not contained(rows, i, j):
                    continue
                useful = False
                for a in range(first_a + 1, num_accelerators + 1):
                    for c in range(first_c, num_cpus + 1):
                        useful = useful or max(low_s, work_s / most) < best[j, a, c]
                if not useful:
                    continue
                other_moved_s = cut_s(i, j, limited.crossings)
                moved_s = cut_s(i, j, least.crossings)
                for r in range(1, most + 1):
                    if (
                        shared_load_s(other_s, other_moved_s, num_bytes, r, other_sync, overlap)
                        > other_cap_s
                    ):
                        continue
                    each_s = shared_load_s(work_s, moved_s, num_bytes, r, own_sync, overlap)
                    if each_s > own_cap_s:
                        continue
                    for a in range(first_a, num_accelerators + 1 - r):
                        for c in range(first_c, num_cpus + 1):
                            value_s = max(each_s, best[i, a, c])
                            fits = whole_s - acc_s[j] <= rest_s[a + r, c] + margin_s
                            if fits and value_s < best[j, a + r, c]:
                                best[j, a + r, c] = value_s
        if first_c < num_cpus:
            for at in range(np.searchsorted(sorted_cpu_s, cpu_s[i]), num_ideals):
                j = ideals.by_cpu[at]
                if cpu_s[j] - cpu_s[i] > both_s * (1.0 + SLACK):
                    break
                if j <= i or no_cpu[j] != no_cpu[i] or pins[j] > pins[i] + 1:
                    continue
                work_s = least.cpu_s[j] - least.cpu_s[i]
                if work_s > own_cap_s or limited.cpu_s[j] - limited.cpu_s[i] > other_cap_s:
                    continue
                if not contained(rows, i, j):
                    continue
                for a in range(first_a, num_accelerators + 1):
                    for c in range(first_c, num_cpus):
                        value_s = max(work_s, best[i, a, c])
                        fits = whole_s - acc_s[j] <= rest_s[a, c + 1] + margin_s
                        if fits and value_s < best[j, a, c + 1]:
                            best[j, a, c + 1] = value_s
    return best
