"""Shapes that a model computes from shapes: worked out node by node where inference stops.

Exporters write the size of a reshape as arithmetic on the shapes of other values. ONNX's inference
carries numbers through a dozen operators and knows nothing behind any other, a division or a range
among them. Here every operator of such arithmetic whose inputs are known is computed by ONNX's own
reference implementation, and inference goes on from there.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
from numpy.typing import NDArray
from onnx import TensorProto, TypeProto, helper, numpy_helper

from placement.formats.onnx.checks.walk import MAX_DIM, bodies, num_bytes

# A value with more elements is none that a shape is computed from; of such values so many are kept,
# and so many nodes computed, which takes seconds.
MAX_ELEMENTS = 512
MAX_NUMBERS = 2**20
MAX_COMPUTED = 20_000
# Casts of larger numbers differ between processors.
MAX_CAST = 2.0**53
# Before it, operators stretched their inputs by attributes.
_OLDEST = 7
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


def complete(model: onnx.ModelProto) -> int:
    """Give an inferred model's values the shapes that arithmetic on shapes leads to, in place.

    What has a shape keeps it. Bodies of control flow, operators of other domains, and what depends
    on data stay as they are. Returns how many nodes contradict the shapes that they read.
    """
    graph = model.graph
    values = (*graph.output, *graph.value_info, *graph.input)
    types = {v.name: v.type for v in values if v.type.WhichOneof("value") is not None}
    written = [output for node in graph.node for output in node.output if output]
    if all(_fixed(types.get(name)) for name in written):
        return 0
    arithmetic = _Arithmetic(model, types)
    arithmetic.go()
    listed = {value.name: value for value in (*graph.value_info, *graph.output)}
    for name in dict.fromkeys(written):
        known = types.get(name)
        if known is None or not _fixed(known):
            continue
        if name in listed:
            listed[name].type.CopyFrom(known)
        else:
            graph.value_info.append(onnx.ValueInfoProto(name=name, type=known))
    return arithmetic.num_contradictions


class _Arithmetic:
    """One pass over a model's nodes: `types` and the numbers of small values, as far as known."""

    def __init__(self, model: onnx.ModelProto, types: dict[str, TypeProto]) -> None:
        self._graph, self._types = model.graph, types
        self._opsets = list(model.opset_import)
        versions = [o.version for o in self._opsets if o.domain in _STANDARD]
        self._version = max(versions, default=1)
        self.num_contradictions, self._num_computed, self._num_kept = 0, 0, 0
        # Where names come twice, the last weight is what is read.
        stored = {tensor.name: tensor for tensor in self._graph.initializer}
        self._stored = {name: _type_of(tensor) for name, tensor in stored.items()}
        self._numbers = {name: tensor for name, tensor in stored.items() if _counts(tensor)}

    def go(self) -> None:
        if self._version < _OLDEST:
            return
        for node in self._graph.node:
            if node.domain in _STANDARD and not any(map(bodies, node.attribute)):
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
        except onnx.defs.SchemaError:
            return
        try:
            found = onnx.shape_inference.infer_node_outputs(
                schema,
                node,
                given,
                {name: self._numbers[name] for name in given if name in self._numbers},
                opset_imports=self._opsets,
            )
        except Exception:  # the C++ side raises several kinds
            self.num_contradictions += all(map(_fixed, given.values()))
            return
        self._types.update((o, found[o]) for o in open_outputs if o in found and _fixed(found[o]))

    def _compute(self, node: onnx.NodeProto) -> None:
        """The numbers of a node's outputs, where those of its inputs are known."""
        if self._num_kept > MAX_NUMBERS:
            return
        outputs = [output for output in node.output if output]
        if node.op_type in ("Shape", "Size"):
            made = list(self._of_a_shape(node))
        elif node.op_type == "Constant":
            made = [tensor for tensor in _constants(node) if _counts(tensor)]
        elif node.op_type in _ARITHMETIC and all(
            name in self._numbers for name in node.input if name
        ):
            made = self._reference(node, outputs)
        else:
            return
        self._num_kept += sum(math.prod(tensor.dims) for tensor in made)
        self._numbers.update(zip(outputs, made, strict=False))

    def _of_a_shape(self, node: onnx.NodeProto) -> Iterator[TensorProto]:
        known = self._type(node.input[0]) if node.input else None
        if known is None or not _fixed(known):
            return
        dims = _dims(known)
        if node.op_type == "Size":
            if (size := math.prod(dims)) < 2**63:
                yield numpy_helper.from_array(np.array(size, np.int64))
        else:
            ends = {a.name: a.i for a in node.attribute}
            part = dims[ends.get("start", 0) : ends.get("end", len(dims))]
            yield numpy_helper.from_array(np.array(part, np.int64))

    def _reference(self, node: onnx.NodeProto, outputs: list[str]) -> list[TensorProto]:
        """What ONNX's reference implementation makes of a node's inputs; nothing where it fails or
        divides by zero, or where the outputs are many numbers, or of an unknown number."""
        types = [self._types.get(output) for output in outputs]
        self._num_computed += 1
        if (
            not all(map(_may_count, types))
            or not _holds_nothing_else(node)
            or self._num_computed > MAX_COMPUTED
        ):
            return []
        from onnx.reference import ReferenceEvaluator

        read = dict.fromkeys(filter(None, node.input))
        inputs = [onnx.ValueInfoProto(name=name, type=self._type(name)) for name in read]
        plain = onnx.NodeProto()
        plain.CopyFrom(node)
        plain.domain = ""
        named = [onnx.ValueInfoProto(name=output) for output in outputs]
        graph = helper.make_graph([plain], "arithmetic", inputs, named)
        try:
            feeds = {name: numpy_helper.to_array(self._numbers[name]) for name in read}
            if not _may_be_computed(node.op_type, [feeds[name] for name in node.input if name]):
                return []
            with np.errstate(all="ignore"):
                arrays = ReferenceEvaluator(graph, opsets={"": self._version}).run(None, feeds)
            made = [numpy_helper.from_array(np.asarray(array)) for array in arrays]
        except Exception:  # a reshape that does not go up, an axis that is not there
            return []
        # Where it disagrees with inference, one of the two is wrong.
        alike = all(map(_is_of, made, types))
        return made if alike and len(made) == len(outputs) else []


