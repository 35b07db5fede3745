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


def loads_s(instance, devices):
    """Load of every device under each split, (A, D)."""
    of_node = devices[:, instance.class_of]
    loads = np.zeros((len(devices), instance.num_devices))
    for d in range(instance.num_devices):
        on_accelerator = d < instance.num_accelerators
        seconds = instance.acc_s if on_accelerator else instance.cpu_s
        loads[:, d] = np.where(of_node == d, seconds, 0.0).sum(axis=1)
        moves = np.zeros(len(devices))
        for t, cost in enumerate(instance.net_cost_s):
            if on_accelerator:
                nodes = instance.net_nodes[instance.net_ptr[t] : instance.net_ptr[t + 1]]
                here, readers_here = of_node[:, nodes[0]] == d, of_node[:, nodes[1:]] == d
                sends = here & ~readers_here.all(axis=1)
                receives = ~here & readers_here.any(axis=1)
                moves += cost * (sends | receives)
        together = np.maximum(loads[:, d], moves) if instance.overlap else loads[:, d] + moves
        loads[:, d] = together
    return loads


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
    """The least largest load of one split whose parts accelerators without a part may share."""
    loads = loads_s(instance, devices[None])[0]
    k = instance.num_accelerators
    used = np.unique(devices)
    pinned = {int(devices[c]) for c in np.flatnonzero(instance.allowed.sum(axis=1) == 1)}
    free = [range(1, most + 1) if d < k and d not in pinned else (1,) for d in used]
    if instance.num_devices == 1:
        free = [(1,)]
    return min(
        max(loads[d] / r for d, r in zip(used, counts, strict=True))
        for counts in itertools.product(*free)
        if sum(r for d, r in zip(used, counts, strict=True) if d < k) <= k
    )


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
