"""Made-up problems of any size: layers of ops that read a few ops of the layers before.

Layer-by-layer graphs as in Tobita and Kasahara, "A standard task graph set for fair evaluation of
multiprocessor scheduling algorithms", Journal of Scheduling 5(5), 2002. The same arguments give the
same problem.
"""

import numpy as np

from placement.core.costs import Costs, Floats
from placement.core.graph import Graph, Ints, Op, Tensor
from placement.core.machine import Device, Link, Machine, link_arrays
from placement.core.problem import Problem, own_kernels
from placement.pbqp.problem import Packed

# Ops of a layer, and how many layers back an op may read.
LAYER, REACH = 20, 3
MEAN_OP_S, MEAN_BYTES = 50e-6, 200_000
CALL_S, LATENCY_S, BYTES_PER_S = 5e-6, 10e-6, 10e9


def layered(
    num_ops: int,
    num_devices: int,
    *,
    on_host: bool = False,
    contention: float = 0.0,
    execution: str = "segment",
    seed: int = 0,
) -> Problem:
    """Ops of about 50 us with two readers each on average, in scopes of ten layers.

    The first device is a CPU, so are the others if `on_host`, which are accelerators otherwise;
    every device has its own speed for every op, within a factor of three.
    """
    rng = np.random.default_rng(seed)
    devices = tuple(
        Device(f"d{i}", "cpu" if on_host or not i else "gpu", memory_bytes=2**40)
        for i in range(num_devices)
    )
    links = tuple(
        Link(a.name, b.name, LATENCY_S, BYTES_PER_S) for a in devices for b in devices if a != b
    )
    machine = Machine(f"{num_devices} devices", devices, links)
    graph = _graph(num_ops, rng)
    latency_s, s_per_byte = link_arrays(machine)
    work_s = MEAN_OP_S * rng.lognormal(0.0, 0.5, num_ops)
    costs = Costs(
        work_s[:, None] * rng.uniform(0.5, 1.5, (num_ops, num_devices)),
        np.full(num_devices, CALL_S),
        latency_s,
        s_per_byte,
        "given",
        contention=contention,
    )
    return Problem(graph, machine, costs, graph, own_kernels(graph), execution=execution)


def _graph(num_ops: int, rng: np.random.Generator) -> Graph:
    readers: list[list[str]] = [[] for _ in range(num_ops)]
    sources: list[str] = []
    for i in range(num_ops):
        before = i // LAYER * LAYER
        first = max(0, before - REACH * LAYER)
        if not before:
            sources.append(f"op{i}")
            continue
        for j in np.unique(rng.integers(first, before, rng.integers(1, 4))).tolist():
            readers[j].append(f"op{i}")
    num_bytes = (MEAN_BYTES * rng.lognormal(0.0, 1.0, num_ops)).astype(int).tolist()
    ops = tuple(
        Op(f"op{i}", "op", scope=f"block{i // (10 * LAYER)}", param_bytes=num_bytes[i])
        for i in range(num_ops)
    )
    tensors = tuple(
        Tensor(f"t{i}", f"op{i}", tuple(names), size, is_output=not names)
        for i, (names, size) in enumerate(zip(readers, num_bytes, strict=True))
    )
    given = Tensor("input", None, tuple(sources), MEAN_BYTES)
    return Graph(f"layered {num_ops}", ops, (given, *tensors))


def net(parents: Ints, num_alts: int, seed: int = 0) -> Packed:
    """A partitioned Boolean quadratic problem whose node i + 1 has an edge to `parents[i]`."""
    rng = np.random.default_rng(seed)
    num_nodes, num_edges = parents.size + 1, parents.size
    matrices: Floats = rng.uniform(0.0, 10.0, num_edges * num_alts**2)
    return Packed(
        cost_ptr=np.arange(num_nodes + 1) * num_alts,
        costs=rng.uniform(0.0, 10.0, num_nodes * num_alts),
        ends=np.stack([parents, np.arange(1, num_nodes)], axis=1),
        matrix_ptr=np.arange(num_edges + 1) * num_alts**2,
        matrices=matrices,
    )
