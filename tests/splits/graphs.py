"""Random split instances: small ones for brute force, larger ones by shape."""

from itertools import pairwise

import numpy as np

from placement.splits.model.instance import SplitInstance, csr


def instance_of(
    acc_s,
    cpu_s,
    nets,
    costs,
    *,
    k,
    cpus,
    limit=np.inf,
    sizes=None,
    class_of=None,
    backward=None,
    allowed=None,
):
    """An instance from plain lists; every node is its own class and free unless told otherwise."""
    num = len(acc_s)
    class_of = np.arange(num) if class_of is None else np.asarray(class_of)
    net_ptr, net_nodes = csr(nets)
    shape = (int(class_of.max()) + 1, k + cpus)
    return SplitInstance(
        acc_s=np.asarray(acc_s, dtype=float),
        cpu_s=np.asarray(cpu_s, dtype=float),
        size_bytes=np.zeros(num) if sizes is None else np.asarray(sizes, dtype=float),
        class_of=class_of,
        allowed=np.ones(shape, dtype=bool) if allowed is None else allowed,
        backward=np.zeros(num, dtype=bool) if backward is None else np.asarray(backward),
        net_ptr=net_ptr,
        net_nodes=net_nodes,
        net_cost_s=np.asarray(costs, dtype=float),
        num_accelerators=k,
        num_cpus=cpus,
        limit_bytes=float(limit),
        names=tuple(f"n{i}" for i in range(num)),
    )


def modules(num_modules, branches, length, *, k, cpus, seed=0):
    """Modules in a row, each a fork into branches of some length and a join."""
    rng = np.random.default_rng(seed)
    nets, last, num = [], 0, 1
    for _ in range(num_modules):
        heads, tails = [], []
        for _ in range(branches):
            chain = list(range(num, num + length))
            num += length
            heads.append(chain[0])
            tails.append(chain[-1])
            nets += [[a, b] for a, b in pairwise(chain)]
        nets.append([last, *heads])
        nets += [[tail, num] for tail in tails]
        last = num
        num += 1
    acc = rng.uniform(0.1, 2.0, num)
    return instance_of(
        acc, acc * rng.uniform(5, 15, num), nets, rng.uniform(0.01, 0.5, len(nets)), k=k, cpus=cpus
    )


def random_instance(seed, *, training=False, most=7):
    """A small instance with classes, pins, unsupported nodes, idle nodes and scarce memory."""
    rng = np.random.default_rng(seed)
    num = int(rng.integers(2, most + 1))
    backward = np.arange(num) >= rng.integers(1, num + 1) if training else np.zeros(num, dtype=bool)
    nets, costs = [], []
    for u in range(num - 1):
        readers = u + 1 + np.flatnonzero(rng.random(num - 1 - u) < rng.choice([0.2, 0.5]))
        if len(readers):
            nets.append([u, *readers.tolist()])
            costs.append(rng.choice([0.0, 0.1, 1.0]) * rng.uniform(0.5, 2.0))
    first = {}
    labels = rng.integers(0, num, num) if rng.random() < 0.6 else np.arange(num)
    class_of = [first.setdefault(int(label), len(first)) for label in labels]
    k = int(rng.integers(1, 4))
    cpus = int(rng.integers(0, 4 - k)) if k < 3 else 0
    acc = rng.uniform(0.1, 2.0, num) * (rng.random(num) < 0.7)
    cpu = acc * rng.uniform(0.5, 10, num)
    allowed = np.ones((len(first), k + cpus), dtype=bool)
    for c in range(len(first)):
        if cpus and rng.random() < 0.1:
            allowed[c, :k] = False
        elif k + cpus > 1 and rng.random() < 0.15:
            allowed[c] = np.arange(k + cpus) == rng.integers(k + cpus)
    sizes = rng.integers(0, 4, num).astype(float)
    limit = np.inf if rng.random() < 0.4 else max(1.0, float(sizes.sum()) * rng.uniform(0.25, 1.0))
    acc[~allowed[class_of][:, :k].any(axis=1)] = np.inf
    return instance_of(
        acc,
        cpu if cpus else np.full(num, np.inf),
        nets,
        costs,
        k=k,
        cpus=cpus,
        limit=limit,
        sizes=sizes,
        class_of=class_of,
        backward=backward,
        allowed=allowed,
    )
