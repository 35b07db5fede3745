"""A prepared ONNX model as a Graph: its ops, and the tensors that flow between them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import onnx

from placement.core.graph import Graph, Op, Tensor
from placement.formats.onnx.attributes import node_attributes
from placement.formats.onnx.constants import Constants, find_constants
from placement.formats.onnx.flops import body_cost, node_flops
from placement.formats.onnx.infer import infer
from placement.formats.onnx.prepare import reads
from placement.formats.onnx.scopes import node_scopes
from placement.formats.onnx.values import UNKNOWN, Value, check_sizes, graph_values


def build_graph(model: onnx.ModelProto, name: str) -> tuple[Graph, tuple[str, ...]]:
    """The graph of what `prepare` returned, and notes for people.

    Tensors keep the names of the ONNX values. Constants are weights of the ops that read them, not
    tensors; an output of the model that is itself a stored weight is left out with a note.
    """
    inferred, notes = infer(model, name, arithmetic=False)
    graph, more = _built(model, inferred, name)
    if _num_unknown(graph):
        inferred, said = infer(model, name)
        known, more_of_it = _built(model, inferred, name)
        if _num_unknown(known) < _num_unknown(graph):
            notes, more = said, more_of_it
            graph = replace(known, formerly=graph.fingerprint)
    return graph, (*notes, *more)


def _num_unknown(graph: Graph) -> int:
    return sum(tensor.shape is None for tensor in graph.tensors)


def _built(
    model: onnx.ModelProto, inferred: onnx.ModelProto, name: str
) -> tuple[Graph, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    graph = inferred.graph
    values = graph_values(graph)
    check_sizes(values.items(), name)
    all_reads = [reads(node) for node in graph.node]
    constants = find_constants(graph, all_reads, values, name)
    kept = [i for i in range(len(graph.node)) if i not in constants.folded]
    nodes, read = [graph.node[i] for i in kept], [all_reads[i] for i in kept]
    tensors = _tensors(graph, nodes, read, values)
    stored_outputs = [o.name for o in graph.output if o.name in constants.root]
    if stored_outputs:
        notes += (
            f"Left out of the graph: {len(stored_outputs)} outputs that are stored weights"
            f" ({stored_outputs[0][:80]!r} first)",
        )
    unknown = [t for t in tensors if t.shape is None and (t.consumers or t.is_output)]
    if unknown:
        notes += (
            f"The shape of {len(unknown)} of {len(tensors)} tensors is not known"
            f" ({unknown[0].name[:80]!r} first)",
        )
    strange = _unknown_kinds(graph, {f.name for f in model.functions})
    if strange:
        notes += (
            f"No version of ONNX knows the op type {strange[0][:80]!r}"
            f"{f' and {len(strange) - 1} more' if len(strange) > 1 else ''};"
            " the model can be placed, but not measured or run",
        )
    outputs = {o.name for o in graph.output}
    scopes = node_scopes(nodes, read, constants.root, values, outputs)
    return Graph(name, _ops(graph, nodes, read, values, constants, scopes), tensors), notes


def _unknown_kinds(graph: onnx.GraphProto, functions: set[str]) -> list[str]:
    """Op types of the standard domain that have no definition, each once, sorted."""
    standard = {node.op_type for node in graph.node if node.domain in ("", "ai.onnx")}
    return sorted(kind for kind in standard - functions if not onnx.defs.has(kind))


def _ops(
    graph: onnx.GraphProto,
    nodes: list[onnx.NodeProto],
    read: list[list[str]],
    values: Mapping[str, Value],
    constants: Constants,
    scopes: list[str],
) -> tuple[Op, ...]:
    stored = {tensor.name: tensor for tensor in graph.initializer}
    stored.update(
        (node.output[0], attribute.t)
        for node in graph.node
        if node.op_type == "Constant" and node.output
        for attribute in node.attribute
        if attribute.name == "value"
    )
    counted: set[str] = set()
    ops = []
    for node, inputs, scope in zip(nodes, read, scopes, strict=True):
        roots = dict.fromkeys(constants.root[v] for v in inputs if v in constants.root)
        weights = [root for root in roots if root not in counted]
        counted.update(weights)
        body = body_cost(node, values, stored)
        extra = (("body nodes", str(body.num_nodes)),) if body.num_nodes else ()
        ops.append(
            Op(
                node.name,
                node.op_type or "op",
                scope,
                flops=node_flops(node, values) + body.flops,
                param_bytes=body.param_bytes
                + sum(values.get(weight, UNKNOWN).num_bytes for weight in weights),
                attributes=node_attributes(node, values, extra),
            )
        )
    return tuple(ops)


def _tensors(
    graph: onnx.GraphProto,
    nodes: list[onnx.NodeProto],
    read: list[list[str]],
    values: Mapping[str, Value],
) -> tuple[Tensor, ...]:
    consumers: dict[str, list[str]] = {}
    for node, inputs in zip(nodes, read, strict=True):
        for value in inputs:
            consumers.setdefault(value, []).append(node.name)
    outputs = Counter(value.name for value in graph.output)
    produced: list[tuple[str, str | None]] = [(value.name, None) for value in graph.input]
    produced += [(value, node.name) for node in nodes for value in node.output if value]
    tensors = []
    for value, producer in produced:
        known = values.get(value, UNKNOWN)
        tensors.append(
            Tensor(
                value,
                producer,
                tuple(consumers.get(value, ())),
                known.num_bytes,
                known.shape,
                known.dtype,
                value in outputs,
            )
        )
    return tuple(tensors)
