"""Every list of nodes and every tensor of an ONNX model, wherever one may stand; limits on them.

Checks that looked at some of these places only could be passed by through the others: a tensor may
be an initializer, sparse, an attribute or a list of them, a default of a function's attribute, and
all of these again in the bodies of nodes.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

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


@dataclass(frozen=True)
class Block:
    """The main graph, a body or a function: its nodes, and the graph where it is one.

    `defaults` are what a function takes for attributes that a call leaves out. Bodies of the main
    graph's nodes have depth 1, as functions have.
    """

    nodes: Sequence[onnx.NodeProto]
    depth: int
    graph: onnx.GraphProto | None = None
    defaults: Sequence[onnx.AttributeProto] = ()

    def attributes(self) -> Iterator[onnx.AttributeProto]:
        """The attributes of its nodes, and its defaults."""
        for node in self.nodes:
            yield from node.attribute
        yield from self.defaults


def blocks(model: onnx.ModelProto) -> Iterator[Block]:
    """The main graph, the functions and all bodies, outer ones first."""
    waiting = [_block(model.graph, 0)]
    waiting += [Block(f.node, 1, defaults=f.attribute_proto) for f in model.functions]
    while waiting:
        block = waiting.pop()
        yield block
        for attribute in block.attributes():
            waiting += [_block(body, block.depth + 1) for body in bodies(attribute)]


def bodies(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    """The graphs that an attribute holds."""
    return ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs)


def refill(field: Any, items: Iterable[Any]) -> None:
    """Let a repeated field of a message hold these of its items and nothing else."""
    copies = [type(item).FromString(item.SerializeToString()) for item in items]
    del field[:]
    field.extend(copies)


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every stored tensor, those that sparse tensors are made of included."""
    for block in blocks(model):
        if block.graph is not None:
            yield from block.graph.initializer
        for attribute in block.attributes():
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for sparse in _sparse(block):
            yield from (sparse.values, sparse.indices)


def all_sparse(model: onnx.ModelProto) -> Iterator[onnx.SparseTensorProto]:
    """Every sparse tensor."""
    for block in blocks(model):
        yield from _sparse(block)


def _sparse(block: Block) -> Iterator[onnx.SparseTensorProto]:
    if block.graph is not None:
        yield from block.graph.sparse_initializer
    for attribute in block.attributes():
        if attribute.HasField("sparse_tensor"):
            yield attribute.sparse_tensor
        yield from attribute.sparse_tensors


def _block(graph: onnx.GraphProto, depth: int) -> Block:
    return Block(graph.node, depth, graph)
