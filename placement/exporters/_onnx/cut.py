"""Cut an ONNX model into parts: one model per call, with the values that cross its borders.

The cut goes through the model as it was opened, before any runtime has optimised it, so the parts
run wherever ONNX does. What only makes constants is copied into every part that reads it.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import onnx

from placement.core.graph import Graph
from placement.formats.onnx.infer import infer
from placement.formats.onnx.prepare import reads


@dataclass(frozen=True)
class Part:
    """Indices of the nodes that one call runs, and names of values: taken, given, stored."""

    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: tuple[str, ...]


def cut(model: onnx.ModelProto, graph: Graph, groups: Sequence[Iterable[str]]) -> list[Part]:
    """Parts from groups of op names that together are all ops of the graph, in running order.

    The first part also hands back the model's outputs that are stored weights.
    """
    index = {node.name: i for i, node in enumerate(model.graph.node)}
    stored = _stored(model.graph)
    ops = {index[op.name] for op in graph.ops}
    drafts = [_gather(model, [index[name] for name in names], ops, stored) for names in groups]
    results = dict.fromkeys(value.name for value in model.graph.output)
    wanted = {name for draft in drafts for name in draft.inputs} | set(results)
    parts = []
    for number, draft in enumerate(drafts):
        made = [
            value
            for i in draft.nodes
            if i in ops
            for value in model.graph.node[i].output
            if value in wanted
        ]
        weights = [] if number else [name for name in results if name in stored]
        parts.append(
            dataclasses.replace(
                draft,
                outputs=(*made, *weights),
                weights=tuple(dict.fromkeys((*draft.weights, *weights))),
            )
        )
    return parts


def _gather(
    model: onnx.ModelProto, members: Sequence[int], ops: Set[int], stored: Set[str]
) -> Part:
    """A part without its outputs: nodes with the makers of their constants, inputs, weights."""
    maker = {value: i for i, node in enumerate(model.graph.node) for value in node.output if value}
    nodes = set(members)
    inputs: dict[str, None] = {}
    weights: dict[str, None] = {}
    waiting = sorted(members, reverse=True)
    while waiting:
        for value in reads(model.graph.node[waiting.pop()]):
            source = maker.get(value)
            if value in stored:
                weights[value] = None
            elif source is None or (source in ops and source not in nodes):
                inputs[value] = None
            elif source not in nodes:
                nodes.add(source)
                waiting.append(source)
    return Part(tuple(sorted(nodes)), tuple(inputs), (), tuple(weights))


def part_model(
    model: onnx.ModelProto, part: Part, types: Mapping[str, onnx.ValueInfoProto]
) -> onnx.ModelProto:
    """One part as a model of its own."""
    made = onnx.ModelProto()
    made.ir_version = model.ir_version
    made.opset_import.extend(model.opset_import)
    made.functions.extend(model.functions)
    source, graph = model.graph, made.graph
    graph.name = source.name or "part"
    graph.node.extend(source.node[i] for i in part.nodes)
    graph.input.extend(types[name] for name in part.inputs)
    graph.output.extend(types[name] for name in part.outputs)
    stored = set(part.weights)
    graph.initializer.extend(t for t in source.initializer if t.name in stored)
    graph.sparse_initializer.extend(t for t in source.sparse_initializer if t.values.name in stored)
    return made


def border_types(
    model: onnx.ModelProto, parts: Sequence[Part], name: str
) -> dict[str, onnx.ValueInfoProto]:
    """Types of all values that cross a border; ValueError where one cannot be found out."""
    inferred = infer(model, name)[0].graph
    known = {v.name: v for v in (*inferred.value_info, *inferred.output, *inferred.input)}
    for tensor in model.graph.initializer:
        known.setdefault(
            tensor.name,
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims),
        )
    crossing = dict.fromkeys(v for part in parts for v in (*part.inputs, *part.outputs))
    unknown = [v for v in crossing if v not in known or not _has_type(known[v])]
    if unknown:
        from placement.exporters._onnx.ort_types import runtime_types

        known.update(runtime_types(model, unknown, name))
    return {value: known[value] for value in crossing}


def _has_type(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or value.type.tensor_type.elem_type != 0)


def _stored(graph: onnx.GraphProto) -> set[str]:
    return {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
