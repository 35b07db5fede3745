"""What an ONNX file claims, compared with what it holds, before anything is computed or allocated.

A small file can claim tensors of any size, nest bodies without end, and call functions that call
functions. A tensor may be stored as raw bytes, in the field of its type, in another file, or as a
sparse one.
"""

import math

import numpy as np
import onnx

from placement.formats.onnx.checks.calls import check_calls
from placement.formats.onnx.checks.walk import (
    BITS,
    MAX_DIM,
    MAX_NESTING,
    MAX_NODES,
    MAX_RANK,
    MAX_TENSOR_BYTES,
    MAX_WEIGHT_BYTES,
    all_sparse,
    all_tensors,
    blocks,
    num_bytes,
    type_name,
)

_FIELDS = (
    "raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data",
    "string_data",
)  # fmt: skip
# Where data types are stored that have a field of their own; all others share int32_data.
_WIDE = {
    "FLOAT": "float_data", "COMPLEX64": "float_data", "DOUBLE": "double_data",
    "COMPLEX128": "double_data", "INT64": "int64_data", "UINT32": "uint64_data",
    "UINT64": "uint64_data", "STRING": "string_data",
}  # fmt: skip


def check_limits(model: onnx.ModelProto, name: str) -> None:
    """ValueError where the model has too many nodes, nests too deeply or claims absent data."""
    count = 0
    for block in blocks(model):
        if block.depth > MAX_NESTING:
            raise ValueError(
                f"{name!r} nests graphs more than {MAX_NESTING} deep;"
                " flatten its If and Loop bodies."
            )
        count += len(block.nodes)
        if count > MAX_NODES:
            raise ValueError(
                f"{name!r} has more than {MAX_NODES} nodes; split the model or simplify it first."
            )
    check_calls(model, name)
    for tensor in all_tensors(model):
        _check_claim(tensor, name)
    for sparse in all_sparse(model):
        _check_sparse(sparse, name)
    for block in blocks(model):
        if block.graph is not None:
            _check_declared(block.graph, name)


def _check_declared(graph: onnx.GraphProto, name: str) -> None:
    """Ranks that a file states of values; what their dimensions are is inferred, not believed."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        rank = len(value.type.tensor_type.shape.dim)
        if rank > MAX_RANK:
            raise ValueError(
                f"Value {value.name[:80]!r} of {name!r} has {rank} dimensions, more than the"
                f" {MAX_RANK} that an array may have; export the model again."
            )


def _check_claim(tensor: onnx.TensorProto, name: str) -> None:
    dims = tuple(tensor.dims)
    shown = f"Tensor {tensor.name[:80]!r} of {name!r}"
    if len(dims) > MAX_RANK or any(d < 0 or d > MAX_DIM for d in dims):
        more = f" and {len(dims) - 8} more dimensions" if len(dims) > 8 else ""
        raise ValueError(
            f"{shown} has the impossible shape {dims[:8]}{more}; export the model again."
        )
    kind = type_name(tensor.data_type)
    if kind not in BITS:
        raise ValueError(
            f"{shown} has data type number {tensor.data_type}, which ONNX does not know;"
            " export the model again."
        )
    claimed = num_bytes(dims, tensor.data_type)
    if claimed > MAX_TENSOR_BYTES:
        raise ValueError(f"{shown} claims {claimed} bytes; export the model again.")
    filled = [f for f in _FIELDS if len(getattr(tensor, f))]
    external = tensor.data_location == onnx.TensorProto.EXTERNAL
    if tensor.HasField("segment") or len(filled) + external > 1 or (external and kind == "STRING"):
        raise ValueError(
            f"{shown} is stored in pieces, twice, or as text in another file, which is not read;"
            " export the model again."
        )
    if not external:
        _check_stored(tensor, kind, claimed, filled, shown)


def _check_stored(
    tensor: onnx.TensorProto, kind: str, claimed: int, filled: list[str], shown: str
) -> None:
    elements = math.prod(tensor.dims)
    if (filled and filled[0] not in ("raw_data", _field(kind))) or (
        kind == "STRING" and filled == ["raw_data"]
    ):
        raise ValueError(
            f"{shown} is {kind} but its data is stored as {filled[0]}; export the model again."
        )
    count = len(getattr(tensor, filled[0])) if filled else 0
    if kind == "STRING":
        if count != elements:
            raise ValueError(
                f"{shown} claims {elements} texts but the file holds {count} of them;"
                " the file is damaged or incomplete, export or download it again."
            )
        return
    raw = filled == ["raw_data"]
    stored = count if raw else _typed_bytes(kind, count, elements)
    if stored != claimed:
        raise ValueError(
            f"{shown} claims {claimed} bytes but the file holds {stored} of them;"
            " the file is damaged or incomplete, export or download it again."
        )


def _typed_bytes(kind: str, count: int, elements: int) -> int:
    """Bytes that entries of a typed field stand for."""
    if kind in ("COMPLEX64", "COMPLEX128"):
        return count * BITS[kind] // 16
    # Small types pack several elements into one 32-bit entry, and writers differ in how many.
    if BITS[kind] < 8 and elements * BITS[kind] <= 32 * count and count <= elements:
        return (elements * BITS[kind] + 7) // 8
    return (count * BITS[kind] + 7) // 8


def _field(kind: str) -> str:
    """The typed field that holds a data type."""
    return _WIDE.get(kind, "int32_data")


def _check_sparse(sparse: onnx.SparseTensorProto, name: str) -> None:
    """A runtime makes a dense tensor of it, so its whole shape counts, and every index is used."""
    dims, values, indices = tuple(sparse.dims), sparse.values, sparse.indices
    shown = f"Sparse tensor {values.name[:80]!r} of {name!r}"
    if not 0 < len(dims) <= MAX_RANK or any(d < 1 or d > MAX_DIM for d in dims):
        raise ValueError(f"{shown} has the impossible shape {dims[:8]}; export the model again.")
    dense_bytes = num_bytes(dims, values.data_type)
    if dense_bytes > MAX_WEIGHT_BYTES:
        raise ValueError(
            f"{shown} would have {dense_bytes} bytes, more than the {MAX_WEIGHT_BYTES} allowed;"
            " store large weights as external data."
        )
    count = math.prod(values.dims)
    shapes = ([count], [count, len(dims)])
    if len(values.dims) != 1 or (count and list(indices.dims) not in shapes):
        raise ValueError(
            f"{shown} has {list(values.dims)} values and {list(indices.dims)} indices, which do"
            " not belong together; export the model again."
        )
    if indices.data_location == onnx.TensorProto.EXTERNAL or (
        count and indices.data_type != onnx.TensorProto.INT64
    ):
        raise ValueError(f"{shown} has indices that cannot be checked; export the model again.")
    _check_indices(indices, dims, shown)


def _check_indices(indices: onnx.TensorProto, dims: tuple[int, ...], shown: str) -> None:
    from onnx import numpy_helper

    at = numpy_helper.to_array(indices)
    limits = np.array(dims if at.ndim == 2 else [math.prod(dims)])
    if at.size and ((at < 0).any() or (at.reshape(len(at), -1) >= limits).any()):
        raise ValueError(f"{shown} has indices outside its shape {dims}; export the model again.")
