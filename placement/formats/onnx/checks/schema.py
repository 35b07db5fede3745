"""Nodes held against the definitions of their operators, and names that are text, before use.

Libraries trust some of what these say, and a process that they crash or keep busy has no sentence:
onnxruntime 1.31 reads an input that is not there (Max, Concat), shape inference of onnx 1.23 writes
past the parts of a Split that has more outputs than parts, makes as many parts as one names, and
never ends on an Einsum with stray dots. Where a name is not UTF-8 protobuf hands out bytes; every
name is checked once, so that no other part has to expect them.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import onnx
import onnx.defs

from placement.formats.onnx.checks.walk import all_tensors, blocks

_OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional


_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def check_arguments(model: onnx.ModelProto, name: str) -> None:
    """ValueError where a node contradicts what its operator is."""
    versions = {_domain(opset.domain): opset.version for opset in model.opset_import}
    for block in blocks(model):
        for node in block.nodes:
            domain = _domain(node.domain)
            wrong = _missing_input(node, domain, versions.get(domain, 1)) or _contradiction(node)
            if wrong:
                raise ValueError(
                    f"Node {(node.name or node.op_type)[:80]!r} of {name!r} ({node.op_type[:80]})"
                    f" {wrong}; export the model again."
                )


def _missing_input(node: onnx.NodeProto, domain: str, version: int) -> str:
    if all(node.input):
        return ""
    optional = _optional_inputs(node.op_type, domain, version)
    for i, value in enumerate(node.input):
        if optional and not value and not optional[min(i, len(optional) - 1)]:
            return f"leaves out input {i + 1}, which it needs"
    return ""


def _contradiction(node: onnx.NodeProto) -> str:
    for attribute in node.attribute:
        parts = node.op_type == "Split" and attribute.name == "num_outputs"
        if parts and attribute.i != len(node.output):
            return f"makes {attribute.i} parts for {len(node.output)} outputs"
        if node.op_type == "Einsum" and attribute.name == "equation":
            equation = attribute.s.decode("utf-8", "replace").replace(" ", "")
            inputs, _, output = equation.partition("->")
            terms = inputs.split(",")
            known = all(_TERM.fullmatch(term) for term in (*terms, output))
            if not known or len(terms) != len(node.input):
                return f"has the equation {equation[:80]!r} for {len(node.input)} inputs"
    return ""


@lru_cache(1024)
def _optional_inputs(kind: str, domain: str, version: int) -> tuple[bool, ...]:
    """Whether each input may be left out; the last stands for all that follow it."""
    try:
        schema = onnx.defs.get_schema(kind, min(version, 2**31 - 1), domain)
    except onnx.defs.SchemaError:
        return ()
    return tuple(parameter.option == _OPTIONAL for parameter in schema.inputs)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


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
