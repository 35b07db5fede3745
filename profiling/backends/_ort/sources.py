"""Which source ops each kernel does the work of, by the values both graphs name alike.

onnxruntime keeps the name of the last value of what it fuses, or the node's name, or puts the
value's name before "_nchwc". From a kernel's output one walks back in the source graph to values
that other kernels produce: all ops passed on the way are in this kernel. What no kernel claims
afterwards (an addition fused into the convolution before it) belongs to the kernel that made its
last input. Ops that depend on no input are folded, and ops are given to one kernel only. Of ops
that compute the same the optimiser keeps one, and its kernel does the work of all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from placement.core.graph import Graph

_SUFFIX = "_nchwc"


def equal_values(nodes: Iterable[Any]) -> dict[str, str]:
    """For values of a source model the first value that the same op makes of equal inputs."""
    same: dict[str, str] = {}
    first: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for node in nodes:
        if not node.input or any(a.HasField("g") or a.graphs for a in node.attribute):
            continue
        inputs = tuple(same.get(name, name) for name in node.input)
        attributes = tuple(sorted(a.SerializeToString() for a in node.attribute))
        present = tuple(bool(name) for name in node.output)
        key = (node.domain, node.op_type, inputs, attributes, present)
        same.update(zip(node.output, first.setdefault(key, tuple(node.output)), strict=True))
    return same


def map_sources(
    graph: Graph,
    kernels: Sequence[Sequence[Any]],
    same: Mapping[str, str] = MappingProxyType({}),
) -> tuple[tuple[str, ...], ...]:
    """Source ops of every kernel (a kernel: its optimised nodes), in the graph's order.

    `same` are the model's `equal_values`.
    """
    source = _Source(graph)
    alias = _aliases(kernels, source)
    made = {name for names in alias for name in names}
    _add_merged(alias, made, source, same)
    claimed: dict[str, int] = {}
    for k, names in enumerate(alias):
        _claim(k, names, made, source, claimed)
    for op in graph.ops:
        if op.name not in claimed and op.name not in source.folded:
            before = (source.producer.get(name) for name in source.reads[op.name])
            owners = [claimed[b] for b in before if b in claimed]
            if owners:
                claimed[op.name] = max(owners)
    members: list[list[str]] = [[] for _ in kernels]
    for op in graph.ops:
        if op.name in claimed:
            members[claimed[op.name]].append(op.name)
    return tuple(tuple(m) for m in members)


def _add_merged(
    alias: list[list[str]], made: set[str], source: "_Source", same: Mapping[str, str]
) -> None:
    """Let the kernel that makes a value also stand for equal ones that no kernel makes."""
    merged: dict[str, list[str]] = {}
    for name, first in same.items():
        if name in source.producer and name not in made:
            merged.setdefault(first, []).append(name)
    for names in alias:
        for name in tuple(names):
            names.extend(merged.pop(same.get(name, name), ()))
    made.update(name for names in alias for name in names)


def _claim(
    k: int, names: list[str], made: set[str], source: "_Source", claimed: dict[str, int]
) -> None:
    """Give kernel k the ops behind its outputs, back to what other kernels produce."""
    own = set(names)
    stack = list(names)
    while stack:
        name = stack.pop()
        op = source.producer.get(name)
        if op is None or op in claimed or (op in source.folded and name not in own):
            continue
        claimed[op] = k
        stack.extend(n for n in source.reads[op] if n in own or n not in made)


class _Source:
    """The source graph by value name; `folded` ops depend on no input: computed beforehand."""

    def __init__(self, graph: Graph) -> None:
        self.producer = {t.name: t.producer for t in graph.tensors if t.producer is not None}
        self.reads: dict[str, list[str]] = {op.name: [] for op in graph.ops}
        self.writes: dict[str, list[str]] = {op.name: [] for op in graph.ops}
        for tensor in graph.tensors:
            if tensor.producer is not None:
                self.writes[tensor.producer].append(tensor.name)
            for consumer in tensor.consumers:
                self.reads[consumer].append(tensor.name)
        depends = {t.name for t in graph.inputs}
        self.folded: set[str] = set()
        for op in graph.ops:
            if any(name in depends for name in self.reads[op.name]):
                depends.update(self.writes[op.name])
            else:
                self.folded.add(op.name)


def _aliases(kernels: Sequence[Sequence[Any]], source: _Source) -> list[list[str]]:
    """Per kernel the source values that its outputs stand for."""
    known = set(source.producer)
    found = []
    for nodes in kernels:
        names: dict[str, None] = {}
        for node in nodes:
            exact = [name for name in node.output if name in known]
            if not exact and node.name.endswith(_SUFFIX):
                exact = [n for n in (node.name.removesuffix(_SUFFIX),) if n in known]
            if not exact and node.name in source.writes:
                exact = source.writes[node.name]
            names.update(dict.fromkeys(exact))
        found.append(list(names))
    return found
