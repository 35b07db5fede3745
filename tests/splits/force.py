"""All splits of a small instance at once, valued from the definitions in the paper's words."""

import itertools

import numpy as np


def splits(instance):
    """Every device by class, (A, C), that support, pins and memory allow."""
    rows = itertools.product(*(np.flatnonzero(row).tolist() for row in instance.allowed))
    devices = np.array(list(rows), dtype=np.int64).reshape(-1, instance.num_classes)
    keep = np.ones(len(devices), dtype=bool)
    for d in range(instance.num_accelerators):
        held = (devices[:, instance.class_of] == d) @ instance.size_bytes
        keep &= held <= instance.limit_bytes
    return devices[keep]


def phase_loads_s(instance, devices, replicas=None):
    """Load of every device under each split by phase, (P, A, D); one phase unless they are apart.

    `replicas` (D,) are accelerators that share each device's part.
    """
    rules, k = instance.rules, instance.num_accelerators
    of_node = devices[:, instance.class_of]
    counts = np.ones(instance.num_devices) if replicas is None else np.asarray(replicas, float)
    cluster = [d // rules.cluster_size if rules.cluster_size else 0 for d in range(k)]
    everything = np.ones_like(instance.backward)
    phases = [~instance.backward, instance.backward] if rules.gpipe else [everything]
    loads = np.zeros((len(phases), len(devices), instance.num_devices))
    for p, d in itertools.product(range(len(phases)), range(instance.num_devices)):
        on_accelerator = d < k
        seconds = instance.acc_s if on_accelerator else instance.cpu_s
        work = np.where((of_node == d) & phases[p], seconds, 0.0).sum(axis=1)
        moves = np.zeros(len(devices))
        others = [e for e in range(k) if on_accelerator and cluster[e] != cluster[d]]
        for t, cost in enumerate(instance.net_cost_s):
            nodes = instance.net_nodes[instance.net_ptr[t] : instance.net_ptr[t + 1]]
            if on_accelerator and phases[p][nodes[0]]:
                here, readers_here = of_node[:, nodes[0]] == d, of_node[:, nodes[1:]] == d
                sends = here & ~readers_here.all(axis=1)
                receives = ~here & readers_here.any(axis=1)
                from_far = receives & np.isin(of_node[:, nodes[0]], others)
                to_far = sends & np.isin(of_node[:, nodes[1:]], others).any(axis=1)
                far = np.where(from_far | to_far, rules.slow_link_factor, 1.0)
                moves += cost * (sends | receives) * far
        if p + 1 == len(phases) and rules.sync_bytes_per_ms is not None:
            held = (of_node == d) @ instance.size_bytes
            each_ms = held / rules.sync_bytes_per_ms
            moves += 1e-3 * each_ms * 4 * (counts[d] - 1) / counts[d]
        together = np.maximum(work, moves) if rules.overlap else work + moves
        loads[p, :, d] = together / counts[d]
    return loads


def loads_s(instance, devices):
    """Load of every device under each split, (A, D), all phases together."""
    return phase_loads_s(instance, devices).sum(axis=0)


def samples_s(instance, devices, replicas=None):
    """Time between samples of each split, (A,)."""
    return phase_loads_s(instance, devices, replicas).max(axis=2).sum(axis=0)


def contiguous(instance, devices):
    """Whether the devices' forward sets form a chain: no way round between them, (A,)."""
    classes = instance.class_of.tolist()
    forward = {c for c, b in zip(classes, instance.backward, strict=True) if not b}
    edges = set()
    for t in range(len(instance.net_cost_s)):
        u, *readers = instance.net_nodes[instance.net_ptr[t] : instance.net_ptr[t + 1]].tolist()
        for v in readers:
            if not instance.backward[u] and not instance.backward[v]:
                edges.add((classes[u], classes[v]))
            if (
                instance.backward[u]
                and instance.backward[v]
                and not {classes[u], classes[v]} <= forward
            ):
                edges.add((classes[v], classes[u]))
    reach = np.zeros((len(devices), instance.num_devices, instance.num_devices), dtype=bool)
    for a, b in sorted(edges):
        apart = np.flatnonzero(devices[:, a] != devices[:, b])
        reach[apart, devices[apart, a], devices[apart, b]] = True
    for _ in range(instance.num_devices):
        reach |= reach @ reach
    return ~reach.diagonal(axis1=1, axis2=2).any(axis=1)


def replicated_s(instance, devices, most):
    """The least time between samples of a split whose parts idle accelerators may share."""
    k = instance.num_accelerators
    used = np.unique(devices)
    pinned = {int(devices[c]) for c in np.flatnonzero(instance.allowed.sum(axis=1) == 1)}
    free = [range(1, most + 1) if d < k and d not in pinned else (1,) for d in used]
    if instance.num_devices == 1:
        free = [(1,)]
    values = []
    for counts in itertools.product(*free):
        if sum(r for d, r in zip(used, counts, strict=True) if d < k) <= k:
            replicas = np.ones(instance.num_devices)
            replicas[used] = counts
            values.append(samples_s(instance, devices[None], replicas)[0])
    return min(values)


def latency_s(instance, slots, calls_each=1):
    """Seconds of one sample with classes in slots (call s % q of accelerator s // q; -1: a CPU).

    Infinite where calls wait for each other in a cycle.
    """
    num = instance.num_nodes
    slot = np.asarray(slots)[instance.class_of]
    item = np.where(slot >= 0, num + slot, np.arange(num))
    seconds = dict.fromkeys(item.tolist(), 0.0)
    for n in range(num):
        seconds[int(item[n])] += float(instance.acc_s[n] if slot[n] >= 0 else instance.cpu_s[n])
    edges = set()
    for t, cost in enumerate(instance.net_cost_s):
        u, *readers = item[
            instance.net_nodes[instance.net_ptr[t] : instance.net_ptr[t + 1]]
        ].tolist()
        elsewhere = {r for r in readers if r != u}
        for r in sorted(elsewhere):
            edges.add((u, r))
            seconds[r] += cost if r >= num else 0.0
        seconds[u] += cost if elsewhere and u >= num else 0.0
    called = sorted(i for i in seconds if i >= num)
    edges |= {
        (a, b)
        for a, b in itertools.combinations(called, 2)
        if (a - num) // calls_each == (b - num) // calls_each
    }
    end = {}
    while len(end) < len(seconds):
        ready = [i for i in seconds if i not in end and all(a in end for a, b in edges if b == i)]
        if not ready:
            return np.inf
        for i in ready:
            end[i] = seconds[i] + max((end[a] for a, b in edges if b == i), default=0.0)
    return max(end.values())


def best_latency_s(instance, calls_each=1):
    """The least latency of all splits into calls."""
    best = np.inf
    k = instance.num_accelerators
    choices = []
    for row in instance.allowed:
        slots = [
            s for d in np.flatnonzero(row[:k]) for s in range(d * calls_each, (d + 1) * calls_each)
        ]
        choices.append(slots + [-1] * bool(row[k:].any()))
    sizes = instance.class_sums(instance.size_bytes)
    for slots in itertools.product(*choices):
        held = np.zeros(k + 1)
        np.add.at(held, [s // calls_each if s >= 0 else k for s in slots], sizes)
        if (held[:k] <= instance.limit_bytes).all():
            best = min(best, latency_s(instance, slots, calls_each))
    return best
