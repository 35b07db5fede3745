"""The graph of kernels: what a profile measures, a schedule orders and a session runs.

onnxruntime numbers the nodes it inserts in an order that changes from process to process, so these
are named after the values they work on: a profile must find its kernels again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from placement.core.graph import Graph, Op, Tensor
from placement.formats.onnx.prepare import reads
from profiling.backends._ort.optimise import Optimised
from profiling.backends._ort.values import Value

Members = Sequence[Sequence[int]]


def kernel_graph(
    graph: Graph,
    optimised: Optimised,
    values: Mapping[str, Value],
    members: Members,
    sources: Sequence[Sequence[str]],
) -> Graph:
    """Kernels of a source graph: `members` are their nodes, `sources` their source ops."""
    nodes = optimised.model.graph.node
    names = _names(graph, optimised, members)
    weight = {t.name: optimised.num_bytes(t) for t in optimised.model.graph.initializer}
    source = {op.name: op for op in graph.ops}
    ops = []
    counted: set[str] = set()
    for name, member, own in zip(names, members, sources, strict=True):
        read = {n for i in member for n in reads(nodes[i]) if n in weight} - counted
        counted |= read
        ops.append(
            Op(
                name,
                nodes[member[-1]].op_type,
                scope=source[own[-1]].scope if own else "",
                flops=sum(source[o].flops for o in own),
                param_bytes=sum(weight[n] for n in read),
            )
        )
    tensors = _tensors(graph, optimised, values, members, names)
    return Graph(graph.name, tuple(ops), tensors)


def _names(graph: Graph, optimised: Optimised, members: Members) -> list[str]:
    """Distinct names: of the source op or value, else the kind and the value it works on."""
    nodes = optimised.model.graph.node
    known = {op.name for op in graph.ops}
    values = {tensor.name for tensor in graph.tensors}
    stands_for = {name: name for name in values}
    taken: set[str] = set()
    found = []
    for member in members:
        node = nodes[member[-1]]
        around = [name for name in (*node.output, *node.input) if name in stands_for]
        if node.name in known or node.name.removesuffix("_nchwc") in values:
            base = node.name
        else:
            base = f"{node.op_type}:{stands_for[around[0]]}" if around else node.op_type
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        found.append(name)
        for i in member:
            stands_for.update((n, name) for n in nodes[i].output if n and n not in values)
    return found


def _tensors(
    graph: Graph,
    optimised: Optimised,
    values: Mapping[str, Value],
    members: Members,
    names: Sequence[str],
) -> tuple[Tensor, ...]:
    """Values between kernels, inputs and outputs; what stays inside a kernel is left out."""
    model = optimised.model.graph
    weights = {t.name for t in model.initializer}
    owner = {i: name for name, member in zip(names, members, strict=True) for i in member}
    maker: dict[str, str | None] = {v.name: None for v in model.input if v.name not in weights}
    maker |= {n: owner[i] for i, node in enumerate(model.node) for n in node.output if n}
    title = _titles(graph, optimised, owner)
    readers = _readers(optimised, maker, owner)
    outputs = {v.name for v in model.output}
    return tuple(
        _tensor(title.get(name, name), producer, readers[name], values[name], name in outputs)
        for name, producer in maker.items()
        if readers[name] or name in outputs
    )


def value_names(
    graph: Graph, kernels: Graph, optimised: Optimised, members: Members
) -> dict[str, str]:
    """What onnxruntime calls tensors of the kernels in this process, where that differs."""
    pairs = zip(kernels.ops, members, strict=True)
    owner = {i: op.name for op, member in pairs for i in member}
    titles = _titles(graph, optimised, owner)
    return {title: name for name, title in titles.items() if title != name}


def _titles(graph: Graph, optimised: Optimised, owner: Mapping[int, str]) -> dict[str, str]:
    """Names of values that are the same in every process: by their makers, if not the model's."""
    titles = {tensor.name: tensor.name for tensor in graph.tensors}
    counted = dict.fromkeys(owner.values(), 0)
    for i, node in enumerate(optimised.model.graph.node):
        for name in node.output:
            if name:
                titles.setdefault(name, f"{owner[i]}/{counted[owner[i]]}")
            counted[owner[i]] += 1
    return titles


def _readers(
    optimised: Optimised, maker: Mapping[str, str | None], owner: Mapping[int, str]
) -> dict[str, tuple[str, ...]]:
    """Kernels that read each value, the one that makes it left out."""
    found: dict[str, dict[str, None]] = {name: {} for name in maker}
    for i, node in enumerate(optimised.model.graph.node):
        for name in reads(node):
            if name in maker and maker[name] != owner[i]:
                found[name][owner[i]] = None
    return {name: tuple(kernels) for name, kernels in found.items()}


def _tensor(
    name: str, producer: str | None, readers: tuple[str, ...], value: Value, is_output: bool
) -> Tensor:
    dtype: Any = value.dtype
    text = dtype.name if dtype is not None else value.type
    return Tensor(name, producer, readers, value.num_bytes, value.shape, text, is_output)
