"""Loops that no step can end: iterations and what they gather, by arithmetic, before one runs.

A Loop of constant length whose condition is always true runs its body so many times, and keeps what
each time gives of its scan outputs. Of other loops nobody knows; a step has a time limit.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

# A node takes onnxruntime about a microsecond at least, so this many take a quarter of an hour.
MAX_NODE_RUNS = 10**9


def check_loops(model: Any, name: str, free_bytes: int) -> None:
    """ValueError where a Loop runs more nodes, or gathers more bytes, than can be."""
    _check(model.graph, {}, 1, name, free_bytes)


def _check(graph: Any, outer: Mapping[str, Any], times: int, name: str, free_bytes: int) -> None:
    constants = {**outer, **dict(_constants(graph))}
    for node in graph.node:
        for body in (b for a in node.attribute for b in (a.g, *a.graphs) if b.node):
            inner = times
            if node.op_type == "Loop":
                length = _iterations(node, body, constants)
                inner *= length
                _check_loop(node, body, length, inner, name, free_bytes)
            _check(body, constants, inner, name, free_bytes)


def _check_loop(node: Any, body: Any, length: int, times: int, name: str, free_bytes: int) -> None:
    shown = f"Loop {node.name[:80]!r} of {name!r} runs its body {length} times"
    if times * max(1, len(body.node)) > MAX_NODE_RUNS:
        raise ValueError(f"{shown}, which no step could end; give it fewer iterations.")
    gathered = sum(_stated_bytes(value) for value in body.output[len(node.input) - 1 :])
    if length * gathered > free_bytes:
        raise ValueError(
            f"{shown} and gathers {length * gathered} bytes, {free_bytes} are free; give it fewer"
            " iterations."
        )


def _iterations(node: Any, body: Any, constants: Mapping[str, Any]) -> int:
    """How often a Loop certainly runs its body; 1 where that depends on data."""
    trips = _number(constants.get(node.input[0])) if node.input else None
    if trips is None or trips < 1 or len(body.input) < 2 or not body.output:
        return 1
    first = node.input[1] if len(node.input) > 1 else ""
    if first and not _number(constants.get(first)):
        return 1
    source = {n.output[0]: n.input[0] for n in body.node if n.op_type == "Identity" and n.input}
    condition, inside = body.output[0].name, {**constants, **dict(_constants(body))}
    for _ in body.node:
        condition = source.get(condition, condition)
    goes_on = condition == body.input[1].name or bool(_number(inside.get(condition)))
    return trips if goes_on else 1


def _constants(graph: Any) -> Iterator[tuple[str, Any]]:
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            for attribute in node.attribute:
                if attribute.name == "value":
                    yield node.output[0], attribute.t


def _number(tensor: Any) -> int | None:
    """The value of a stored scalar."""
    from onnx import numpy_helper

    if tensor is None or math.prod(tensor.dims) != 1 or tensor.ByteSize() > 1000:
        return None
    return int(numpy_helper.to_array(tensor).reshape(-1)[0])


def _stated_bytes(value: Any) -> int:
    """Bytes of a body's output where its shape is stated, else none."""
    from placement.formats.onnx.values import value_of

    return value_of(value).num_bytes
