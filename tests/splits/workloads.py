"""Workload files as instances, read here independently of the project's loader."""

import json
from pathlib import Path

import numpy as np
import pytest

from placement.core.graph import topological_order
from placement.splits.model.instance import SplitInstance, csr

FOLDER = Path(__file__).parents[3] / "shared" / "workloads"


def read(name: str) -> SplitInstance:
    """The instance of a file below the shared folder, in milliseconds; skips without it."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        pytest.skip("the shared folder of workload files is not beside the repository")
    content = json.loads(path.read_text())
    rows = content["nodes"]
    position = {row["id"]: i for i, row in enumerate(rows)}
    after = [[] for _ in rows]
    cost = [0.0] * len(rows)
    for edge in content["edges"]:
        source = position[edge["sourceId"]]
        if position[edge["destId"]] not in after[source]:
            after[source].append(position[edge["destId"]])
        cost[source] = edge["cost"]
    order = topological_order(len(rows), after)
    rank = {i: r for r, i in enumerate(order)}
    rows = [rows[i] for i in order]
    number = {}
    class_of = [
        number.setdefault(
            ("c", r["colorClass"]) if "colorClass" in r else ("n", r["id"]), len(number)
        )
        for r in rows
    ]
    producers = [i for i in order if after[i]]
    net_ptr, net_nodes = csr([[rank[i], *sorted(rank[j] for j in after[i])] for i in producers])
    k, cpus = content["maxFPGAs"], content["maxCPUs"]
    supported = np.array([r["supportedOnFpga"] for r in rows], dtype=bool)
    allowed = np.ones((len(number), k + cpus), dtype=bool)
    for c, good in zip(class_of, supported, strict=True):
        allowed[c, :k] &= good
    return SplitInstance(
        acc_s=np.where(supported, [r["fpgaLatency"] for r in rows], np.inf),
        cpu_s=np.array([r["cpuLatency"] for r in rows], dtype=float),
        size_bytes=np.array([r["size"] for r in rows], dtype=float),
        class_of=np.array(class_of),
        allowed=allowed,
        backward=np.array([bool(r["isBackwardNode"]) for r in rows]),
        net_ptr=net_ptr,
        net_nodes=net_nodes,
        net_cost_s=np.array([cost[i] for i in producers]),
        num_accelerators=k,
        num_cpus=cpus,
        limit_bytes=float(content["maxSizePerFPGA"]),
        names=tuple(r.get("name") or f"node{r['id']}" for r in rows),
    )
