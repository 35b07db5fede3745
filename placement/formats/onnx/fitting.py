"""The size of pictures that a network is made for, where its file leaves it open.

Another size than that contradicts numbers which the network holds, and the shapes behind such a
place cannot be worked out. So the first usual size counts with which the most are known.
"""

from collections.abc import Collection

import onnx

from placement.formats.onnx.dims import IMAGE_SIZE
from placement.formats.onnx.infer import infer, without_weights
from placement.formats.onnx.values import graph_values

# Usual sides of pictures in the order in which they are tried, in pixels; with the last one a
# network computes hardly anything.
SIDES = (IMAGE_SIZE, 320, 512, 640, 128, 96, 64, 48, 32, 28, 1)


def fitting_side(model: onnx.ModelProto, axes: Collection[tuple[str, int]], name: str) -> int:
    """The side for these axes of inputs, in pixels; the prepared model has the first of `SIDES`."""
    slim = without_weights(model)
    inputs = {value.name: value for value in slim.graph.input}
    unknown = {}
    for side in SIDES:
        for value, axis in axes:
            inputs[value].type.tensor_type.shape.dim[axis].dim_value = side
        unknown[side] = _num_unknown(slim, name)
        if unknown[side] == 0:
            return side
    return min(unknown, key=lambda side: unknown[side])


def _num_unknown(model: onnx.ModelProto, name: str) -> int:
    graph = infer(model, name)[0].graph
    values = graph_values(graph)
    written = (values.get(value) for node in graph.node for value in node.output if value)
    return sum(known is None or known.shape is None for known in written)
