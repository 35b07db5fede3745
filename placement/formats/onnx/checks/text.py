"""Names in ONNX models: protobuf hands out bytes where one is not UTF-8; such files are refused.

Every name that the loader looks at is checked once, so that no other part has to expect bytes.
"""

from collections.abc import Iterator

import onnx

from placement.formats.onnx.checks.walk import all_tensors, blocks


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
    for function in model.functions:
        yield from (function.name, function.domain, function.overload)
        yield from (*function.input, *function.output, *function.attribute)
        yield from (opset.domain for opset in function.opset_import)
        yield from (value.name for value in function.value_info)
    for block in blocks(model):
        for node in block.nodes:
            yield from (node.name, node.op_type, node.domain, node.overload)
            yield from (*node.input, *node.output)
            yield from (text for entry in node.metadata_props for text in (entry.key, entry.value))
        for attribute in block.attributes():
            yield from (attribute.name, attribute.ref_attr_name)
        if block.graph is not None:
            yield block.graph.name
            for value in (*block.graph.input, *block.graph.output, *block.graph.value_info):
                yield value.name
                yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    for tensor in all_tensors(model):
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
