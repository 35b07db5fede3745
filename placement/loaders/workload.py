"""Workload files: profiled graphs of the device placement literature, with accelerators and CPUs.

Tarnawski, Phanishayee, Devanur, Mahajan and Nina Paravecino, "Efficient Algorithms for Device
Placement of DNN Graph Operators", NeurIPS 2020. Of a node `id`, `supportedOnFpga`, `cpuLatency`,
`fpgaLatency`, `isBackwardNode`, `colorClass` and `size` are read ("FPGA" means any accelerator), of
an edge `sourceId`, `destId` and `cost`; other keys are debug information. Times are milliseconds.

An edge's cost is a time, not a size: a tensor is given the bytes that take this time over a link of
1 GB/s, which is what every pair of devices with an accelerator has.
"""

import math
from collections import Counter
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np

from placement.core.amounts import MOST, UNIT_S, is_amount
from placement.core.costs import Costs, Floats
from placement.core.decoding import shown
from placement.core.graph import Graph, Op, Tensor, topological_order
from placement.core.machine import Device, Link, Machine
from placement.core.model import Model
from placement.core.problem import Execution, Problem, own_kernels
from placement.files.input import read_json, read_value, refuse_dims
from placement.loaders.base import Loader

UNIT = "ms"
BYTES_PER_S = 1e9
LIMITS = ("maxSizePerFPGA", "maxFPGAs", "maxCPUs")
MAX_DEVICES = 256

Row = Mapping[str, Any]


class WorkloadLoader(Loader):
    """Reads a workload file; the model it gives has given costs and nothing to execute."""

    name = "workload"
    summary = "a profiled workload (JSON with maxFPGAs, nodes and edges)"
    suffixes = (".json",)

    def accepts(self, path: Path) -> bool:
        try:
            content = read_json(path)
        except ValueError:
            return False
        return (
            isinstance(content, dict) and "nodes" in content and any(k in content for k in LIMITS)
        )

    def load(self, path: Path, dims: Mapping[str, int]) -> Model:
        refuse_dims(dims, path)
        problem = read_value(path, "workload", lambda c: problem_from_workload(c, path.stem))
        return Model(problem.graph, problem=problem)


def problem_from_workload(content: Row, name: str) -> Problem:
    """The problem of a parsed workload file; a ValueError says what is wrong and where."""
    nodes, edges = _rows(content, "nodes"), _rows(content, "edges")
    if not nodes:
        raise ValueError("it has no nodes; add at least one.")
    machine = _machine(content, name)
    position = _positions(nodes)
    readers, cost_ms = _nets(edges, position)
    order = topological_order(len(nodes), readers)
    if order is None:
        on_cycle = nodes[_on_cycle(readers)]["id"]
        raise ValueError(f"its edges form a cycle through node {on_cycle}; remove one of them.")
    ops = _ops(nodes)
    tensors = tuple(
        Tensor(
            f"{ops[i].name}:out",
            ops[i].name,
            tuple(ops[j].name for j in readers[i]),
            _whole(cost_ms[i] * (UNIT_S[UNIT] * BYTES_PER_S)),
        )
        for i in order
        if readers[i]
    )
    graph = Graph(name, tuple(ops[i] for i in order), tensors)
    costs = _costs([nodes[i] for i in order], machine)
    return Problem(
        graph,
        machine,
        costs,
        graph,
        own_kernels(graph),
        execution=Execution.CALL,
        memory_model="sum",
        unit=UNIT,
    )


def _machine(content: Row, name: str) -> Machine:
    """Accelerators that share one memory limit, then CPUs; moving between CPUs is free."""
    num_accelerators, num_cpus = _count(content, "maxFPGAs"), _count(content, "maxCPUs")
    if not 1 <= num_accelerators + num_cpus <= MAX_DEVICES:
        raise ValueError(
            f"it has {num_accelerators} accelerators and {num_cpus} CPUs; state 1 to {MAX_DEVICES}"
            " devices in all (maxFPGAs and maxCPUs)."
        )
    limit_bytes = _whole(_number(content, "maxSizePerFPGA", "the file"))
    accelerators = tuple(
        Device(f"acc:{i}", "accelerator", "given", memory_bytes=limit_bytes)
        for i in range(num_accelerators)
    )
    devices = (*accelerators, *(Device(f"cpu:{i}", "cpu", "given") for i in range(num_cpus)))
    links = tuple(
        Link(a.name, b.name, 0.0, BYTES_PER_S)
        for a in devices
        for b in devices
        if a != b and not (a.on_host and b.on_host)
    )
    return Machine(name, devices, links, note="given by the workload file")