def _may_be_computed(kind: str, inputs: Sequence[NDArray[Any]]) -> bool:
    """Whether the result is the same everywhere, and as small as inference has said."""
    if kind in ("Div", "Mod"):
        return bool(inputs[1].all())
    if kind == "Cast":
        return bool((np.abs(inputs[0].astype(float)) < MAX_CAST).all())
    if kind == "Range":
        start, limit, step = (array.item() for array in inputs)
        return bool(step) and abs((limit - start) / step) <= MAX_ELEMENTS
    return True


def _holds_nothing_else(node: onnx.NodeProto) -> bool:
    """Whether no attribute holds a tensor but the number of a constant of a computed shape."""
    kind = onnx.AttributeProto
    kinds = {kind.INT, kind.INTS, kind.FLOAT, kind.STRING}
    return all(
        attribute.type in kinds
        or (
            (node.op_type, attribute.name) == ("ConstantOfShape", "value")
            and attribute.type == onnx.AttributeProto.TENSOR
            and _counts(attribute.t)
        )
        for attribute in node.attribute
    )


def _constants(node: onnx.NodeProto) -> Iterator[TensorProto]:
    """What a Constant writes, as a tensor; other kinds than numbers are passed over."""
    for attribute in node.attribute:
        if attribute.name == "value":
            yield attribute.t
        elif attribute.name in ("value_int", "value_ints"):
            many = list(attribute.ints) if attribute.name == "value_ints" else attribute.i
            yield numpy_helper.from_array(np.array(many, np.int64))
        elif attribute.name in ("value_float", "value_floats"):
            floats = list(attribute.floats) if attribute.name == "value_floats" else attribute.f
            yield numpy_helper.from_array(np.array(floats, np.float32))


def _is_of(tensor: TensorProto, known: TypeProto | None) -> bool:
    return known is not None and (tensor.data_type, list(tensor.dims)) == (
        known.tensor_type.elem_type,
        _dims(known),
    )


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
        # A dimension of zero must not hide how large another one is.
        and math.prod(max(dim, 1) for dim in _dims(known)) <= MAX_ELEMENTS
    )


def _counts(tensor: TensorProto) -> bool:
    """Whether a tensor's numbers may count and are here: not in another file, and not left out."""
    shape = tuple(tensor.dims)
    if tensor.data_location == TensorProto.EXTERNAL or not _may_count(_type_of(tensor)):
        return False
    listed = getattr(tensor, _LISTED[tensor.data_type])
    return len(listed) == math.prod(shape) or bool(
        tensor.raw_data and len(tensor.raw_data) == num_bytes(shape, tensor.data_type)
    )
