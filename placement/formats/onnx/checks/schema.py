"""Nodes of a model held against the definitions of their operators, before any library reads them.

Libraries trust some of what these say, and a process that they crash or keep busy has no sentence:
onnxruntime 1.31 reads an input that is not there (Max, Concat), shape inference of onnx 1.23 writes
past the parts of a Split that has more outputs than parts, makes as many parts as one names, and
never ends on an Einsum with stray dots.
"""

import re
from functools import lru_cache

import onnx
import onnx.defs

from placement.formats.onnx.checks.walk import blocks

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
