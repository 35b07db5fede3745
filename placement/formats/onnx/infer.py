"""Shapes of an ONNX model inferred anew: what its ops give, whatever the file states.

Files state shapes of values between nodes and of outputs. A stated size of 4 bytes would hide that
a value needs terabytes, so these only fill in what inference leaves open (shapes that depend on
data, operators of other domains), and count for nothing where the two differ.
"""

import math
from collections.abc import Mapping

import onnx
import onnx.shape_inference

from placement.formats.onnx.arithmetic import complete
from placement.formats.onnx.checks.walk import bodies, num_bytes, refill

STORED_BYTES = 4096  # constants up to this size may be shapes, axes or paddings
# Inference may carry the elements of small integer tensors along, from which shapes are computed,
# and writes each of them down: a million take about 200 MB.
MAX_NUMBERS = 2**20
USUAL_RANK = 8
_CARRIERS = {"Cast", "Squeeze", "Unsqueeze", "Add", "Sub", "Mul", "Slice"}
_INTEGERS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


def infer(
    model: onnx.ModelProto, name: str, *, arithmetic: bool = True
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """A copy with inferred shapes and without the data of large weights, and notes for people.

    Without `arithmetic` as it was inferred before there was any (`arithmetic.py`).
    """
    slim = without_weights(model)
    stated = {value.name: value for value in (*model.graph.value_info, *model.graph.output)}
    notes: tuple[str, ...] = ()
    try:
        inferred = onnx.shape_inference.infer_shapes(slim, data_prop=_few_numbers(slim.graph))
    except MemoryError:
        raise ValueError(
            f"The shapes of {name!r} cannot be worked out in the memory here; simplify the part"
            " that computes them."
        ) from None
    except Exception as error:  # the C++ side raises several kinds, RuntimeError among them
        text = " ".join(str(error).split())[:200]
        inferred = slim
        notes = (f"Shapes of {name!r} are partly unknown, inference failed: {text}",)
    if arithmetic:
        complete(inferred)
    _drop_known(inferred.graph, model.graph)
    wrong = _fill_in(inferred.graph, stated)
    if wrong:
        notes += (
            f"The file states other shapes than its ops give for {len(wrong)} values"
            f" ({wrong[0][:80]!r} first); those that the ops give are used",
        )
    return inferred, notes


def num_contradictions(model: onnx.ModelProto) -> int:
    """How many nodes of a model without weights contradict the shapes that they read."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=_few_numbers(model.graph))
    except Exception:  # told when it is opened
        return 0
    return complete(inferred)


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model in which large initializers keep shape and type but lose their data, and
    nothing is stated of values that nodes write."""
    slim = onnx.ModelProto()
    slim.ir_version = model.ir_version
    slim.opset_import.extend(model.opset_import)
    slim.functions.extend(model.functions)
    for function in slim.functions:
        del function.value_info[:]
    graph, source = slim.graph, model.graph
    graph.name = source.name
    graph.node.extend(source.node)
    graph.input.extend(source.input)
    graph.output.extend(onnx.ValueInfoProto(name=value.name) for value in source.output)
    graph.sparse_initializer.extend(source.sparse_initializer)
    for tensor in source.initializer:
        small = num_bytes(tuple(tensor.dims), tensor.data_type) <= STORED_BYTES
        if small and tensor.data_location != onnx.TensorProto.EXTERNAL:
            graph.initializer.append(tensor)
        else:
            graph.initializer.add(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
    _prepare_bodies(graph, {})
    return slim


def _prepare_bodies(graph: onnx.GraphProto, outer: Mapping[str, onnx.TensorProto]) -> None:
    """Let bodies state nothing of what their nodes write, in place, and know the shapes that
    surrounding graphs store: inference does not look outside a body."""
    known = {**outer, **{t.name: t for t in graph.initializer if _may_be_shape(t)}}
    for node in graph.node:
        for body in (b for attribute in node.attribute for b in bodies(attribute)):
            del body.value_info[:]
            for output in body.output:
                output.ClearField("type")
            read = dict.fromkeys(value for inner in body.node for value in inner.input)
            own = {value.name for value in (*body.input, *body.initializer)}
            own |= {value for inner in body.node for value in inner.output}
            _prepare_bodies(body, known)
            body.initializer.extend(known[v] for v in read if v in known and v not in own)


def _drop_known(graph: onnx.GraphProto, source: onnx.GraphProto) -> None:
    """Take back what `_prepare_bodies` added to the weights of bodies, in place."""
    for node, original in zip(graph.node, source.node, strict=True):
        for attribute, same in zip(node.attribute, original.attribute, strict=True):
            for body, before in zip(bodies(attribute), bodies(same), strict=True):
                del body.initializer[len(before.initializer) :]
                _drop_known(body, before)


def _may_be_shape(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type in _INTEGERS and len(tensor.dims) < 2 and math.prod(tensor.dims) <= 64


def _few_numbers(graph: onnx.GraphProto) -> bool:
    """Whether inference would write down no more than `MAX_NUMBERS` elements.

    Concat adds up what it reads, and Gather makes as many as it has indices; the other operators
    that carry numbers make no more of them than they read.
    """
    elements = {tensor.name: math.prod(tensor.dims) for tensor in graph.initializer}
    numbers = {t.name: elements[t.name] for t in graph.initializer if t.data_type in _INTEGERS}
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        elements[value.name] = math.prod(dim.dim_value for dim in dims)
        if len(dims) < 2 and value.type.tensor_type.elem_type in _INTEGERS:
            numbers[value.name] = elements[value.name]
    total = 0
    for node in graph.node:
        read = [numbers.get(value, 0) for value in node.input]
        made = 0
        if node.op_type == "Concat":
            made = sum(read)
        elif node.op_type == "Gather" and len(read) == 2:
            made = elements.get(node.input[1], read[1]) if read[0] else 0
        elif node.op_type in _CARRIERS:
            made = max(read, default=0)
        elif node.op_type in ("Shape", "Size"):
            made = USUAL_RANK
        elif node.op_type == "Constant":
            made = max((math.prod(a.t.dims) for a in node.attribute if a.HasField("t")), default=0)
        numbers.update(dict.fromkeys(filter(None, node.output), made))
        total += made
    return total <= MAX_NUMBERS


def _fill_in(graph: onnx.GraphProto, stated: Mapping[str, onnx.ValueInfoProto]) -> list[str]:
    """Add what is stated of values where inference knows nothing; names of those that differ."""
    outputs = {value.name for value in graph.output}
    # Inference lists outputs that came without a type among the inner values as well.
    refill(graph.value_info, [v for v in graph.value_info if v.name not in outputs])
    inferred = {value.name: value for value in (*graph.value_info, *graph.output)}
    wrong = []
    for name, value in stated.items():
        known = inferred.get(name)
        if known is None:
            graph.value_info.append(value)
        elif known.type.WhichOneof("value") is None:
            known.type.CopyFrom(value.type)
        elif not _fill_in_type(known.type, value.type):
            wrong.append(name)
    return wrong


def _fill_in_type(known: onnx.TypeProto, stated: onnx.TypeProto) -> bool:
    """Whether the two agree; if they do, what only the stated one says is added to the other."""
    if stated.WhichOneof("value") is None:
        return True
    if known.WhichOneof("value") != stated.WhichOneof("value"):
        return False
    if not known.HasField("tensor_type"):
        return True
    ours, theirs = known.tensor_type, stated.tensor_type
    if not ours.elem_type:
        ours.elem_type = theirs.elem_type
    if ours.elem_type != theirs.elem_type:
        return False
    if not ours.HasField("shape"):
        if theirs.HasField("shape"):
            ours.shape.CopyFrom(theirs.shape)
        return True
    pairs = list(zip(ours.shape.dim, theirs.shape.dim, strict=False))
    if theirs.HasField("shape") and (
        len(ours.shape.dim) != len(theirs.shape.dim)
        or any(
            a.HasField("dim_value") and b.HasField("dim_value") and a.dim_value != b.dim_value
            for a, b in pairs
        )
    ):
        return False
    for a, b in pairs:
        if not a.HasField("dim_value") and b.HasField("dim_value"):
            a.dim_value = b.dim_value
    return True
