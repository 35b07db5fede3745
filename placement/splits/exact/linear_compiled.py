"""Compiled parts of the linearised split: parts are intervals of one order of the units."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.instance import Bools

SLACK = 1e-12


@jit
def throughput_intervals(
    order: Ints,
    acc_s: Floats,
    cpu_s: Floats,
    size_bytes: Floats,
    on_acc: Bools,
    on_cpu: Bools,
    pinned: Ints,
    unit_ptr: Ints,
    unit_nets: Ints,
    net_size: Ints,
    net_cost_s: Floats,
    num_accelerators: int,
    num_cpus: int,
    limit_bytes: float,
    cap_s: float,
    most_replicas: int,
    overlap: bool,
) -> tuple[Floats, Ints]:
    """Least maximal load of the first i units by (i, accelerators, CPUs), and where parts begin.

    Loads are at most `cap_s`. The second array holds the last part's begin: plus U + 1
    times its replicas less one on accelerators, subtracted from -1 on a CPU.
    A part without a device of its own may be on up to `most_replicas` accelerators, which share its
    load; with `overlap` that is the larger of compute and transfers.
    `unit_nets[unit_ptr[u]:unit_ptr[u + 1]]` are the nets of unit u, `net_size` their units.
    """
    num = len(order)
    shape = (num + 1, num_accelerators + 1, num_cpus + 1)
    best = np.full(shape, np.inf)
    begin = np.zeros(shape, np.int64)
    best[0, 0, 0] = 0.0
    allowance = cap_s * (1.0 + SLACK)
    widest = allowance * most_replicas
    held = np.zeros(len(net_cost_s), np.int64)
    for i in range(num):
        if not np.isfinite(best[i]).any():
            continue
        work, host_work, cut, size, pins, end = 0.0, 0.0, 0.0, 0.0, 0, i
        acc_ok, cpu_ok = num_accelerators > 0, num_cpus > 0
        for j in range(i, num):
            u = order[j]
            pins += pinned[u] >= 0
            work += acc_s[u]
            host_work += cpu_s[u]
            size += size_bytes[u]
            acc_ok = acc_ok and on_acc[u] and work <= widest and size <= limit_bytes
            cpu_ok = cpu_ok and on_cpu[u] and host_work <= allowance
            if pins > 1 or not (acc_ok or cpu_ok):
                break
            cut = joined(u, cut, held, unit_ptr, unit_nets, net_size, net_cost_s)
            end = j + 1
            if acc_ok:
                load = max(work, cut) if overlap else work + cut
                most = 1 if pins else most_replicas
                add_accelerators(i, end, load, allowance, most, best, begin)
            if cpu_ok:
                add_cpu(i, end, host_work, best, begin)
        left(order[i:end], held, unit_ptr, unit_nets)
    return best, begin


@jit
def add_accelerators(
    i: int, end: int, load: float, allowance: float, most: int, best: Floats, begin: Ints
) -> None:
    """Put the units from the i-th to before the end on up to `most` accelerators that share them.

    None takes more than `allowance`.
    """
    for r in range(1, most + 1):
        if load > allowance * r:
            continue
        for a in range(best.shape[1] - r):
            for c in range(best.shape[2]):
                value = max(best[i, a, c], load / r)
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
def joined(
    u: int,
    cut: float,
    held: Ints,
    unit_ptr: Ints,
    unit_nets: Ints,
    net_size: Ints,
    net_cost_s: Floats,
) -> float:
    """What a part pays for transfers once unit u joins it; `held` (T,) counts its units by net."""
    for p in range(unit_ptr[u], unit_ptr[u + 1]):
        net = unit_nets[p]
        held[net] += 1
        if held[net] == 1:
            cut += net_cost_s[net]
        if held[net] == net_size[net]:
            cut -= net_cost_s[net]
    return cut


@jit
def left(units: Ints, held: Ints, unit_ptr: Ints, unit_nets: Ints) -> None:
    """Count no unit of a part any more."""
    for u in units:
        for p in range(unit_ptr[u], unit_ptr[u + 1]):
            held[unit_nets[p]] = 0


@jit
def latency_intervals(
    order: Ints,
    acc_s: Floats,
    size_bytes: Floats,
    on_acc: Bools,
    on_cpu: Bools,
    pinned: Ints,
    unit_ptr: Ints,
    unit_nets: Ints,
    net_size: Ints,
    net_cost_s: Floats,
    node_ptr: Ints,
    nodes: Ints,
    node_cpu_s: Floats,
    pred_ptr: Ints,
    pred: Ints,
    num_calls: int,
    limit_bytes: float,
) -> tuple[Floats, Ints]:
    """Least time of the first i units by (i, calls) if parts follow each other, and their begins.

    A part is one call or a run of CPU nodes, which takes its longest path. The second array holds
    the last part's begin, plus U + 1 on the CPU. `nodes[node_ptr[u]:node_ptr[u + 1]]` are a unit's
    nodes and `pred[pred_ptr[n]:pred_ptr[n + 1]]` a node's predecessors.
    """
    num = len(order)
    best = np.full((num + 1, num_calls + 1), np.inf)
    begin = np.full((num + 1, num_calls + 1), -1, np.int64)
    best[0, 0] = 0.0
    held = np.zeros(len(net_cost_s), np.int64)
    path_s = np.zeros(len(node_cpu_s))
    stamp = np.full(len(node_cpu_s), -1, np.int64)
    for i in range(num):
        if not np.isfinite(best[i]).any():
            continue
        work, run, cut, size, pins, end = 0.0, 0.0, 0.0, 0.0, 0, i
        acc_ok, cpu_ok = num_calls > 0, True
        for j in range(i, num):
            u = order[j]
            pins += pinned[u] >= 0
            work += acc_s[u]
            size += size_bytes[u]
            acc_ok = acc_ok and on_acc[u] and size <= limit_bytes and pins < 2
            cpu_ok = cpu_ok and on_cpu[u]
            if not (acc_ok or cpu_ok):
                break
            end = j + 1
            cut = joined(u, cut, held, unit_ptr, unit_nets, net_size, net_cost_s)
            if cpu_ok:
                for at in range(node_ptr[u], node_ptr[u + 1]):
                    n = nodes[at]
                    ready = 0.0
                    for p in range(pred_ptr[n], pred_ptr[n + 1]):
                        if stamp[pred[p]] == i:
                            ready = max(ready, path_s[pred[p]])
                    stamp[n] = i
                    path_s[n] = ready + node_cpu_s[n]
                    run = max(run, path_s[n])
            for a in range(num_calls + 1):
                if acc_ok and a < num_calls and best[i, a] + work + cut < best[end, a + 1]:
                    best[end, a + 1] = best[i, a] + work + cut
                    begin[end, a + 1] = i
                if cpu_ok and best[i, a] + run < best[end, a]:
                    best[end, a] = best[i, a] + run
                    begin[end, a] = i + num + 1
        left(order[i:end], held, unit_ptr, unit_nets)
    return best, begin
