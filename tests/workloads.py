"""Workload files for tests: those of the literature where they are at hand, and made-up ones."""

import random
from pathlib import Path
from typing import Any

import pytest

from placement.core.problem import Problem
from placement.loaders import load
from placement.loaders.workload import problem_from_workload

SHARED = Path(__file__).parents[2] / "shared" / "workloads"


def shared_file(kind: str, name: str) -> Path:
    """A file of the literature ("throughput", "latency" or "experts"); skips where it is not."""
    path = SHARED / kind / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"the workload file {kind}/{name}.json is not at hand")
    return path


def shared_problem(kind: str, name: str) -> Problem:
    problem = load(str(shared_file(kind, name))).problem
    assert problem is not None
    return problem


def node(number: int, cpu_ms: float, acc_ms: float, size: float = 1.0, **more: Any) -> dict:
    return {
        "id": number,
        "supportedOnFpga": True,
        "cpuLatency": cpu_ms,
        "fpgaLatency": acc_ms,
        "isBackwardNode": False,
        "size": size,
        **more,
    }


def edges(*rows: tuple[int, int, float]) -> list[dict]:
    return [{"sourceId": a, "destId": b, "cost": cost} for a, b, cost in rows]


def workload(nodes: list[dict], edge_rows: list[dict], **limits: float) -> dict:
    return {
        "maxSizePerFPGA": 100.0,
        "maxFPGAs": 2,
        "maxCPUs": 1,
        "nodes": nodes,
        "edges": edge_rows,
        **limits,
    }


def diamond() -> dict:
    """1 -> 2 and 3 -> 4; moving the output of node n costs n milliseconds."""
    return workload(
        [node(1, 10, 1), node(2, 20, 2), node(3, 30, 3), node(4, 40, 4)],
        edges((1, 2, 1), (1, 3, 1), (2, 4, 2), (3, 4, 3)),
    )


def random_workload(seed: int, *, num_nodes: int = 8, training: bool = False) -> dict:
    """Whole milliseconds, so that sums are exact; ids count down, against the topological order.

    With `training` the second half runs backward, most of it in the class of a forward node.
    """
    rng = random.Random(seed)
    late = num_nodes // 2 if training else num_nodes
    ids = [10 * (num_nodes - i) for i in range(num_nodes)]
    nodes = []
    for i in range(num_nodes):
        more: dict[str, Any] = {"isBackwardNode": i >= late}
        if training and rng.random() < 0.7:
            more["colorClass"] = i if i < late else num_nodes - 1 - i
        elif not training and rng.random() < 0.3:
            more["colorClass"] = rng.randrange(3)
        nodes.append(node(ids[i], rng.randrange(30), rng.randrange(8), rng.randrange(9), **more))
    rows = []
    for i in range(num_nodes):
        cost = rng.randrange(5)
        rows += [
            (ids[i], ids[j], cost) for j in range(i + 1, num_nodes) if rng.random() < 2 / num_nodes
        ]
    return workload(nodes, edges(*rows), maxFPGAs=1 + seed % 3, maxCPUs=1 + seed % 2)


def random_workload_problem(seed: int, **settings: Any) -> Problem:
    return problem_from_workload(random_workload(seed, **settings), f"random {seed}")
