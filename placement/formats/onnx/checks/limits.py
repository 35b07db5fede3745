"""Limits on ONNX models, and the bytes of their data types."""

import math
from functools import lru_cache

import onnx

MAX_FILE_BYTES = 2**31 - 1  # protobuf's own limit for one message
MAX_NODES = 200_000  # ten times the largest models that people export
MAX_NESTING = 16
MAX_WEIGHT_BYTES = 2**31 - 1  # a weight that a node makes (ConstantOfShape) instead of storing it
MAX_TENSOR_BYTES = 2**40
MAX_DIM = 2**40
MAX_RANK = 64  # of a numpy array, which every value becomes somewhere

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
