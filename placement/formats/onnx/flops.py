"""Floating-point operations of ONNX nodes and of their bodies, from the shapes of their values.

A multiply and an add count as two. |x| is the number of elements of x.

- Conv (also integer, quantised, deformable, fused): 2 |out| times the weight elements behind one
  output element (input channels of the group times kernel), and |out| for a bias.
- ConvTranspose: 2 |in| times weight elements behind one input element, and |out| for a bias.
- MatMul (also integer, quantised, fused): 2 |out| k with k the common dimension; Gemm the same, and
  |out| for an added C. Einsum: 2 times the product of all its index sizes (1 with one operand).
- LSTM, GRU, RNN: 2 seq batch (|W| + |R|); the gates' elementwise work is not counted.
- Attention over b batches, h heads, q queries, s keys and head sizes d, v: 2 b h q s (d + v), and
  5 b h q s for the softmax.
- Pooling: |out| times kernel elements; global pooling and reductions: |in|.
- Normalisation per element: BatchNormalization 2 (scale and shift), RMS 5, Lp 3, others 8;
  LRN 2 size + 3. Softmax 5 per element.
- Resize per output element: nearest 0, linear 8, cubic 32; GridSample 8. DFT: 5 n log2 n per row.
- Quantising and dequantising: 2 per element.
- Nodes that only move, make or test data count 0.
- All else, functions of an element among them: one per output element and further operand.

Nodes whose shapes are not known count 0. A node with bodies stays one op: If counts its dearer
branch, Loop its body once per iteration where the number is a constant, Scan once per element of
the scanned axis; others count them once. Weights inside a body count once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper

from placement.formats.onnx.checks.walk import bodies
from placement.formats.onnx.values import UNKNOWN, Value, graph_values

Shapes = Sequence[tuple[int, ...] | None]
Formula = Callable[[Shapes, Shapes, Mapping[str, Any]], float]

_MOVES = {
    "Identity", "Constant", "ConstantOfShape", "Reshape", "Flatten", "Squeeze", "Unsqueeze",
    "Transpose", "Concat", "Split", "Slice", "Gather", "GatherElements", "GatherND", "Scatter",
    "ScatterElements", "ScatterND", "TensorScatter", "Expand", "Tile", "Pad", "Shape", "Size",
    "Cast", "CastLike", "BitCast", "Dropout", "DepthToSpace", "SpaceToDepth", "ReverseSequence",
    "OneHot", "Compress", "EyeLike", "Trilu", "NonZero", "Unique", "Col2Im", "CenterCropPad",
    "Where", "SequenceConstruct", "SequenceAt", "SequenceEmpty", "SequenceInsert", "SequenceErase",
    "SequenceLength", "SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement",
    "OptionalHasElement", "If", "Loop", "Scan", "SequenceMap", "StringConcat", "StringSplit",
    "StringNormalizer", "RegexFullMatch", "ImageDecoder",
}  # fmt: skip
_CONVS = {"Conv": 1, "FusedConv": 1, "ConvInteger": 1, "DeformConv": 1, "QLinearConv": 3}
_MATMULS = {
    "MatMul": 1, "MatMulInteger": 1, "FusedMatMul": 1, "TransposeMatMul": 1, "QLinearMatMul": 3,
}  # fmt: skip
_PER_ELEMENT = {
    "BatchNormalization": 2, "RMSNormalization": 5, "SimplifiedLayerNormalization": 5,
    "LpNormalization": 3, "LayerNormalization": 8, "InstanceNormalization": 8,
    "GroupNormalization": 8, "MeanVarianceNormalization": 8, "SkipLayerNormalization": 9,
    "Softmax": 5, "LogSoftmax": 5, "Hardmax": 2, "GridSample": 8, "QuantizeLinear": 2,
    "DequantizeLinear": 2, "DynamicQuantizeLinear": 4,
}  # fmt: skip
# Where an attribute with a single value keeps it.
_SINGLE = {
    onnx.AttributeProto.INT: "i",
    onnx.AttributeProto.FLOAT: "f",
    onnx.AttributeProto.STRING: "s",
}
_POOLS = {"MaxPool", "AveragePool", "LpPool", "QLinearAveragePool"}


def node_flops(node: onnx.NodeProto, values: Mapping[str, Value]) -> float:
    """Operations of one node without its bodies; zero where shapes are not known."""
    ins = [values.get(value, UNKNOWN).shape if value else None for value in node.input]
    outs = [values.get(value, UNKNOWN).shape for value in node.output if value]
    attributes = {a.name: _plain(a) for a in node.attribute}
    try:
        return float(_formula(node.op_type)(ins, outs, attributes))
    except (IndexError, TypeError, KeyError, ValueError, ZeroDivisionError, OverflowError):
        return 0.0  # a shape is missing or does not fit the kind of node


def _formula(kind: str) -> Formula:
    if kind in _MOVES:
        return lambda ins, outs, a: 0.0
    if kind in _CONVS:
        weight = _CONVS[kind]
        return lambda ins, outs, a: _conv(ins, outs, weight, bias=2 if weight == 1 else 8)
    if kind in _MATMULS:
        second = _MATMULS[kind]
        return lambda ins, outs, a: _matmul(ins[second], outs[0], bool(a.get("transB")))
    if kind in _POOLS:
        return lambda ins, outs, a: _size(outs[0]) * math.prod(a["kernel_shape"])
    if kind in _PER_ELEMENT:
        factor = _PER_ELEMENT[kind]
        return lambda ins, outs, a: factor * _size(outs[0])
    if kind.startswith(("Reduce", "Global", "Arg", "Cum")) or kind in ("TopK", "NonMaxSuppression"):
        return lambda ins, outs, a: _size(ins[0])
    return _OWN.get(kind, _elementwise)


def _size(shape: tuple[int, ...] | None) -> int:
    if shape is None:
        raise TypeError("shape is not known")
    return math.prod(shape)


def _conv(ins: Shapes, outs: Shapes, weight: int, bias: int) -> float:
    has_bias = len(ins) > bias and ins[bias] is not None
    return _size(outs[0]) * (2 * _size(ins[weight][1:]) + has_bias)  # type: ignore[index]


def _conv_transpose(ins: Shapes, outs: Shapes, a: Mapping[str, Any]) -> float:
    bias = _size(outs[0]) if len(ins) > 2 and ins[2] is not None else 0
    return 2 * _size(ins[0]) * _size(ins[1][1:]) + bias  # type: ignore[index]


def _matmul(right: tuple[int, ...] | None, out: tuple[int, ...] | None, transposed: bool) -> float:
    if right is None:
        raise TypeError("shape is not known")
    common = right[-1] if transposed or len(right) == 1 else right[-2]
    return 2 * _size(out) * common


def _gemm(ins: Shapes, outs: Shapes, a: Mapping[str, Any]) -> float:
    added = _size(outs[0]) if len(ins) > 2 and ins[2] is not None else 0
    return _matmul(ins[1], outs[0], bool(a.get("transB"))) + added


def _einsum(ins: Shapes, outs: Shapes, a: Mapping[str, Any]) -> float:
    terms = a["equation"].decode().replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, ins, strict=True):
        if "..." in term or shape is None:
            return 2 * _size(outs[0])
        sizes.update(zip(term, shape, strict=True))
    return (2 if len(terms) > 1 else 1) * math.prod(sizes.values())


def _recurrent(ins: Shapes, outs: Shapes, a: Mapping[str, Any]) -> float:
    steps = _size(ins[0][:2])  # type: ignore[index]
    return 2 * steps * (_size(ins[1]) + _size(ins[2]))


def _attention(ins: Shapes, outs: Shapes, a: Mapping[str, Any]) -> float:
    query, key, value = ins[0], ins[1], ins[2]
    if query is None or key is None or value is None:
        return 0.0
    if len(query) == 4:
        batch, heads, queries, head = query
        keys, value_head = key[2], value[3]
    else:  # heads lie side by side in the last axis
        heads = a.get("q_num_heads", a.get("num_heads", 1))
        batch, queries, head = query[0], query[1], query[2] // heads
        keys = key[1]
        value_head = value[2] // a.get("kv_num_heads", heads)
    if len(ins) > 4 and ins[4] is not None and len(ins[4]) == 4:
        keys += ins[4][2]  # keys of earlier steps
    return batch * heads * queries * keys * (2.0 * (head + value_head) + 5.0)


def _resize(ins: Shapes, outs: Shapes, a: Mapping[str, Any]) -> float:
    factor = {b"nearest": 0, b"cubic": 32}.get(a.get("mode", b"nearest"), 8)
    return factor * _size(outs[0])


def _dft(ins: Shapes, outs: Shapes, a: Mapping[str, Any]) -> float:
    size = _size(outs[0])
    shape = outs[0] or (1,)
    length = max(shape[1:-1], default=shape[0])
    return 5 * size * math.log2(max(length, 2))


def _lrn(ins: Shapes, outs: Shapes, a: Mapping[str, Any]) -> float:
    return float(_size(outs[0]) * (2 * a["size"] + 3))


def _elementwise(ins: Shapes, outs: Shapes, a: Mapping[str, Any]) -> float:
    return sum(_size(out) for out in outs[:1]) * max(1, sum(i is not None for i in ins) - 1)


_OWN: dict[str, Formula] = {
    "ConvTranspose": _conv_transpose, "Gemm": _gemm, "FusedGemm": _gemm, "Einsum": _einsum,
    "LSTM": _recurrent, "GRU": _recurrent, "RNN": _recurrent, "Attention": _attention,
    "MultiHeadAttention": _attention, "Resize": _resize, "Upsample": _resize, "DFT": _dft,
    "STFT": _dft, "LRN": _lrn,
}  # fmt: skip


def _plain(attribute: onnx.AttributeProto) -> Any:
    if attribute.type in _SINGLE:
        return getattr(attribute, _SINGLE[attribute.type])
    return list(attribute.ints) if attribute.type == onnx.AttributeProto.INTS else None


@dataclass(frozen=True)
class BodyCost:
    flops: float = 0.0
    param_bytes: int = 0
    num_nodes: int = 0


def body_cost(
    node: onnx.NodeProto, values: Mapping[str, Value], stored: Mapping[str, onnx.TensorProto]
) -> BodyCost:
    """Cost of all bodies of a node; `values` and `stored` are what the node's graph knows."""
    costs = [
        _graph_cost(body, values, stored)
        for attribute in node.attribute
        for body in bodies(attribute)
    ]
    if not costs:
        return BodyCost()
    flops = [cost.flops for cost in costs]
    total = max(flops) if node.op_type == "If" else sum(flops) * _times(node, values, stored)
    return BodyCost(
        total, sum(cost.param_bytes for cost in costs), sum(cost.num_nodes for cost in costs)
    )


