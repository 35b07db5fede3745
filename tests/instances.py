"""Random and published problem instances for tests."""

import random
from dataclasses import replace

import numpy as np

from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine
from placement.core.problem import Problem, own_kernels

# Topcuoglu, Hariri and Wu 2002, figure 2: times of 10 tasks on 3 processors and the edges' costs.
CANONICAL_TIMES = (
    (14, 16, 9),
    (13, 19, 18),
    (11, 13, 19),
    (13, 8, 17),
    (12, 13, 10),
    (13, 16, 9),
    (7, 15, 11),
    (5, 11, 14),
    (18, 12, 20),
    (21, 7, 16),
)
CANONICAL_EDGES = (
    (1, 2, 18),
    (1, 3, 12),
    (1, 4, 9),
    (1, 5, 11),
    (1, 6, 14),
    (2, 8, 19),
    (2, 9, 16),
    (3, 7, 23),
    (4, 8, 27),
    (4, 9, 23),
    (5, 9, 13),
    (6, 8, 15),
    (7, 10, 17),
    (8, 10, 11),
    (9, 10, 13),
)


def canonical_file(*, link_contention: bool = False) -> dict:
    """The canonical example as a problem file."""
    names = [f"P{i}" for i in (1, 2, 3)]
    return {
        "format": "placement-problem",
        "devices": [{"name": name} for name in names],
        "links": [
            {"src": a, "dst": b, "latency_s": 0.0, "bytes_per_s": 1.0}
            for a in names
            for b in names
            if a != b
        ],
        "ops": [
            {"name": f"n{i}", "times_s": list(map(float, times))}
            for i, times in enumerate(CANONICAL_TIMES, 1)
        ],
        "tensors": [
            {"producer": f"n{a}", "consumers": [f"n{b}"], "bytes": c} for a, b, c in CANONICAL_EDGES
        ],
        "link_contention": link_contention,
        "execution": "op",
    }


def random_problem(
    seed: int,
    *,
    num_ops: int = 12,
    num_devices: int = 2,
    execution: str = "segment",
    link_contention: bool = True,
    contention: float = 0.0,
    with_groups: bool = False,
    with_gaps: bool = False,
    with_cards: bool = False,
    with_overhead: bool = False,
) -> Problem:
    """A random layered problem; devices beyond the first are GPUs with memory of their own.

    Integer times keep sums exact, so that tests may compare with ==. `with_gaps` leaves some
    (op, device) pairs unsupported, `with_groups` ties some ops together, `with_cards` lets links
    share a channel, `with_overhead` has some of them hold up who sends and who receives.
    """
    rng = random.Random(seed)
    ops = tuple(
        Op(
            f"op{i}",
            rng.choice(("Conv", "Relu", "Add")),
            scope=f"block{i // 4}",
            param_bytes=rng.randrange(0, 50),
            colocation_group=f"g{rng.randrange(3)}" if with_groups and rng.random() < 0.3 else None,
        )
        for i in range(num_ops)
    )
    tensors = [Tensor("input", None, ("op0",), rng.randrange(1, 20))]
    for i in range(num_ops):
        later = [f"op{j}" for j in range(i + 1, min(num_ops, i + 5)) if rng.random() < 0.45]
        tensors.append(
            Tensor(f"t{i}", f"op{i}", tuple(later), rng.randrange(1, 30), is_output=not later)
        )
    devices = tuple(
        Device(f"d{i}", kind="cpu" if i == 0 else "gpu", memory_bytes=10_000)
        for i in range(num_devices)
    )
    links = tuple(
        Link(a.name, b.name, float(rng.randrange(1, 4)), 2.0)
        for a in devices
        for b in devices
        if a != b
    )
    if with_cards:
        drawn = random.Random(seed)
        links = tuple(replace(link, card=drawn.choice(("", "one", "two"))) for link in links)
    if with_overhead:
        drawn = random.Random(seed)
        shares = ((0.0, 0.0), (0.25, 0.0), (0.0, 0.5), (0.5, 0.25), (0.5, 0.5), (1.0, 0.0))
        links = tuple(
            replace(link, send_overhead=sender, receive_overhead=receiver)
            for link in links
            for sender, receiver in [drawn.choice(shares)]
        )
    machine = Machine("random", devices, links)
    compute = np.array([[rng.randrange(1, 20) for _ in devices] for _ in ops], dtype=float)
    if with_gaps:
        for i in range(num_ops):
            if rng.random() < 0.2:
                compute[i, rng.randrange(1, num_devices)] = np.inf
    latency = np.zeros((num_devices, num_devices))
    per_byte = np.zeros_like(latency)
    for link in links:
        a, b = machine.index[link.src], machine.index[link.dst]
        latency[a, b], per_byte[a, b] = link.latency_s, 1 / link.bytes_per_s
    calls = np.array([float(rng.randrange(0, 3)) for _ in devices])
    graph = Graph("random", ops, tuple(tensors))
    costs = Costs(
        compute,
        calls,
        latency,
        per_byte,
        "given",
        overhead=machine.overheads,
        contention=contention,
    )
    return Problem(
        graph,
        machine,
        costs,
        graph,
        own_kernels(graph),
        execution=execution,
        link_contention=link_contention,
    )


