"""Computation graphs: ops, the tensors that flow between them, and an integer view for algorithms.

Works on two levels with the same value: a graph of *source ops* (what the person's file contains)
and a graph of *kernels* (what a runtime runs after its own optimisation).
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.core.fingerprint import fingerprint_of

PHASES = ("forward", "backward", "update")
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Op:
    """One node of the graph.

    `scope` is a slash path ("stage1/block2") without the op's own name, empty at the top.
    `param_bytes` counts the weights that this op reads; a weight read by several ops is counted
    once, at the first of them. `attributes` are (key, text) pairs for people to read.
    `flops` counts multiply and add as two.
    """

    name: str
    kind: str
    scope: str = ""
    phase: str = "forward"
    flops: float = 0.0
    param_bytes: int = 0
    colocation_group: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError(
                f"An op of kind {self.kind!r} has an empty name; give every op a name."
            )
        if self.phase not in PHASES:
            raise ValueError(f"Op {self.name!r} has phase {self.phase!r}; use one of {PHASES}.")
        if self.param_bytes < 0 or self.flops < 0:
            raise ValueError(f"Op {self.name!r} has negative flops or bytes; use zero or more.")


@dataclass(frozen=True)
class Tensor:
    """A value that flows: the unit of traffic, sent once per destination device.

    `producer` is an op name, or None for a model input, which starts on the host. `shape` is None
    where it is unknown; `num_bytes` is zero then.
    """

    name: str
    producer: str | None
    consumers: tuple[str, ...]
    num_bytes: int
    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    is_output: bool = False

    def __post_init__(self) -> None:
        if self.num_bytes < 0:
            raise ValueError(f"Tensor {self.name!r} has {self.num_bytes} bytes; use zero or more.")
        if len(set(self.consumers)) != len(self.consumers):
            raise ValueError(f"Tensor {self.name!r} lists a consumer twice; list each op once.")


@dataclass(frozen=True, eq=False)
class GraphArrays:
    """A graph as integers, for simulators and placers; indices follow declared order.

    CSR pairs: the tensors an op reads are `in_tensors[in_ptr[i]:in_ptr[i + 1]]`, the tensors it
    writes `out_tensors[out_ptr[i]:out_ptr[i + 1]]`, the ops that read a tensor
    `consumers[consumer_ptr[t]:consumer_ptr[t + 1]]`. `producer[t]` is -1 for a model input.
    """

    producer: Ints
    tensor_bytes: NDArray[np.float64]
    is_output: NDArray[np.bool_]
    consumer_ptr: Ints
    consumers: Ints
    in_ptr: Ints
    in_tensors: Ints
    out_ptr: Ints
    out_tensors: Ints
    param_bytes: NDArray[np.float64]


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph of ops, listed in topological order, and their tensors."""

    name: str
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]

    def __post_init__(self) -> None:
        position = {op.name: i for i, op in enumerate(self.ops)}
        if len(position) != len(self.ops):
            twice = _first_repeated(op.name for op in self.ops)
            raise ValueError(
                f"Graph {self.name!r} has two ops named {twice!r}; give each op its own name."
            )
        if len({t.name for t in self.tensors}) != len(self.tensors):
            raise ValueError(
                f"Graph {self.name!r} has two tensors named"
                f" {_first_repeated(t.name for t in self.tensors)!r}; give each its own name."
            )
        for tensor in self.tensors:
            start = -1
            if tensor.producer is not None:
                if tensor.producer not in position:
                    raise ValueError(
                        f"Tensor {tensor.name!r} is produced by {tensor.producer!r}, which is not"
                        " an op of the graph; correct the name."
                    )
                start = position[tensor.producer]
            for consumer in tensor.consumers:
                if consumer not in position:
                    raise ValueError(
                        f"Tensor {tensor.name!r} is consumed by {consumer!r}, which is not an op of"
                        " the graph; correct the name."
                    )
                if position[consumer] <= start:
                    raise ValueError(
                        f"Op {consumer!r} reads tensor {tensor.name!r} before op"
                        f" {tensor.producer!r} writes it; list the ops in topological order"
                        " (a cycle has none)."
                    )

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each op by name."""
        return {op.name: i for i, op in enumerate(self.ops)}

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """Tensors that come from outside."""
        return tuple(t for t in self.tensors if t.producer is None)

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """Tensors that the model hands back."""
        return tuple(t for t in self.tensors if t.is_output)

    @property
    def param_bytes(self) -> int:
        return sum(op.param_bytes for op in self.ops)

    @property
    def flops(self) -> float:
        return sum(op.flops for op in self.ops)

    @cached_property
    def fingerprint(self) -> str:
        """Content hash of structure, shapes and attributes; not of weights or the graph's name."""
        return fingerprint_of(
            [
                [
                    [
                        o.name,
                        o.kind,
                        o.scope,
                        o.phase,
                        o.param_bytes,
                        o.colocation_group,
                        o.attributes,
                    ]
                    for o in self.ops
                ],
                [
                    [t.name, t.producer, t.consumers, t.num_bytes, t.shape, t.dtype, t.is_output]
                    for t in self.tensors
                ],
            ]
        )

    @cached_property
    def arrays(self) -> GraphArrays:
        index = self.index
        num_ops = len(self.ops)
        reads: list[list[int]] = [[] for _ in range(num_ops)]
        writes: list[list[int]] = [[] for _ in range(num_ops)]
        readers: list[list[int]] = []
        producer = np.full(len(self.tensors), -1, dtype=np.int64)
        for t, tensor in enumerate(self.tensors):
            if tensor.producer is not None:
                producer[t] = index[tensor.producer]
                writes[index[tensor.producer]].append(t)
            readers.append([index[c] for c in tensor.consumers])
            for consumer in readers[-1]:
                reads[consumer].append(t)
        consumer_ptr, consumers = _csr(readers)
        in_ptr, in_tensors = _csr(reads)
        out_ptr, out_tensors = _csr(writes)
        return GraphArrays(
            producer=_frozen(producer),
            tensor_bytes=_frozen(np.array([t.num_bytes for t in self.tensors], dtype=np.float64)),
            is_output=_frozen(np.array([t.is_output for t in self.tensors], dtype=np.bool_)),
            consumer_ptr=consumer_ptr,
            consumers=consumers,
            in_ptr=in_ptr,
            in_tensors=in_tensors,
            out_ptr=out_ptr,
            out_tensors=out_tensors,
            param_bytes=_frozen(np.array([op.param_bytes for op in self.ops], dtype=np.float64)),
        )

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """Per op the ops that read one of its tensors, each once, in increasing order."""
        index = self.index
        found: list[set[int]] = [set() for _ in self.ops]
        for tensor in self.tensors:
            if tensor.producer is not None:
                found[index[tensor.producer]].update(index[c] for c in tensor.consumers)
        return tuple(tuple(sorted(s)) for s in found)

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """Per op the ops whose tensors it reads, each once, in increasing order."""
        found: list[list[int]] = [[] for _ in self.ops]
        for i, after in enumerate(self.successors):
            for j in after:
                found[j].append(i)
        return tuple(tuple(p) for p in found)


def topological_order(num_nodes: int, successors: list[list[int]]) -> list[int] | None:
    """Indices in topological order, the smallest available first; None if there is a cycle."""
    waiting = [0] * num_nodes
    for after in successors:
        for j in after:
            waiting[j] += 1
    ready = [i for i in range(num_nodes) if waiting[i] == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in successors[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, j)
    return order if len(order) == num_nodes else None


def _first_repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _csr(rows: list[list[int]]) -> tuple[Ints, Ints]:
    ptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=ptr[1:])
    flat = np.fromiter((i for row in rows for i in row), dtype=np.int64, count=int(ptr[-1]))
    return _frozen(ptr), _frozen(flat)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
