"""Shapes that a model computes from shapes: worked out node by node where inference stops.

Exporters write the size of a reshape as arithmetic on the shapes of other values. ONNX's inference
carries numbers through a dozen operators and knows nothing behind any other, a division or a range
among them. Here every operator of such arithmetic whose inputs are known is computed by ONNX's own
reference implementation, and inference goes on from there.
"""

import math
from collections.abc import Iterator

import numpy as np
import onnx
import onnx.shape_inference
from onnx import TensorProto, TypeProto, helper, numpy_helper

from placement.formats.onnx.checks.walk import MAX_DIM, bodies, num_bytes

# A value with more elements is none that a shape is computed from.
MAX_ELEMENTS = 1024
_STANDARD = ("", "ai.onnx")
# Types of such numbers, and where a tensor lists them unless it has them as bytes.
_LISTED: dict[int, str] = {
    TensorProto.BOOL: "int32_data",
    TensorProto.INT32: "int32_data",
    TensorProto.INT64: "int64_data",
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
}
_ARITHMETIC = {
    "Abs", "Add", "And", "Cast", "Ceil", "Concat", "ConstantOfShape", "Div", "Equal", "Expand",
    "Flatten", "Floor", "Gather", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual",
    "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Range", "ReduceMax", "ReduceMin",
    "ReduceProd", "ReduceSum", "Reshape", "Round", "ScatterND", "Slice", "Split", "Sqrt",
    "Squeeze", "Sub", "Tile", "Transpose", "Unsqueeze", "Where",
}  # fmt: skip


def complete(model: onnx.ModelProto) -> None:
    """Give an inferred model's values the shapes that arithmetic on shapes leads to, in place.

    What has a shape keeps it. Bodies of control flow, operators of other domains, and what depends
    on data stay as they are.
    """
    graph = model.graph
    types = {v.name: v.type for v in (*graph.input, *graph.value_info, *graph.output)}
    if all(map(_fixed, types.values())):
        return
    _Arithmetic(model, types).go()
    listed = {value.name: value for value in (*graph.value_info, *graph.output)}
    for name, known in types.items():
        if name in listed:
            listed[name].type.CopyFrom(known)
        elif _fixed(known):
            graph.value_info.append(onnx.ValueInfoProto(name=name, type=known))


