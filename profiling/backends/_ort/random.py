"""Ops whose results are random by definition: outputs behind them cannot be compared."""

from typing import Any

RANDOM = (
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
)


def random_ops(graph: Any) -> tuple[str, ...]:
    """Names of ops of a model graph that are random, in bodies of other ops too."""
    return tuple(node.name or node.op_type for node in graph.node if _is_random(node, graph))


def _is_random(node: Any, graph: Any) -> bool:
    if node.op_type in RANDOM:
        return True
    if node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]:
        return _may_be_true(node.input[2], graph)
    bodies = [b for a in node.attribute for b in (a.g, *a.graphs) if b.node]
    return any(random_ops(body) for body in bodies)


def _may_be_true(name: str, graph: Any) -> bool:
    """Whether a training flag is anything but a constant false."""
    from onnx import numpy_helper

    for tensor in graph.initializer:
        if tensor.name == name:
            return bool(numpy_helper.to_array(tensor).any())
    for node in graph.node:
        if node.op_type == "Constant" and name in node.output:
            return any(
                numpy_helper.to_array(a.t).any() for a in node.attribute if a.name == "value"
            )
    return True
