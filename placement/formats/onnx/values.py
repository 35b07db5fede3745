"""Shapes, types and sizes of the values of an ONNX model."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import onnx

from placement.formats.onnx.checks.walk import MAX_DIM, MAX_TENSOR_BYTES, num_bytes, type_name

_RENAMED = {"FLOAT": "float32", "DOUBLE": "float64"}


@dataclass(frozen=True)
class Value:
    """What is known of a value: `shape` is None where a dimension or the rank is unknown.

    `dtype` is numpy's word where numpy has the type, else ONNX's in small letters; sequences,
    optionals and maps read "sequence(float32)". `num_bytes` is zero where it is not known.
    """

    shape: tuple[int, ...] | None = None
    dtype: str = "unknown"
    num_bytes: int = 0

    def text(self) -> str:
        return _text_of(self.dtype, self.shape)


@lru_cache(4096)
def _text_of(dtype: str, shape: tuple[int, ...] | None) -> str:
    return dtype + ("[?]" if shape is None else f"[{'x'.join(map(str, shape))}]")


UNKNOWN = Value()


def graph_values(
    graph: onnx.GraphProto, outer: Mapping[str, Value] | None = None
) -> dict[str, Value]:
    """Every value of a graph that something is known of, those of surrounding graphs included."""
    own: dict[str, Value] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        known = value_of(value)
        # An output may repeat a value with less said about it.
        if value.name not in own or known.shape is not None:
            own[value.name] = known
    for tensor in graph.initializer:
        own[tensor.name] = tensor_value(tensor)
    for sparse in graph.sparse_initializer:
        dense = tuple(sparse.dims)
        stored = sum(num_bytes(tuple(t.dims), t.data_type) for t in (sparse.values, sparse.indices))
        own[sparse.values.name] = Value(dense, dtype_name(sparse.values.data_type), stored)
    return {**(outer or {}), **own}


def value_of(value: onnx.ValueInfoProto) -> Value:
    return _value_of_type(value.type.SerializeToString(deterministic=True))


# A network has few types of values, and many values of each.
@lru_cache(4096)
def _value_of_type(serialized: bytes) -> Value:
    type_proto = onnx.TypeProto.FromString(serialized)
    if type_proto.WhichOneof("value") == "tensor_type":
        tensor = type_proto.tensor_type
        shape = _shape(tensor.shape) if tensor.HasField("shape") else None
        return dense_value(shape, tensor.elem_type)
    return Value(None, _type_text(type_proto))


def tensor_value(tensor: onnx.TensorProto) -> Value:
    return dense_value(tuple(tensor.dims), tensor.data_type)


def dense_value(shape: tuple[int, ...] | None, data_type: int) -> Value:
    size = 0 if shape is None else num_bytes(shape, data_type)
    return Value(shape, dtype_name(data_type), size)


@lru_cache(64)
def dtype_name(data_type: int) -> str:
    name = type_name(data_type)
    return "unknown" if name == "UNDEFINED" else _RENAMED.get(name, name.lower())


def check_sizes(values: Iterable[tuple[str, Value]], name: str) -> None:
    """ValueError where a value would be larger than any machine here could hold."""
    for value, known in values:
        if known.num_bytes > MAX_TENSOR_BYTES:
            raise ValueError(
                f"Value {value[:80]!r} of {name!r} would have {known.num_bytes} bytes;"
                " give its dimensions smaller sizes."
            )


def _shape(shape: onnx.TensorShapeProto) -> tuple[int, ...] | None:
    dims = []
    for dim in shape.dim:
        if not dim.HasField("dim_value") or not 0 <= dim.dim_value <= MAX_DIM:
            return None
        dims.append(dim.dim_value)
    return tuple(dims)


def _type_text(type_proto: onnx.TypeProto, depth: int = 0) -> str:
    kind = type_proto.WhichOneof("value")
    if depth > 8 or kind is None:
        return "unknown"
    if kind in ("tensor_type", "sparse_tensor_type"):
        return dtype_name(getattr(type_proto, kind).elem_type)
    if kind == "map_type":
        key = dtype_name(type_proto.map_type.key_type)
        return f"map({key}, {_type_text(type_proto.map_type.value_type, depth + 1)})"
    if kind in ("sequence_type", "optional_type"):
        inner = _type_text(getattr(type_proto, kind).elem_type, depth + 1)
        return f"{kind.removesuffix('_type')}({inner})"
    return "opaque"
