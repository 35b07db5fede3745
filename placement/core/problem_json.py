"""Problem files: any scheduling instance written down as JSON, with its machine and costs.

    {"format": "placement-problem",
     "devices": [{"name", "memory_bytes"?}],
     "links": [{"src", "dst", "latency_s", "bytes_per_s"}],
     "ops": [{"name", "times_s": [one per device, null = unsupported], "memory_bytes"?, "group"?}],
     "tensors": [{"producer", "consumers", "bytes"}],
     "link_contention"?: true, "execution"?: "op" | "segment"}

A pair of devices without a link costs nothing to cross. Reading what was written gives the same
problem.
"""

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np

from placement.core.costs import Costs, Floats
from placement.core.graph import Graph, Op, Tensor, topological_order
from placement.core.machine import MOST, Device, Link, Machine
from placement.core.problem import Problem, own_kernels

FORMAT = "placement-problem"


def problem_from_json(content: Mapping[str, Any], name: str) -> Problem:
    """The problem of a parsed problem file; a ValueError says what is wrong and where."""
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise ValueError(
            f'The file {name!r} is not a problem file ("format": "{FORMAT}" is missing).'
        )
    machine = _machine(content, name)
    graph, times = _graph(content, name, len(machine.devices))
    contention = content.get("link_contention", True)
    if not isinstance(contention, bool):
        raise ValueError(f"link_contention is {contention!r}; use true or false.")
    return Problem(
        graph,
        machine,
        _costs(machine, times),
        graph,
        own_kernels(graph),
        execution=str(content.get("execution", "op")),
        link_contention=contention,
        memory_model="sum",
    )


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """The problem file of a problem: kernels as its ops, units as its groups."""
    kernels = problem.kernels
    shared = [len(members) > 1 for members in problem.kernels_of_unit]
    ops = []
    for k, op in enumerate(kernels.ops):
        times = [None if math.isinf(t) else t for t in problem.costs.compute_s[k].tolist()]
        row: dict[str, Any] = {"name": op.name, "times_s": times}
        if op.param_bytes:
            row["memory_bytes"] = op.param_bytes
        unit = int(problem.unit_of_kernel[k])
        if op.colocation_group is not None:
            row["group"] = op.colocation_group
        elif shared[unit]:
            row["group"] = f"unit {unit}"
        ops.append(row)
    return {
        "format": FORMAT,
        "devices": [
            {"name": d.name} | ({} if d.memory_bytes is None else {"memory_bytes": d.memory_bytes})
            for d in problem.machine.devices
        ],
        "links": [
            {"src": i.src, "dst": i.dst, "latency_s": i.latency_s, "bytes_per_s": i.bytes_per_s}
            for i in problem.machine.links
        ],
        "ops": ops,
        "tensors": [
            {"producer": t.producer, "consumers": list(t.consumers), "bytes": t.num_bytes}
            for t in kernels.tensors
        ],
        "link_contention": problem.link_contention,
        "execution": problem.execution,
    }


def _machine(content: Mapping[str, Any], name: str) -> Machine:
    devices = tuple(
        Device(
            _text(d, "name", f"device {i}"),
            runtime="given",
            memory_bytes=None
            if d.get("memory_bytes") is None
            else _count(d, "memory_bytes", "device"),
        )
        for i, d in enumerate(_rows(content, "devices"))
    )
    links = tuple(
        Link(
            _text(link, "src", f"link {i}"),
            _text(link, "dst", f"link {i}"),
            _number(link, "latency_s", f"link {i}"),
            _number(link, "bytes_per_s", f"link {i}"),
        )
        for i, link in enumerate(_rows(content, "links", required=False))
    )
    return Machine(name, devices, links, note="given by the problem file")


def _costs(machine: Machine, times: Floats) -> Costs:
    num_devices = len(machine.devices)
    latency_s = np.zeros((num_devices, num_devices))
    s_per_byte = np.zeros_like(latency_s)
    for link in machine.links:
        a, b = machine.index[link.src], machine.index[link.dst]
        latency_s[a, b], s_per_byte[a, b] = link.latency_s, 1.0 / link.bytes_per_s
    np.fill_diagonal(latency_s, 0.0)
    np.fill_diagonal(s_per_byte, 0.0)
    return Costs(times, np.zeros(num_devices), latency_s, s_per_byte, "given")


