"""ONNX type strings as onnxruntime prints them, as type protos and as numpy types."""

import re
from typing import Any

import numpy as np

_SIMPLE = {
    "float": "FLOAT",
    "double": "DOUBLE",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "bool": "BOOL",
    "string": "STRING",
    "complex64": "COMPLEX64",
    "complex128": "COMPLEX128",
}
_NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_}


def any_dtype(text: str) -> np.dtype[Any]:
    """The type of arrays for `tensor(...)` values, of ml_dtypes where numpy has none."""
    from onnx import helper

    return np.dtype(helper.tensor_dtype_to_np_dtype(element_type(text[7:-1])))


def element_type(word: str) -> int:
    """`float` -> TensorProto.FLOAT."""
    from onnx import TensorProto

    number: int = TensorProto.DataType.Value(_SIMPLE.get(word, word.upper()))
    return number


def type_proto(text: str, shape: tuple[int | None, ...] | None = None) -> Any:
    """`seq(tensor(float))` -> the type proto; `shape` holds for a plain tensor."""
    from onnx import helper

    match = re.fullmatch(r"(\w+)\((.*)\)", text)
    assert match is not None, text
    kind, inner = match.groups()
    if kind == "tensor":
        return helper.make_tensor_type_proto(element_type(inner), shape)
    if kind == "sparse_tensor":
        return helper.make_sparse_tensor_type_proto(element_type(inner), shape)
    if kind in ("seq", "sequence"):
        return helper.make_sequence_type_proto(type_proto(inner))
    if kind == "optional":
        return helper.make_optional_type_proto(type_proto(inner))
    assert kind == "map", text
    key, value = inner.split(",", 1)
    return helper.make_map_type_proto(element_type(key), type_proto(value))


def type_text(proto: Any) -> str:
    """A type proto as onnxruntime prints it."""
    from onnx import TensorProto

    kind = proto.WhichOneof("value")
    inner = getattr(proto, kind)
    if kind in ("tensor_type", "sparse_tensor_type"):
        number = TensorProto.DataType.Name(inner.elem_type)
        words = {long: short for short, long in _SIMPLE.items()}
        return f"{kind.removesuffix('_type')}({words.get(number, number.lower())})"
    if kind == "map_type":
        key = TensorProto.DataType.Name(inner.key_type)
        return f"map({key.lower()},{type_text(inner.value_type)})"
    return f"{'seq' if kind == 'sequence_type' else 'optional'}({type_text(inner.elem_type)})"


def numpy_dtype(text: str) -> np.dtype[Any] | None:
    """The numpy type of `tensor(...)` values that may lie in a plain buffer; None for others."""
    match = re.fullmatch(r"tensor\((\w+)\)", text)
    if match is None:
        return None
    word = match.group(1)
    if word in _NUMPY:
        return np.dtype(_NUMPY[word])
    if re.fullmatch(r"u?int(8|16|32|64)", word):
        return np.dtype(word)
    return None


def numpy_type(number: int) -> str:
    """`TensorProto.FLOAT` -> `tensor(float)`, for types that numpy knows; empty for others."""
    from onnx import TensorProto

    words = {long: short for short, long in _SIMPLE.items()}
    name = TensorProto.DataType.Name(number)
    text = f"tensor({words.get(name, name.lower())})"
    return text if numpy_dtype(text) is not None else ""