def _positions(nodes: list[Row]) -> dict[int, int]:
    """Place in the file by node id."""
    position: dict[int, int] = {}
    for i, node in enumerate(nodes):
        number = node.get("id")
        if type(number) is not int:
            raise ValueError(
                f"node {i} of the list has the id {shown(number)}; use a whole number."
            )
        if number in position:
            raise ValueError(f"two nodes have the id {number}; give each its own.")
        position[number] = i
    return position


def _nets(edges: list[Row], position: Mapping[int, int]) -> tuple[list[list[int]], list[float]]:
    """Readers of each node's output, each once in the file's order, and what moving it costs."""
    readers: list[dict[int, None]] = [{} for _ in position]
    cost_ms: list[float | None] = [None] * len(position)
    for i, edge in enumerate(edges):
        ends = []
        for key in ("sourceId", "destId"):
            number = edge.get(key)
            if type(number) is not int or number not in position:
                raise ValueError(
                    f"edge {i} has the {key} {shown(number)}, which no node has as id."
                )
            ends.append(position[number])
        source, dest = ends
        cost = _number(edge, "cost", f"edge {i}")
        if cost_ms[source] not in (None, cost):
            raise ValueError(
                f"the edges from node {edge['sourceId']} cost {cost_ms[source]} and {cost}; they"
                " move one output, so give them one cost."
            )
        cost_ms[source] = cost
        readers[source][dest] = None
    return [list(r) for r in readers], [cost or 0.0 for cost in cost_ms]


def _on_cycle(readers: list[list[int]]) -> int:
    """A node on a cycle of a graph that has one."""
    try:
        TopologicalSorter(dict(enumerate(readers))).prepare()
    except CycleError as error:
        return int(error.args[1][0])
    raise AssertionError("no node is on a cycle")


def _ops(nodes: list[Row]) -> list[Op]:
    """Ops in the file's order, named by the file where its names are all there and differ."""
    names = [str(node["name"]) if node.get("name") is not None else "" for node in nodes]
    if not all(names) or len(set(names)) < len(names):
        names = [f"node{node['id']}" for node in nodes]
    colours = [_colour(node) for node in nodes]
    members = Counter(colours)
    return [
        Op(
            name,
            "op",
            phase="backward" if _flag(node, "isBackwardNode", False) else "forward",
            param_bytes=_whole(_number(node, "size", f"node {node['id']}")),
            colocation_group=colour if members[colour] > 1 else None,
            attributes=(("id", str(node["id"])),),
        )
        for name, node, colour in zip(names, nodes, colours, strict=True)
    ]


def _costs(nodes: list[Row], machine: Machine) -> Costs:
    num = len(machine.devices)
    off_host = np.array([not d.on_host for d in machine.devices])
    compute_s = np.empty((len(nodes), num))
    for i, node in enumerate(nodes):
        where = f"node {node['id']}"
        supported = _flag(node, "supportedOnFpga", None)
        on_accelerator = _number(node, "fpgaLatency", where) if supported else math.inf
        compute_s[i] = np.where(off_host, on_accelerator, _number(node, "cpuLatency", where))
    crossing = (off_host[:, None] | off_host[None, :]) & ~np.eye(num, dtype=bool)
    s_per_byte: Floats = crossing / BYTES_PER_S
    return Costs(compute_s * UNIT_S[UNIT], np.zeros(num), np.zeros((num, num)), s_per_byte, "given")


def _rows(content: Row, key: str) -> list[Row]:
    rows = content.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ValueError(f"its {key} are not a list of objects; correct them.")
    return rows


def _colour(node: Row) -> str | None:
    colour = node.get("colorClass")
    if colour is None or type(colour) in (int, str):
        return None if colour is None else str(colour)
    raise ValueError(f"node {node['id']} has the colorClass {shown(colour)}; use a number or none.")


def _flag(node: Row, key: str, default: bool | None) -> bool:
    value = node.get(key, default)
    if value not in (0, 1) or not isinstance(value, bool | int):
        raise ValueError(f"node {node['id']} has the {key} {shown(value)}; use true or false.")
    return bool(value)


def _count(content: Row, key: str) -> int:
    value = _number(content, key, "the file")
    if value != int(value):
        raise ValueError(f"the {key} of the file is {value}; use a whole number.")
    return int(value)


def _number(row: Row, key: str, where: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_amount(value):
        raise ValueError(f"the {key} of {where} is {shown(value)}; use a number, 0 to {MOST:g}.")
    return float(value)


def _whole(value: float) -> Any:
    """A number of bytes; fractions, which stand for times or come from the file, are kept."""
    return int(value) if value == int(value) else value


LOADER = WorkloadLoader()
