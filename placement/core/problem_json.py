"""Problem files: any scheduling instance written down as JSON, with its machine and costs.

    {"format": "placement-problem",
     "devices": [{"name", "memory_bytes"?}],
     "links": [{"src", "dst", "latency_s", "bytes_per_s", "card"?,
               "send_overhead"?, "receive_overhead"?}],
     "ops": [{"name", "times_s": [one per device, null = unsupported], "memory_bytes"?, "group"?}],
     "tensors": [{"producer", "consumers", "bytes"}],
     "link_contention"?: true, "execution"?: "op" | "segment"}

A pair of devices without a link costs nothing to cross. Reading what was written gives the same
problem.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.core.amounts import MOST, is_amount
from placement.core.costs import Costs, Floats
from placement.core.decoding import decode, shown
from placement.core.graph import Graph, Op, Tensor, topological_order
from placement.core.machine import Device, Link, Machine, link_arrays
from placement.core.problem import Execution, Problem, own_kernels

FORMAT = "placement-problem"


@dataclass(frozen=True)
class DeviceRow:
    """A device as the file lists it."""

    name: str
    memory_bytes: int | float | None = None

    def __post_init__(self) -> None:
        _require_name(self.name)
        _require_amounts("memory_bytes", self.memory_bytes)


@dataclass(frozen=True)
class OpRow:
    """An op as the file lists it; a time is null on a device that cannot run the op.

    Instances from the literature may state fractions of a byte, which are kept.
    """

    name: str
    times_s: tuple[float | None, ...]
    memory_bytes: int | float = 0
    group: str | int | None = None

    def __post_init__(self) -> None:
        _require_name(self.name)
        _require_amounts("times_s", *self.times_s)
        _require_amounts("memory_bytes", self.memory_bytes)


@dataclass(frozen=True)
class TensorRow:
    """A tensor as the file lists it; one without producer is an input."""

    consumers: tuple[str, ...]
    bytes: int | float
    producer: str | None = None

    def __post_init__(self) -> None:
        _require_amounts("bytes", self.bytes)


@dataclass(frozen=True)
class ProblemFile:
    """What a problem file says, by its own words."""

    devices: tuple[DeviceRow, ...]
    ops: tuple[OpRow, ...]
    links: tuple[Link, ...] = ()
    tensors: tuple[TensorRow, ...] = ()
    link_contention: bool = True
    execution: Execution = Execution.OP

    def __post_init__(self) -> None:
        for key, rows in (("devices", self.devices), ("ops", self.ops)):
            if not rows:
                raise ValueError(f"The problem lists no {key}; add at least one.")


def problem_from_json(content: Any, name: str) -> Problem:
    """The problem of a parsed problem file; a ValueError says what is wrong and where."""
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise ValueError(
            f'The file {name!r} is not a problem file ("format": "{FORMAT}" is missing).'
        )
    said = {key: value for key, value in content.items() if key != "format"}
    file = decode(said, ProblemFile, remedy="docs/teaching.md shows one", only_known=True)
    devices = tuple(
        Device(d.name, runtime="given", memory_bytes=_whole(d.memory_bytes)) for d in file.devices
    )
    machine = Machine(name, devices, file.links, note="given by the problem file")
    graph, times = _graph(file, name)
    return Problem(
        graph,
        machine,
        _costs(machine, times),
        graph,
        own_kernels(graph),
        execution=file.execution,
        link_contention=file.link_contention,
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
        if op.param_bytes or op.state_bytes:
            row["memory_bytes"] = op.param_bytes + op.state_bytes
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
            | ({"card": i.card} if i.card else {})
            | ({"send_overhead": i.send_overhead} if i.send_overhead else {})
            | ({"receive_overhead": i.receive_overhead} if i.receive_overhead else {})
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


def _costs(machine: Machine, times: Floats) -> Costs:
    latency_s, s_per_byte = link_arrays(machine, complete=False)
    np.fill_diagonal(latency_s, 0.0)
    np.fill_diagonal(s_per_byte, 0.0)
    calls_s = np.zeros(len(machine.devices))
    return Costs(times, calls_s, latency_s, s_per_byte, "given", overhead=machine.overheads)


def _graph(file: ProblemFile, name: str) -> tuple[Graph, Floats]:
    """Graph and times (ops, devices) of a problem file, ops put in topological order."""
    ops = [
        Op(
            row.name,
            "op",
            param_bytes=_whole(row.memory_bytes),
            colocation_group=None if row.group is None else str(row.group),
        )
        for row in file.ops
    ]
    times = np.array([_times(row, i, len(file.devices)) for i, row in enumerate(file.ops)])
    index = {op.name: i for i, op in enumerate(ops)}
    if len(index) != len(ops):
        raise ValueError(f"The problem {name!r} lists an op name twice; give each op its own name.")
    tensors = [_tensor(row, i, index) for i, row in enumerate(file.tensors)]
    successors: list[list[int]] = [[] for _ in ops]
    for tensor in tensors:
        if tensor.producer is not None:
            successors[index[tensor.producer]] += [index[c] for c in tensor.consumers]
    order = topological_order(len(ops), successors)
    if order is None:
        raise ValueError(f"The ops of problem {name!r} depend on each other in a cycle; break it.")
    return Graph(name, tuple(ops[i] for i in order), tuple(tensors)), times[order]


def _times(row: OpRow, number: int, num_devices: int) -> list[float]:
    """Seconds of an op on each device, infinite where it cannot run."""
    if len(row.times_s) != num_devices:
        raise ValueError(
            f"ops[{number}].times_s ({shown(row.name)}) is not a list of {num_devices} times; give"
            " one per device."
        )
    return [math.inf if t is None else t for t in row.times_s]


def _tensor(row: TensorRow, number: int, index: Mapping[str, int]) -> Tensor:
    ends = row.consumers if row.producer is None else (*row.consumers, row.producer)
    unknown = next((end for end in ends if end not in index), None)
    if unknown is not None:
        raise ValueError(
            f"The producer or a consumer of tensors[{number}] is {shown(unknown)}, which the"
            " problem does not list; add it to the ops."
        )
    return Tensor(
        f"{row.producer or 'input'}:{number}",
        row.producer,
        tuple(dict.fromkeys(row.consumers)),
        _whole(row.bytes),
    )


def _require_name(name: str) -> None:
    if not name:
        raise ValueError("its name is empty; give it one.")


def _require_amounts(what: str, *values: float | None) -> None:
    for i, value in enumerate(values):
        if value is not None and not is_amount(value):
            place = f"{what}[{i}]" if len(values) > 1 else what
            raise ValueError(f"{place} is {value!s:.20}; use a number, 0 to {MOST:g}.")


def _whole(value: float | None) -> Any:
    return int(value) if value is not None and value == int(value) else value