class _Arithmetic:
    """One pass over a model's nodes: `types` and the numbers of small values, as far as known."""

    def __init__(self, model: onnx.ModelProto, types: dict[str, TypeProto]) -> None:
        self._graph, self._types = model.graph, types
        self._opsets = list(model.opset_import)
        versions = [o.version for o in self._opsets if o.domain in _STANDARD]
        self._version = max(versions, default=1)
        self._numbers: dict[str, TensorProto] = {}
        # Where two say so, the graph's own weights are what is read.
        self._stored = {tensor.name: _type_of(tensor) for tensor in self._graph.initializer}
        for tensor in self._graph.initializer:
            if _may_count(self._stored[tensor.name]) and _has_data(tensor):
                self._numbers[tensor.name] = tensor

    def go(self) -> None:
        for node in self._graph.node:
            if node.domain in _STANDARD and not any(
                True for attribute in node.attribute for _ in bodies(attribute)
            ):
                self._learn(node)
                self._compute(node)

    def _type(self, name: str) -> TypeProto | None:
        return self._stored.get(name) or self._types.get(name)

    def _learn(self, node: onnx.NodeProto) -> None:
        """What inference says of a node's outputs now that more is known of its inputs."""
        open_outputs = [o for o in node.output if o and not _fixed(self._types.get(o))]
        read = dict.fromkeys(filter(None, node.input))
        given = {name: known for name in read if (known := self._type(name)) is not None}
        if not open_outputs or len(given) < len(read):
            return
        try:
            schema = onnx.defs.get_schema(node.op_type, self._version, "")
            found = onnx.shape_inference.infer_node_outputs(
                schema,
                node,
                given,
                {name: self._numbers[name] for name in given if name in self._numbers},
                opset_imports=self._opsets,
            )
        except Exception:  # the C++ side raises several kinds; what is wrong is told elsewhere
            return
        self._types.update((o, found[o]) for o in open_outputs if o in found and _fixed(found[o]))

    def _compute(self, node: onnx.NodeProto) -> None:
        """The numbers of a node's outputs, where those of its inputs are known."""
        outputs = [output for output in node.output if output]
        if any(output in self._numbers for output in outputs):
            return
        if node.op_type in ("Shape", "Size"):
            made = list(self._of_a_shape(node))
        elif node.op_type == "Constant":
            values = [a.t for a in node.attribute if a.name == "value"]
            made = [t for t in values if _may_count(_type_of(t)) and _has_data(t)]
        elif node.op_type in _ARITHMETIC and all(
            name in self._numbers for name in node.input if name
        ):
            made = self._reference(node, outputs)
        else:
            return
        self._numbers.update(zip(outputs, made, strict=False))

    def _of_a_shape(self, node: onnx.NodeProto) -> Iterator[TensorProto]:
        known = self._type(node.input[0]) if node.input else None
        if known is None or not _fixed(known):
            return
        dims = _dims(known)
        if node.op_type == "Size":
            yield numpy_helper.from_array(np.array(math.prod(dims), np.int64))
        else:
            ends = {a.name: a.i for a in node.attribute}
            part = dims[ends.get("start", 0) : ends.get("end", len(dims))]
            yield numpy_helper.from_array(np.array(part, np.int64))

    def _reference(self, node: onnx.NodeProto, outputs: list[str]) -> list[TensorProto]:
        """What ONNX's reference implementation makes of a node's inputs; nothing where it fails or
        divides by zero, or where the outputs are many numbers, or of an unknown number."""
        types = [self._types.get(output) for output in outputs]
        if not all(map(_may_count, types)):
            return []
        from onnx.reference import ReferenceEvaluator

        read = dict.fromkeys(filter(None, node.input))
        inputs = [onnx.ValueInfoProto(name=name, type=self._type(name)) for name in read]
        graph = helper.make_graph([node], "arithmetic", inputs, list(map(_named, outputs)))
        try:
            feeds = {name: numpy_helper.to_array(self._numbers[name]) for name in read}
            if node.op_type in ("Div", "Mod") and not feeds[node.input[1]].all():
                return []
            with np.errstate(all="ignore"):
                made = ReferenceEvaluator(graph, opsets={"": self._version}).run(None, feeds)
            return [numpy_helper.from_array(np.asarray(array)) for array in made]
        except Exception:  # a reshape that does not go up, an axis that is not there
            return []


def _named(name: str) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name)


def _type_of(tensor: TensorProto) -> TypeProto:
    return helper.make_tensor_type_proto(tensor.data_type, tuple(tensor.dims))


def _dims(known: TypeProto) -> list[int]:
    return [dim.dim_value for dim in known.tensor_type.shape.dim]


def _fixed(known: TypeProto | None) -> bool:
    """Whether this is a tensor whose every dimension is known."""
    return (
        known is not None
        and known.HasField("tensor_type")
        and known.tensor_type.HasField("shape")
        and all(
            dim.HasField("dim_value") and 0 <= dim.dim_value <= MAX_DIM
            for dim in known.tensor_type.shape.dim
        )
    )


def _may_count(known: TypeProto | None) -> bool:
    """Whether its numbers are few, and of a type that arithmetic on shapes has."""
    return (
        known is not None
        and _fixed(known)
        and known.tensor_type.elem_type in _LISTED
        and math.prod(_dims(known)) <= MAX_ELEMENTS
    )


def _has_data(tensor: TensorProto) -> bool:
    """Whether the numbers of such a tensor are here: not in another file, and not left out."""
    shape = tuple(tensor.dims)
    if tensor.data_location == TensorProto.EXTERNAL:
        return False
    listed = getattr(tensor, _LISTED[tensor.data_type])
    return len(listed) == math.prod(shape) or bool(
        tensor.raw_data and len(tensor.raw_data) == num_bytes(shape, tensor.data_type)
    )