def with_state(problem: Problem, seed: int) -> Problem:
    """The same where some kernels, each an op of its own, keep state from step to step."""
    rng = random.Random(seed)
    ops = tuple(
        replace(op, state_bytes=rng.choice((0, rng.randrange(1, 40)))) for op in problem.kernels.ops
    )
    graph = replace(problem.kernels, ops=ops)
    return replace(problem, graph=graph, kernels=graph)


def hosts_problem(
    seed: int, *, num_hosts: int = 3, per_host: int = 3, num_ops: int = 12, num_odd: int = 0, **more
) -> Problem:
    """A random problem on hosts of one kind, each a CPU and equal GPUs, with links of two kinds.

    So many odd ones, devices of other times or links of other figures, make it less alike.
    """
    rng = random.Random(seed)
    num = num_hosts * per_host
    problem = random_problem(seed, num_ops=num_ops, num_devices=num, **more)
    host, is_cpu = np.arange(num) // per_host, np.arange(num) % per_host == 0
    compute_s = problem.costs.compute_s[:, np.where(is_cpu, 0, min(1, num - 1))].copy()
    together = host[:, None] == host
    latency_s = np.where(together, float(rng.randrange(0, 3)), float(rng.randrange(1, 4)))
    s_per_byte = np.where(together, 0.25, rng.choice((0.5, 0.125)))
    # Drawn apart, so that all else of a problem is as without it.
    apart = random.Random(seed)
    overhead = np.where(
        together, 0.0, [[[apart.choice((0.0, 0.5))]], [[apart.choice((0.0, 0.25))]]]
    )
    for _ in range(num_odd):
        at = (apart.randrange(num), apart.randrange(num))
        overhead[:, *at] = apart.choice(((0.0, 0.0), (0.5, 0.5), (1.0, 0.0)))
        a, b = rng.randrange(num), rng.randrange(num)
        if a == b:
            compute_s[rng.randrange(num_ops), a] += 1.0
        elif rng.random() < 0.5:
            latency_s[a, b] = float(rng.randrange(0, 3))
        else:
            s_per_byte[a, b] = rng.choice((0.25, 0.0625))
    for links in (latency_s, s_per_byte, *overhead):
        np.fill_diagonal(links, 0.0)
    devices = tuple(
        replace(d, kind="cpu" if cpu else "gpu")
        for d, cpu in zip(problem.machine.devices, is_cpu.tolist(), strict=True)
    )
    call_s = np.where(is_cpu, problem.costs.call_s[0], problem.costs.call_s[-1])
    costs = replace(
        problem.costs,
        compute_s=compute_s,
        call_s=call_s,
        latency_s=latency_s,
        s_per_byte=s_per_byte,
        overhead=overhead,
    )
    links = tuple(
        replace(
            link,
            latency_s=float(latency_s[a, b]),
            bytes_per_s=1.0 / float(s_per_byte[a, b]),
            send_overhead=float(overhead[0, a, b]),
            receive_overhead=float(overhead[1, a, b]),
        )
        for link in problem.machine.links
        for a, b in [(problem.machine.index[link.src], problem.machine.index[link.dst])]
    )
    return replace(
        problem, costs=costs, machine=replace(problem.machine, devices=devices, links=links)
    )


def random_devices(problem: Problem, seed: int) -> list[int]:
    """A random allowed device for every unit."""
    rng = random.Random(seed)
    return [
        rng.choice([int(d) for d in np.flatnonzero(problem.allowed[u])])
        for u in range(problem.num_units)
    ]


# Arabnejad and Barbosa 2014, figure 1 and table 1: times of 10 tasks on 3 processors, edges' costs.
PEFT_TIMES = (
    (22, 21, 36),
    (22, 18, 18),
    (32, 27, 43),
    (7, 10, 4),
    (29, 27, 35),
    (26, 17, 24),
    (14, 25, 30),
    (29, 23, 36),
    (15, 21, 8),
    (13, 16, 33),
)
PEFT_EDGES = (
    (1, 2, 17),
    (1, 3, 31),
    (1, 4, 29),
    (1, 5, 13),
    (1, 6, 7),
    (2, 8, 3),
    (2, 9, 30),
    (3, 7, 16),
    (4, 8, 11),
    (4, 9, 7),
    (5, 9, 57),
    (6, 8, 5),
    (7, 10, 9),
    (8, 10, 42),
    (9, 10, 7),
)


def peft_file() -> dict:
    """The example of the PEFT paper as a problem file."""
    content = canonical_file()
    return content | {
        "ops": [
            {"name": f"n{i}", "times_s": list(map(float, times))}
            for i, times in enumerate(PEFT_TIMES, 1)
        ],
        "tensors": [
            {"producer": f"n{a}", "consumers": [f"n{b}"], "bytes": c} for a, b, c in PEFT_EDGES
        ],
    }
