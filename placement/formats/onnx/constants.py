"""Which values of an ONNX graph are weights, and which nodes only make weights.

Exporters store weights in three ways: as initializers, as Constant nodes, and (in files kept small)
as ConstantOfShape nodes. A node that reads nothing but constants computes the same on every run, so
it is part of the weights and not an op; unless its result is an output of the model, which an op
has to deliver. Random nodes and nodes with bodies are always ops.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from placement.formats.onnx.checks.walk import MAX_WEIGHT_BYTES
from placement.formats.onnx.values import UNKNOWN, Value

# Ops whose results are random by definition.
RANDOM = {
    "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial",
    "Bernoulli",
}  # fmt: skip
# Nodes that hand on the elements of their first input; the stored weight is what takes memory.
_VIEWS = {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"}


@dataclass(frozen=True)
class Constants:
    """`folded` are indices of nodes that are no ops; `root` leads from each constant value to the
    stored weight whose memory it stands for."""

    folded: frozenset[int]
    root: Mapping[str, str]


def find_constants(
    graph: onnx.GraphProto, read: Sequence[Sequence[str]], values: Mapping[str, Value], name: str
) -> Constants:
    """The constants of a prepared graph, given the values that each node reads; ValueError where a
    node would make a huge weight."""
    root = {tensor.name: tensor.name for tensor in graph.initializer}
    root.update({s.values.name: s.values.name for s in graph.sparse_initializer})
    outputs = {value.name for value in graph.output}
    folded = set()
    for i, (node, inputs) in enumerate(zip(graph.node, read, strict=True)):
        if not _is_constant(node, inputs, root) or outputs & set(node.output):
            continue
        folded.add(i)
        for value in filter(None, node.output):
            size = values.get(value, UNKNOWN).num_bytes
            if size > MAX_WEIGHT_BYTES:
                raise ValueError(
                    f"Node {node.name[:80]!r} of {name!r} would make a weight of {size} bytes, more"
                    f" than the {MAX_WEIGHT_BYTES} allowed; store large weights as external data."
                )
            view = node.op_type in _VIEWS and node.domain in ("", "ai.onnx")
            root[value] = root[node.input[0]] if view else value
    return Constants(frozenset(folded), root)


def _is_constant(node: onnx.NodeProto, inputs: Sequence[str], known: Mapping[str, str]) -> bool:
    if not all(value in known for value in inputs):
        return False
    if node.domain not in ("", "ai.onnx", "ai.onnx.ml") or node.op_type in RANDOM:
        return False
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
        return False
    if not any(node.input):
        return node.op_type == "Constant"
    return True
