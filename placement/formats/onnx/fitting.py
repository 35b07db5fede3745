"""The size of pictures that a network is made for, where its file leaves it open.

Another size than that contradicts numbers which the network holds: a reshape that does not go up, a
Concat of different lengths. So the first usual size counts with which nothing is contradicted.
"""

from collections.abc import Collection

import onnx

from placement.formats.onnx.dims import IMAGE_SIZE
from placement.formats.onnx.infer import num_contradictions, without_weights

# Usual sides of pictures in the order in which they are tried, in pixels.
SIDES = (320, 512, 640, 128, 96, 64, 48, 32, 28)


def fitting_side(model: onnx.ModelProto, axes: Collection[tuple[str, int]]) -> int:
    """The side for these axes of inputs, in pixels; `IMAGE_SIZE`, as the prepared model has it,
    where that contradicts nothing, or no other side is better."""
    slim = without_weights(model)
    if num_contradictions(slim) == 0:
        return IMAGE_SIZE
    inputs = {value.name: value for value in slim.graph.input}
    for side in SIDES:
        for value, axis in axes:
            inputs[value].type.tensor_type.shape.dim[axis].dim_value = side
        if num_contradictions(slim) == 0:
            return side
    return IMAGE_SIZE
