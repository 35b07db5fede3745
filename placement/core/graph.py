"""Computation graphs: ops, the tensors that flow between them, and an integer view for algorithms.

Works on two levels with the same value: a graph of *source ops* (what the person's file contains)
and a graph of *kernels* (what a runtime runs after its own optimisation).
"""

import heapq
import itertools
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placement.core.amounts import MOST, Bytes, is_amount
from placement.core.decoding import shown
from placement.core.fingerprint import fingerprint_of, is_fingerprint

PHASES = ("forward", "backward", "update")
TOKEN_TASKS = ("prefill", "decode")
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Op:
    """One node of the graph.

    `scope` is a slash path ("stage1/block2") without the op's own name, empty at the top.
    `param_bytes` counts the weights that this op reads; a weight read by several ops is counted
    once, at the first of them. `state_bytes` is what stays in memory from step to step for it: a
    cache of keys and values, also counted once. `attributes` are (key, text) pairs for people to
    read. `flops` counts multiply and add as two. `moved_bytes` is what the op reads and writes,
    nothing for a view; None where that is its weights and all tensors that it reads and writes.
    """

    name: str
    kind: str
    scope: str = ""
    phase: str = "forward"
    flops: float = 0.0
    param_bytes: Bytes = 0
    colocation_group: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    state_bytes: Bytes = 0
    moved_bytes: float | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError(
                f"An op of kind {self.kind!r} has an empty name; give every op a name."
            )
        if self.phase not in PHASES:
            raise ValueError(
                f"Op {shown(self.name)} has phase {shown(self.phase)}; use one of {PHASES}."
            )
        if not 0 <= self.flops < math.inf or not is_amount(self.param_bytes):
            raise ValueError(
                f"Op {shown(self.name)} has {self.flops:g} flops and {self.param_bytes!s:.20} bytes"
                f" of weights; use no negative numbers, and at most {MOST:g} bytes."
            )
        if not is_amount(self.state_bytes) or not is_amount(self.moved_bytes or 0):
            raise ValueError(
                f"Op {shown(self.name)} keeps {self.state_bytes!s:.20} bytes and moves"
                f" {self.moved_bytes!s:.20}; use 0 to {MOST:g}."
            )


@dataclass(frozen=True)
class Tensor:
    """A value that flows: the unit of traffic, sent once per destination device.

    `producer` is an op name, or None for a model input, which starts on the host. `shape` is None
    where it is unknown; `num_bytes` is zero then.
    """

    name: str
    producer: str | None
    consumers: tuple[str, ...]
    num_bytes: Bytes
    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    is_output: bool = False

    def __post_init__(self) -> None:
        if not is_amount(self.num_bytes):
            raise ValueError(
                f"Tensor {shown(self.name)} has {self.num_bytes!s:.20} bytes; use 0 to {MOST:g}."
            )
        if len(set(self.consumers)) != len(self.consumers):
            raise ValueError(
                f"Tensor {shown(self.name)} lists a consumer twice; list each op once."
            )


