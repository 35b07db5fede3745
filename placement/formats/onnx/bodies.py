"""What the bodies of If, Loop and Scan cost; the node that holds them stays one op.

If counts its dearer branch. Loop counts its body once per iteration where the number is a constant,
Scan once per element of the scanned axis; other holders of bodies count them once. Weights inside a
body count once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.numpy_helper

from placement.formats.onnx.checks.walk import bodies
from placement.formats.onnx.flops import node_flops
from placement.formats.onnx.values import UNKNOWN, Value, graph_values


@dataclass(frozen=True)
class BodyCost:
    flops: float = 0.0
    param_bytes: int = 0
    num_nodes: int = 0


def body_cost(
    node: onnx.NodeProto, values: Mapping[str, Value], stored: Mapping[str, onnx.TensorProto]
) -> BodyCost:
    """Cost of all bodies of a node; `values` and `stored` are what the node's graph knows."""
    costs = [
        _graph_cost(body, values, stored)
        for attribute in node.attribute
        for body in bodies(attribute)
    ]
    if not costs:
        return BodyCost()
    flops = [cost.flops for cost in costs]
    total = max(flops) if node.op_type == "If" else sum(flops) * _times(node, values, stored)
    return BodyCost(
        total, sum(cost.param_bytes for cost in costs), sum(cost.num_nodes for cost in costs)
    )


def _graph_cost(
    graph: onnx.GraphProto, outer: Mapping[str, Value], stored: Mapping[str, onnx.TensorProto]
) -> BodyCost:
    values = graph_values(graph, outer)
    stored = {**stored, **{tensor.name: tensor for tensor in graph.initializer}}
    flops, num_nodes = 0.0, len(graph.node)
    param_bytes = sum(values[tensor.name].num_bytes for tensor in graph.initializer)
    for node in graph.node:
        inner = body_cost(node, values, stored)
        flops += node_flops(node, values) + inner.flops
        param_bytes += inner.param_bytes
        num_nodes += inner.num_nodes
        if node.op_type == "Constant" and node.output:
            param_bytes += values.get(node.output[0], UNKNOWN).num_bytes
    return BodyCost(flops, param_bytes, num_nodes)


def _times(
    node: onnx.NodeProto, values: Mapping[str, Value], stored: Mapping[str, onnx.TensorProto]
) -> int:
    if node.op_type == "Loop" and node.input and node.input[0] in stored:
        return max(1, _first_number(stored[node.input[0]]))
    if node.op_type == "Scan":
        scanned = {a.name: a.i for a in node.attribute}.get("num_scan_inputs", 0)
        axes = next((list(a.ints) for a in node.attribute if a.name == "scan_input_axes"), [])
        shape = values.get(node.input[-scanned], UNKNOWN).shape if scanned else None
        axis = axes[0] if axes else 0
        if shape and -len(shape) <= axis < len(shape):
            return max(1, shape[axis])
    return 1


def _first_number(tensor: onnx.TensorProto) -> int:
    try:
        return int(np.ravel(onnx.numpy_helper.to_array(tensor))[0])
    except (ValueError, TypeError, IndexError, OverflowError):
        return 1
