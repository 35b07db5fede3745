"""Names in ONNX models: protobuf hands out bytes where one is not UTF-8; such files are refused.

Every name that the loader looks at is checked once, so that no other part has to expect bytes.
"""

from collections.abc import Iterator

import onnx

from placement.loaders._onnx_limits import bodies


def check_text(model: onnx.ModelProto, name: str) -> None:
    """ValueError where a name is not UTF-8 text."""
    for text in _texts(model):
        if not isinstance(text, str):
            raise ValueError(
                f"{name!r} has a name that is not UTF-8 text ({repr(text)[:40]});"
                " the file is damaged, export it again."
            )


def _texts(model: onnx.ModelProto) -> Iterator[object]:
    yield from (opset.domain for opset in model.opset_import)
    waiting = [model.graph]
    for function in model.functions:
        yield from (function.name, function.domain, *function.input, *function.output)
        yield from (opset.domain for opset in function.opset_import)
        for node in function.node:
            yield from _node_texts(node, waiting)
    while waiting:
        graph = waiting.pop()
        yield graph.name
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.name
            yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
        for tensor in graph.initializer:
            yield from _tensor_texts(tensor)
        for sparse in graph.sparse_initializer:
            yield from _tensor_texts(sparse.values)
        for node in graph.node:
            yield from _node_texts(node, waiting)


def _node_texts(node: onnx.NodeProto, waiting: list[onnx.GraphProto]) -> Iterator[object]:
    yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
    for entry in node.metadata_props:
        yield from (entry.key, entry.value)
    for attribute in node.attribute:
        yield from (attribute.name, attribute.ref_attr_name)
        if attribute.HasField("t"):
            yield from _tensor_texts(attribute.t)
        waiting += bodies(attribute)


def _tensor_texts(tensor: onnx.TensorProto) -> Iterator[object]:
    yield tensor.name
    for entry in tensor.external_data:
        yield from (entry.key, entry.value)
