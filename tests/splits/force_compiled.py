"""All splits of a small instance into several calls per accelerator, compiled: there are many.

Compiled code is kept on disk as the project's own is, so that it is compiled once.
"""

import numpy as np

from placement.compiled.jit import jit


@jit
def sample_s(slot, q, acc_s, cpu_s, net_ptr, net_nodes, cost, k):
    """`force.latency_s` for the slot of each node (-1: a CPU); infinite for a cycle."""
    num = len(slot)
    item = np.where(slot >= 0, num + slot, np.arange(num))
    seconds, used = np.zeros(num + k * q), np.zeros(num + k * q, np.bool_)
    after = np.zeros((num + k * q, num + k * q), np.bool_)
    for n in range(num):
        used[item[n]] = True
        seconds[item[n]] += acc_s[n] if slot[n] >= 0 else cpu_s[n]
    for t in range(len(cost)):
        maker = item[net_nodes[net_ptr[t]]]
        seen = np.zeros(num + k * q, np.bool_)
        for p in range(net_ptr[t] + 1, net_ptr[t + 1]):
            reader = item[net_nodes[p]]
            if reader != maker and not seen[reader]:
                seen[reader] = True
                after[maker, reader] = True
                seconds[reader] += cost[t] if reader >= num else 0.0
        if seen.any() and maker >= num:
            seconds[maker] += cost[t]
    for s in range(k * q):
        for later in range(s + 1, (s // q + 1) * q):
            if used[num + s] and used[num + later]:
                after[num + s, num + later] = True
    end, done = np.zeros(len(used)), ~used
    for _ in range(len(used)):
        for b in range(len(used)):
            if not done[b] and not (after[:, b] & ~done).any():
                end[b] = seconds[b] + (end * after[:, b]).max()
                done[b] = True
    return end.max() if done.all() else np.inf


@jit
def best_s(allowed, class_of, sizes, limit, q, acc_s, cpu_s, net_ptr, net_nodes, cost):
    """The least of all splits whose accelerators (all columns of `allowed` but the last, which is
    the CPUs) make at most q calls each and hold no more than the limit."""
    num_classes, k = len(allowed), allowed.shape[1] - 1
    slot = np.full(num_classes, -1)
    best = np.inf
    while True:
        fits, held = True, np.zeros(k + 1)
        for c in range(num_classes):
            a = slot[c] // q if slot[c] >= 0 else k
            fits = fits and allowed[c, a]
            held[a] += sizes[c]
        if fits and (held[:k] <= limit).all():
            value = sample_s(slot[class_of], q, acc_s, cpu_s, net_ptr, net_nodes, cost, k)
            best = min(best, value)
        c = 0
        while c < num_classes:
            slot[c] += 1
            if slot[c] < k * q:
                break
            slot[c] = -1
            c += 1
        if c == num_classes:
            return best


def best_latency_s(instance, calls_each):
    """The least latency of all splits into calls."""
    k = instance.num_accelerators
    on_cpu = instance.allowed[:, k:].any(axis=1, keepdims=True)
    return best_s(
        np.concatenate([instance.allowed[:, :k], on_cpu], axis=1),
        instance.class_of,
        instance.class_sums(instance.size_bytes),
        float(instance.limit_bytes),
        calls_each,
        instance.acc_s,
        instance.cpu_s,
        instance.net_ptr,
        instance.net_nodes,
        instance.net_cost_s,
    )
