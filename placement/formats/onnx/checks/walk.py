"""Every list of nodes and every tensor of an ONNX model, wherever the format lets one stand.

Checks that looked at some of these places only could be passed by through the others: a tensor may
be an initializer, sparse, an attribute or a list of them, a default of a function's attribute, and
all of these again in the bodies of nodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx


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