def _graph(content: Mapping[str, Any], name: str, num_devices: int) -> tuple[Graph, Floats]:
    """Graph and times (ops, devices) of a problem file, ops put in topological order."""
    rows = _rows(content, "ops")
    ops = [_op(row, i) for i, row in enumerate(rows)]
    times = np.array([_times(row, num_devices) for row in rows], dtype=np.float64)
    index = {op.name: i for i, op in enumerate(ops)}
    if len(index) != len(ops):
        raise ValueError(f"The problem {name!r} lists an op name twice; give each op its own name.")
    tensors = [
        _tensor(row, i, index) for i, row in enumerate(_rows(content, "tensors", required=False))
    ]
    successors: list[list[int]] = [[] for _ in ops]
    for tensor in tensors:
        if tensor.producer is not None:
            successors[index[tensor.producer]] += [index[c] for c in tensor.consumers]
    order = topological_order(len(ops), successors)
    if order is None:
        raise ValueError(f"The ops of problem {name!r} depend on each other in a cycle; break it.")
    return Graph(name, tuple(ops[i] for i in order), tuple(tensors)), times[order]


def _op(row: Mapping[str, Any], number: int) -> Op:
    name, group = _text(row, "name", f"op {number}"), row.get("group")
    num_bytes = _count(row, "memory_bytes", f"op {name!r}") if "memory_bytes" in row else 0
    return Op(
        name,
        "op",
        param_bytes=num_bytes,
        colocation_group=None if group is None else str(group),
    )


def _times(row: Mapping[str, Any], num_devices: int) -> list[float]:
    """Seconds of an op on each device, infinite where it cannot run."""
    where, times = f"op {row['name']!r}", row.get("times_s")
    if not isinstance(times, list) or len(times) != num_devices:
        raise ValueError(
            f"The times_s of {where} is not a list of {num_devices} times, one per device."
        )
    return [math.inf if t is None else _seconds(t, where) for t in times]


def _tensor(row: Mapping[str, Any], number: int, index: Mapping[str, int]) -> Tensor:
    producer, consumers = row.get("producer"), row.get("consumers")
    if not isinstance(consumers, list):
        raise ValueError(
            f"The consumers of tensor {number} are {consumers!r}; use a list of op names."
        )
    for end in consumers if producer is None else [*consumers, producer]:
        if not isinstance(end, str) or end not in index:
            raise ValueError(
                f"Tensor {number} names op {end!r:.80}, which the problem does not list."
            )
    return Tensor(
        f"{producer or 'input'}:{number}",
        producer,
        tuple(dict.fromkeys(consumers)),
        _count(row, "bytes", f"tensor {number}"),
    )


def _rows(
    content: Mapping[str, Any], key: str, *, required: bool = True
) -> list[Mapping[str, Any]]:
    rows = content.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(r, Mapping) for r in rows):
        raise ValueError(
            f"The problem's {key} are not a list of objects; see the format in the README."
        )
    if required and not rows:
        raise ValueError(f"The problem lists no {key}; add at least one.")
    return rows


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"The {key} of {where} is {value!r}; use a name.")
    return value


def _number(row: Mapping[str, Any], key: str, where: str) -> float:
    return _seconds(row.get(key), f"{key} of {where}")


def _count(row: Mapping[str, Any], key: str, where: str) -> Any:
    """A size; instances from the literature may state fractions of a byte, which are kept."""
    value = row.get(key)
    if not _is_amount(value):
        raise ValueError(
            f"The {key} of {where} is {value!s:.20}; use a number of bytes, 0 to {MOST:g}."
        )
    return int(value) if value == int(value) else value


def _seconds(value: Any, where: str) -> float:
    if not _is_amount(value):
        raise ValueError(f"The time of {where} is {value!s:.20}; use a number, 0 to {MOST:g}.")
    return float(value)


def _is_amount(value: Any) -> TypeGuard[float]:
    number = isinstance(value, float | int) and not isinstance(value, bool)
    return number and 0 <= value <= MOST