def _graph_cost(
    graph: onnx.GraphProto, outer: Mapping[str, Value], stored: Mapping[str, onnx.TensorProto]
) -> BodyCost:
    values = graph_values(graph, outer)
    stored = {**stored, **{tensor.name: tensor for tensor in graph.initializer}}
    flops, num_nodes = 0.0, len(graph.node)
    param_bytes = sum(values[tensor.name].num_bytes for tensor in graph.initializer)
    for node in graph.node:
        inner = body_cost(node, values, stored)
        flops += node_flops(node, values) + inner.flops
        param_bytes += inner.param_bytes
        num_nodes += inner.num_nodes
        if node.op_type == "Constant" and node.output:
            param_bytes += values.get(node.output[0], UNKNOWN).num_bytes
    return BodyCost(flops, param_bytes, num_nodes)


def _times(
    node: onnx.NodeProto, values: Mapping[str, Value], stored: Mapping[str, onnx.TensorProto]
) -> int:
    if node.op_type == "Loop" and node.input and node.input[0] in stored:
        return max(1, _first_number(stored[node.input[0]]))
    if node.op_type == "Scan":
        scanned = {a.name: a.i for a in node.attribute}.get("num_scan_inputs", 0)
        axes = next((list(a.ints) for a in node.attribute if a.name == "scan_input_axes"), [])
        shape = values.get(node.input[-scanned], UNKNOWN).shape if scanned else None
        axis = axes[0] if axes else 0
        if shape and -len(shape) <= axis < len(shape):
            return max(1, shape[axis])
    return 1


def _first_number(tensor: onnx.TensorProto) -> int:
    try:
        return int(np.ravel(onnx.numpy_helper.to_array(tensor))[0])
    except (ValueError, TypeError, IndexError, OverflowError):
        return 1
