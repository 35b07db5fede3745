"""Families of made-up graphs: wide ones to train policies on, and others to try them on.

Chains teach a policy to use one device, so the graphs of training have work side by side: random
layers (Tobita and Kasahara 2002), towers that part and join as in Inception, and recurrent
networks unrolled over layers and steps. Held out are fork and join, the butterfly of a Fourier
transform, and trees of reductions. Machines, speeds, and how much is moved for what is computed are
drawn, too.
"""

from collections.abc import Callable

import numpy as np

from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine, link_arrays
from placement.core.problem import Execution, Objective, Problem, own_kernels

# For each op the earlier ops that it reads.
Reads = list[list[int]]


def layers(rng: np.random.Generator) -> Reads:
    width, depth = int(rng.integers(3, 21)), int(rng.integers(3, 14))
    reads: Reads = []
    for _ in range(depth):
        first, num = max(0, len(reads) - 2 * width), len(reads)
        for _ in range(int(rng.integers(1, width + 1))):
            some = rng.integers(first, num, int(rng.integers(1, 4))) if num else []
            reads.append(sorted({int(i) for i in some}))
    return reads


def towers(rng: np.random.Generator) -> Reads:
    reads: Reads = [[]]
    for _ in range(int(rng.integers(3, 12))):
        begin, ends = len(reads) - 1, []
        for _ in range(int(rng.integers(2, 7))):
            before = begin
            for _ in range(int(rng.integers(1, 6))):
                reads.append([before])
                before = len(reads) - 1
            ends.append(before)
        reads.append(ends)
    return reads


def recurrent(rng: np.random.Generator) -> Reads:
    depth, length, size = int(rng.integers(2, 7)), int(rng.integers(3, 16)), int(rng.integers(1, 4))
    reads: Reads = []
    last: dict[tuple[int, int], int] = {}
    for layer in range(depth):
        for step in range(length):
            before = [last[at] for at in ((layer - 1, step), (layer, step - 1)) if at in last]
            for _ in range(size):
                reads.append(before)
                before = [len(reads) - 1]
            last[layer, step] = len(reads) - 1
    if rng.random() < 0.5:
        reads.append([last[depth - 1, step] for step in range(length)])
    return reads


def forks(rng: np.random.Generator) -> Reads:
    reads: Reads = [[]]
    for _ in range(int(rng.integers(2, 8))):
        begin = len(reads) - 1
        num = int(rng.integers(4, 20))
        reads += [[begin] for _ in range(num)]
        reads.append(list(range(begin + 1, begin + 1 + num)))
    return reads


def butterfly(rng: np.random.Generator) -> Reads:
    levels = int(rng.integers(3, 6))
    num = 2**levels
    reads: Reads = [[] for _ in range(num)]
    for level in range(levels):
        first = level * num
        reads += [sorted({first + i, first + (i ^ (1 << level))}) for i in range(num)]
    return reads


def trees(rng: np.random.Generator) -> Reads:
    row = list(range(int(rng.integers(16, 100))))
    reads: Reads = [[] for _ in row]
    while len(row) > 1:
        num = int(rng.integers(2, 5))
        parts = [row[i : i + num] for i in range(0, len(row), num)]
        row = [len(reads) + i for i in range(len(parts))]
        reads += parts
    return reads


TRAINED: dict[str, Callable[[np.random.Generator], Reads]] = {
    "layers": layers,
    "towers": towers,
    "recurrent": recurrent,
}
HELD_OUT: dict[str, Callable[[np.random.Generator], Reads]] = {
    "forks": forks,
    "butterfly": butterfly,
    "trees": trees,
}


def problem_of(family: str, seed: int) -> Problem:
    """A graph of a family with a machine and costs; the same seed gives the same problem."""
    rng = np.random.default_rng([seed, *family.encode()])
    reads = {**TRAINED, **HELD_OUT}[family](rng)
    num_ops, machine = len(reads), _machine(rng)
    num_devices = len(machine.devices)
    kinds = rng.integers(0, 6, num_ops)
    work_s = rng.lognormal(np.log(50e-6), rng.uniform(0.2, 1.2), num_ops)
    # Each kind of op suits each kind of device more or less; devices of one kind are alike.
    kind_of = np.array([device.kind == "gpu" for device in machine.devices], dtype=np.int64)
    suits = rng.lognormal(0.0, rng.uniform(0.0, 0.7), (6, 2))
    speed = np.where(kind_of == 1, rng.uniform(1.0, 8.0), 1.0)
    if rng.random() < 0.3:
        speed = speed * rng.uniform(0.5, 1.5, num_devices)
    compute_s = work_s[:, None] * suits[kinds][:, kind_of] / speed
    latency_s, s_per_byte = link_arrays(machine)
    mean_link = s_per_byte.sum() / max(1, num_devices * (num_devices - 1))
    ratio = 10 ** rng.uniform(-1.5, 0.7)
    sizes = compute_s.min(axis=1).mean() * ratio / mean_link * rng.lognormal(0.0, 0.7, num_ops)
    graph = _graph(family, reads, kinds.tolist(), np.maximum(1, sizes).astype(np.int64).tolist())
    call_s = np.where(kind_of == 1, 5e-6, 1e-6) * rng.uniform(0.0, 2.0)
    return Problem(
        graph,
        machine,
        Costs(compute_s, call_s, latency_s, s_per_byte, "given"),
        graph,
        own_kernels(graph),
        objective=Objective.THROUGHPUT if rng.random() < 0.2 else Objective.LATENCY,
        execution=Execution.SEGMENT if rng.random() < 0.7 else Execution.OP,
    )


def _machine(rng: np.random.Generator) -> Machine:
    num_host, num_gpus = (1, int(rng.integers(1, 9)))
    if rng.random() < 0.25:
        num_host, num_gpus = int(rng.integers(2, 6)), 0
    devices = tuple(
        Device(f"d{i}", "cpu" if i < num_host else "gpu", memory_bytes=2**40)
        for i in range(num_host + num_gpus)
    )
    among_gpus, to_host = 10 ** rng.uniform(9.5, 11.5), 10 ** rng.uniform(9.5, 10.5)
    latency_s = 10 ** rng.uniform(-6.0, -4.8)
    links = tuple(
        Link(a.name, b.name, latency_s, among_gpus if a.kind == b.kind else to_host)
        for a in devices
        for b in devices
        if a != b
    )
    return Machine(f"{len(devices)} devices", devices, links)


def _graph(family: str, reads: Reads, kinds: list[int], sizes: list[int]) -> Graph:
    names = [f"op{i}" for i in range(len(reads))]
    readers: list[list[str]] = [[] for _ in reads]
    for i, before in enumerate(reads):
        for j in before:
            readers[j].append(names[i])
    ops = tuple(Op(name, f"kind{kind}") for name, kind in zip(names, kinds, strict=True))
    made = tuple(
        Tensor(f"{name}:0", name, tuple(to), size, is_output=not to)
        for name, to, size in zip(names, readers, sizes, strict=True)
    )
    sources = tuple(name for name, before in zip(names, reads, strict=True) if not before)
    return Graph(family, ops, (Tensor("input", None, sources, sizes[0]), *made))
