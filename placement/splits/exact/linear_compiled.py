"""Compiled parts of the linearised split: parts are intervals of one order of the units."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.exact.chains_compiled import shared_load_s
from placement.splits.model.contract import UnitArrays
from placement.splits.model.timing import TimedNodes

SLACK = 1e-12


@jit
def throughput_intervals(
    order: Ints,
    units: UnitArrays,
    cap_s: float,
    most_replicas: int,
    overlap: bool,
    sync_s_per_byte: float,
) -> tuple[Floats, Ints]:
    """Least maximal load of the first i units by (i, accelerators, CPUs), and where parts begin.

    Loads are at most `cap_s`. The second array holds the last part's begin: plus U + 1
    times its replicas less one on accelerators, subtracted from -1 on a CPU.
    A part without a device of its own may be on up to `most_replicas` accelerators, which share its
    load, see `chains_compiled.Limits`.
    """
    num, num_accelerators, num_cpus = len(order), units.num_accelerators, units.num_cpus
    shape = (num + 1, num_accelerators + 1, num_cpus + 1)
    best = np.full(shape, np.inf)
    begin = np.zeros(shape, np.int64)
    best[0, 0, 0] = 0.0
    allowance = cap_s * (1.0 + SLACK)
    widest = allowance * most_replicas
    held = np.zeros(len(units.net_cost_s), np.int64)
    for i in range(num):
        if not np.isfinite(best[i]).any():
            continue
        work, host_work, cut, size, pins, end = 0.0, 0.0, 0.0, 0.0, 0, i
        acc_ok, cpu_ok = num_accelerators > 0, num_cpus > 0
        for j in range(i, num):
            u = order[j]
            pins += units.pinned[u] >= 0
            work += units.acc_s[u]
            host_work += units.cpu_s[u]
            size += units.size_bytes[u]
            acc_ok = acc_ok and units.on_acc[u] and work <= widest and size <= units.limit_bytes
            cpu_ok = cpu_ok and units.on_cpu[u] and host_work <= allowance
            if pins > 1 or not (acc_ok or cpu_ok):
                break
            cut = joined(u, cut, held, units)
            end = j + 1
            if acc_ok:
                for r in range(1, (1 if pins else most_replicas) + 1):
                    load = shared_load_s(work, cut, size, r, sync_s_per_byte, overlap)
                    if load <= allowance:
                        add_accelerators(i, end, load, r, best, begin)
            if cpu_ok:
                add_cpu(i, end, host_work, best, begin)
        left(order[i:end], held, units)
    return best, begin


@jit
def add_accelerators(i: int, end: int, load: float, r: int, best: Floats, begin: Ints) -> None:
    """Put the units from the i-th to before the end on r accelerators that share them."""
    for a in range(best.shape[1] - r):
        for c in range(best.shape[2]):
            value = max(best[i, a, c], load)
            if value < best[end, a + r, c]:
                best[end, a + r, c] = value
                begin[end, a + r, c] = i + best.shape[0] * (r - 1)


@jit
def add_cpu(i: int, end: int, load: float, best: Floats, begin: Ints) -> None:
    """Put the units from the i-th to before the end on one more CPU."""
    for a in range(best.shape[1]):
        for c in range(best.shape[2] - 1):
            value = max(best[i, a, c], load)
            if value < best[end, a, c + 1]:
                best[end, a, c + 1] = value
                begin[end, a, c + 1] = -1 - i


@jit
def joined(u: int, cut: float, held: Ints, units: UnitArrays) -> float:
    """What a part pays for transfers once unit u joins it; `held` (T,) counts its units by net."""
    for p in range(units.unit_ptr[u], units.unit_ptr[u + 1]):
        net = units.unit_nets[p]
        held[net] += 1
        if held[net] == 1:
            cut += units.net_cost_s[net]
        if held[net] == units.net_ptr[net + 1] - units.net_ptr[net]:
            cut -= units.net_cost_s[net]
    return cut


@jit
def left(part: Ints, held: Ints, units: UnitArrays) -> None:
    """Count no unit of a part any more."""
    for u in part:
        for p in range(units.unit_ptr[u], units.unit_ptr[u + 1]):
            held[units.unit_nets[p]] = 0


@jit
def latency_intervals(order: Ints, units: UnitArrays, nodes: TimedNodes) -> tuple[Floats, Ints]:
    """Least time of the first i units by (i, calls) if parts follow each other, and their begins.

    A part is one call or a run of CPU nodes, which takes its longest path. The second array holds
    the last part's begin, plus U + 1 on the CPU.
    """
    num, num_calls = len(order), units.num_accelerators
    node_ptr, pred_ptr, pred = nodes.node_ptr, nodes.pred_ptr, nodes.pred
    best = np.full((num + 1, num_calls + 1), np.inf)
    begin = np.full((num + 1, num_calls + 1), -1, np.int64)
    best[0, 0] = 0.0
    held = np.zeros(len(units.net_cost_s), np.int64)
    path_s = np.zeros(len(nodes.cpu_s))
    stamp = np.full(len(nodes.cpu_s), -1, np.int64)
    for i in range(num):
        if not np.isfinite(best[i]).any():
            continue
        work, run, cut, size, pins, end = 0.0, 0.0, 0.0, 0.0, 0, i
        acc_ok, cpu_ok = num_calls > 0, True
        for j in range(i, num):
            u = order[j]
            pins += units.pinned[u] >= 0
            work += units.acc_s[u]
            size += units.size_bytes[u]
            acc_ok = acc_ok and units.on_acc[u] and size <= units.limit_bytes and pins < 2
            cpu_ok = cpu_ok and units.on_cpu[u]
            if not (acc_ok or cpu_ok):
                break
            end = j + 1
            cut = joined(u, cut, held, units)
            if cpu_ok:
                for at in range(node_ptr[u], node_ptr[u + 1]):
                    n = nodes.in_unit[at]
                    ready = 0.0
                    for p in range(pred_ptr[n], pred_ptr[n + 1]):
                        if stamp[pred[p]] == i:
                            ready = max(ready, path_s[pred[p]])
                    stamp[n] = i
                    path_s[n] = ready + nodes.cpu_s[n]
                    run = max(run, path_s[n])
            for a in range(num_calls + 1):
                if acc_ok and a < num_calls and best[i, a] + work + cut < best[end, a + 1]:
                    best[end, a + 1] = best[i, a] + work + cut
                    begin[end, a + 1] = i
                if cpu_ok and best[i, a] + run < best[end, a]:
                    best[end, a] = best[i, a] + run
                    begin[end, a] = i + num + 1
        left(order[i:end], held, units)
    return best, begin