@dataclass(frozen=True, eq=False)
class GraphArrays:
    """A graph as integers, for simulators and placers; indices follow declared order.

    CSR pairs: the tensors an op reads are `in_tensors[in_ptr[i]:in_ptr[i + 1]]`, the tensors it
    writes `out_tensors[out_ptr[i]:out_ptr[i + 1]]`, the ops that read a tensor
    `consumers[consumer_ptr[t]:consumer_ptr[t + 1]]`. `producer[t]` is -1 for a model input.
    `resident_bytes` is what an op holds in memory for good: weights and state.
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
    state_bytes: NDArray[np.float64]
    resident_bytes: NDArray[np.float64]

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Another process's arrays could be written to, and methods would be compiled anew for such.
        for name, array in state.items():
            object.__setattr__(self, name, _frozen(array))


@dataclass(frozen=True)
class Tokens:
    """What a step of a language model does: take in a prompt, or add one token to each sequence.

    `task` is "prefill" or "decode"; `sequences` are worked on side by side, and a step takes in
    `per_sequence` tokens of each.
    """

    task: str
    sequences: int
    per_sequence: int

    def __post_init__(self) -> None:
        if self.task not in TOKEN_TASKS or min(self.sequences, self.per_sequence) < 1:
            raise ValueError(
                f"A step of {self.sequences} sequences and {self.per_sequence} tokens each is no"
                f" {shown(self.task)}; use {' or '.join(TOKEN_TASKS)} and whole numbers from 1."
            )

    @property
    def number(self) -> int:
        """Tokens that a step takes in, or adds, in all sequences together."""
        return self.sequences * self.per_sequence

    def per_s(self, value_s: float) -> float | None:
        """Tokens per second where a step comes every so many seconds."""
        return self.number / value_s if value_s > 0 else None

    def first_s(self, step_s: float) -> float | None:
        """Seconds to the first token that follows a prompt, of a step that takes so many; only a
        prefill gives it."""
        return step_s if self.task == "prefill" else None


@dataclass(frozen=True)
class Narrower:
    """Weights as they would be stored in fewer bits: the type, and the bytes that each op reads."""

    dtype: str
    param_bytes: tuple[Bytes, ...]


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph of ops, listed in topological order, and their tensors.

    `tokens` says what a step is to whoever generates text with it, None for any other graph.
    `narrower` has the types that its weights could be stored in instead, the widest first.
    `formerly` is the fingerprint that older placements have, where they knew less of its shapes.
    """

    name: str
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    tokens: Tokens | None = None
    narrower: tuple[Narrower, ...] = ()
    formerly: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        # It comes from confined processes, and names folders.
        if self.formerly and not is_fingerprint(self.formerly):
            raise ValueError(f"Graph {shown(self.name)} has no fingerprint from before.")
        for stored in self.narrower:
            if len(stored.param_bytes) != len(self.ops):
                raise ValueError(
                    f"Graph {shown(self.name)} has {len(self.ops)} ops, and weights in"
                    f" {shown(stored.dtype)} for {len(stored.param_bytes)}; give those of each op."
                )
        position = {op.name: i for i, op in enumerate(self.ops)}
        if len(position) != len(self.ops):
            twice = _first_repeated(op.name for op in self.ops)
            raise ValueError(
                f"Graph {shown(self.name)} has two ops named {shown(twice)}; give each op"
                " its own name."
            )
        if len({t.name for t in self.tensors}) != len(self.tensors):
            raise ValueError(
                f"Graph {shown(self.name)} has two tensors named"
                f" {shown(_first_repeated(t.name for t in self.tensors))}; give each its own name."
            )
        for tensor in self.tensors:
            start = -1
            if tensor.producer is not None:
                if tensor.producer not in position:
                    raise ValueError(
                        f"Tensor {shown(tensor.name)} is produced by {shown(tensor.producer)},"
                        " which is not an op of the graph; correct the name."
                    )
                start = position[tensor.producer]
            for consumer in tensor.consumers:
                if consumer not in position:
                    raise ValueError(
                        f"Tensor {shown(tensor.name)} is consumed by {shown(consumer)}, which is"
                        " not an op of the graph; correct the name."
                    )
                if position[consumer] <= start:
                    raise ValueError(
                        f"Op {shown(consumer)} reads tensor {shown(tensor.name)} before op"
                        f" {shown(tensor.producer)} writes it; list the ops in topological order"
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
    def state_bytes(self) -> int:
        return sum(op.state_bytes for op in self.ops)

    @property
    def flops(self) -> float:
        return sum(op.flops for op in self.ops)

    @cached_property
    def fingerprint(self) -> str:
        """Content hash of structure, shapes and attributes; not of weights or the graph's name."""
        ops = [
            [o.name, o.kind, o.scope, o.phase, o.param_bytes, o.colocation_group, o.attributes]
            + ([o.state_bytes] if o.state_bytes else [])
            for o in self.ops
        ]
        tensors = [
            [t.name, t.producer, t.consumers, t.num_bytes, t.shape, t.dtype, t.is_output]
            for t in self.tensors
        ]
        return fingerprint_of([ops, tensors])

    def is_known_as(self, fingerprint: str) -> bool:
        """Whether that is this graph's fingerprint, or was before more of its shapes were known."""
        return fingerprint in (self.fingerprint, self.formerly or self.fingerprint)

    @cached_property
    def arrays(self) -> GraphArrays:
        index, tensors, num_ops = self.index, self.tensors, len(self.ops)
        makers = [-1 if t.producer is None else index[t.producer] for t in tensors]
        producer = np.array(makers, dtype=np.int64)
        consumers = np.array([index[c] for t in tensors for c in t.consumers], dtype=np.int64)
        consumer_ptr = starts([len(t.consumers) for t in tensors])
        read = np.repeat(np.arange(len(tensors)), np.diff(consumer_ptr))
        written = np.flatnonzero(producer >= 0)
        weights = np.array([op.param_bytes for op in self.ops], dtype=np.float64)
        state = np.array([op.state_bytes for op in self.ops], dtype=np.float64)
        return GraphArrays(
            producer=_frozen(producer),
            tensor_bytes=_frozen(np.array([t.num_bytes for t in tensors], dtype=np.float64)),
            is_output=_frozen(np.array([t.is_output for t in tensors], dtype=np.bool_)),
            consumer_ptr=_frozen(consumer_ptr),
            consumers=_frozen(consumers),
            in_ptr=_frozen(starts(np.bincount(consumers, minlength=num_ops))),
            in_tensors=_frozen(read[np.argsort(consumers, kind="stable")]),
            out_ptr=_frozen(starts(np.bincount(producer[written], minlength=num_ops))),
            out_tensors=_frozen(written[np.argsort(producer[written], kind="stable")]),
            param_bytes=_frozen(weights),
            state_bytes=_frozen(state),
            resident_bytes=_frozen(weights + state),
        )

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """Per op the ops that read one of its tensors, each once, in increasing order."""
        makers, readers = self._edges
        return _grouped(makers, readers, len(self.ops))

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """Per op the ops whose tensors it reads, each once, in increasing order."""
        makers, readers = self._edges
        by_reader = np.argsort(readers, kind="stable")
        return _grouped(readers[by_reader], makers[by_reader], len(self.ops))

    @cached_property
    def _edges(self) -> tuple[Ints, Ints]:
        """Makers and readers of tensors, each pair once, by maker and then by reader."""
        arrays, num_ops = self.arrays, max(1, len(self.ops))
        maker = np.repeat(arrays.producer, np.diff(arrays.consumer_ptr))
        made = maker >= 0
        pairs = np.unique(maker[made] * num_ops + arrays.consumers[made])
        return pairs // num_ops, pairs % num_ops


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


def _grouped(owner: Ints, members: Ints, num_owners: int) -> tuple[tuple[int, ...], ...]:
    """Members of each owner; `owner` is sorted."""
    ptr = starts(np.bincount(owner, minlength=num_owners)).tolist()
    listed = members.tolist()
    return tuple(tuple(listed[a:b]) for a, b in itertools.pairwise(ptr))


def starts(counts: ArrayLike) -> Ints:
    """Where each row starts and the last one ends, for rows of these lengths."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def graph_to_json(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "ops": [asdict(op) for op in graph.ops],
        "tensors": [asdict(t) for t in graph.tensors],
    }
