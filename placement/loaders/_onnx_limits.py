"""Limits on ONNX models: what is refused before anything is computed or allocated.

A small file can claim tensors of any size and nest bodies without end; each claim is compared with
what the file really holds.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import onnx

MAX_FILE_BYTES = 2**31 - 1  # protobuf's own limit for one message
MAX_NODES = 200_000
MAX_NESTING = 16
MAX_WEIGHT_BYTES = 2**31 - 1  # a weight that a node makes (ConstantOfShape) instead of storing it
MAX_TENSOR_BYTES = 2**40
MAX_DIM = 2**40

# Bits per element of each TensorProto data type; strings have no fixed size and count zero.
BITS = {
    "FLOAT": 32, "UINT8": 8, "INT8": 8, "UINT16": 16, "INT16": 16, "INT32": 32, "INT64": 64,
    "STRING": 0, "BOOL": 8, "FLOAT16": 16, "DOUBLE": 64, "UINT32": 32, "UINT64": 64,
    "COMPLEX64": 64, "COMPLEX128": 128, "BFLOAT16": 16, "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8,
    "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4,
    "FLOAT8E8M0": 8, "UINT2": 2, "INT2": 2, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6,
}  # fmt: skip


@lru_cache(64)
def type_name(data_type: int) -> str:
    """ONNX's word for a data type number ("FLOAT"), "UNDEFINED" for a number it does not know."""
    try:
        return str(onnx.TensorProto.DataType.Name(data_type))
    except ValueError:
        return "UNDEFINED"


def num_bytes(shape: tuple[int, ...], data_type: int) -> int:
    """Bytes of a dense tensor; elements of less than a byte are packed."""
    return (math.prod(shape) * BITS.get(type_name(data_type), 0) + 7) // 8


def check_limits(model: onnx.ModelProto, name: str) -> None:
    """ValueError where the model has too many nodes, nests too deeply or claims absent data."""
    count = 0
    for nodes, depth in _node_lists(model):
        if depth > MAX_NESTING:
            raise ValueError(
                f"{name!r} nests graphs more than {MAX_NESTING} deep;"
                " flatten its If and Loop bodies."
            )
        count += len(nodes)
        if count > MAX_NODES:
            raise ValueError(
                f"{name!r} has more than {MAX_NODES} nodes; split the model or simplify it first."
            )
    for tensor in all_tensors(model):
        _check_claim(tensor, name)


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every stored tensor: initializers and tensor attributes, in bodies and functions too."""
    graphs = [model.graph]
    node_lists = [list(function.node) for function in model.functions]
    while graphs or node_lists:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            node_lists.append(list(graph.node))
        for node in node_lists.pop() if node_lists else ():
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                if attribute.HasField("sparse_tensor"):
                    yield attribute.sparse_tensor.values
                    yield attribute.sparse_tensor.indices
                yield from attribute.tensors
                graphs.extend(bodies(attribute))


def bodies(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    """The graphs that an attribute holds."""
    return ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs)


def _node_lists(model: onnx.ModelProto) -> Iterator[tuple[list[onnx.NodeProto], int]]:
    waiting = [(list(model.graph.node), 0)]
    waiting += [(list(function.node), 1) for function in model.functions]
    while waiting:
        nodes, depth = waiting.pop()
        yield nodes, depth
        for node in nodes:
            for attribute in node.attribute:
                waiting += [(list(body.node), depth + 1) for body in bodies(attribute)]


def _check_claim(tensor: onnx.TensorProto, name: str) -> None:
    dims = tuple(tensor.dims)
    shown = f"Tensor {tensor.name[:80]!r} of {name!r}"
    if any(d < 0 or d > MAX_DIM for d in dims):
        raise ValueError(f"{shown} has the impossible shape {dims[:8]}; export the model again.")
    claimed = num_bytes(dims, tensor.data_type)
    if claimed > MAX_TENSOR_BYTES:
        raise ValueError(f"{shown} claims {claimed} bytes; export the model again.")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return
    held = _held_bytes(tensor)
    if held is not None and held != claimed:
        raise ValueError(
            f"{shown} claims {claimed} bytes but the file holds {held} of them;"
            " the file is damaged or incomplete, export or download it again."
        )


def _held_bytes(tensor: onnx.TensorProto) -> int | None:
    """Bytes that the stored values stand for; None where they cannot be compared."""
    kind = type_name(tensor.data_type)
    if kind == "UNDEFINED" or tensor.HasField("segment"):
        return None
    if kind == "STRING":
        return 0 if len(tensor.string_data) == math.prod(tensor.dims) else -1
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data)
    per_entry = {"COMPLEX64": 0.5, "COMPLEX128": 0.5}.get(kind, 1.0)
    entries = (
        len(tensor.float_data)
        + len(tensor.int32_data)
        + len(tensor.int64_data)
        + len(tensor.double_data)
        + len(tensor.uint64_data)
    )
    elements = math.prod(tensor.dims)
    # Small types pack several elements into one int32 entry, and writers differ in how many.
    if BITS[kind] < 8 and 0 < entries <= elements:
        return num_bytes(tuple(tensor.dims), tensor.data_type)
    return (int(entries * per_entry) * BITS[kind] + 7) // 8
