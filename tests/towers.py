"""Four towers: chains of convolutions side by side that join at the end, as an ONNX file."""

from pathlib import Path

NUM_TOWERS, LENGTH, CHANNELS, SIDE = 4, 6, 64, 56


def save_towers(path: Path) -> None:
    """A model that a method has to run in a good order on a device and its host."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    shape = [1, CHANNELS, SIDE, SIDE]
    kernel = np.zeros((CHANNELS, CHANNELS, 3, 3), dtype=np.float32)
    weights = [numpy_helper.from_array(kernel, "weight")]
    nodes, ends = [], []
    for tower in range(NUM_TOWERS):
        before = "x"
        for number in range(LENGTH):
            name = f"tower{tower}/conv{number}"
            nodes.append(
                helper.make_node("Conv", [before, "weight"], [name], name=name, pads=[1, 1, 1, 1])
            )
            before = name
        ends.append(before)
    nodes.append(helper.make_node("Concat", ends, ["y"], name="join", axis=1))
    graph = helper.make_graph(
        nodes,
        "towers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4 * CHANNELS, SIDE, SIDE])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, str(path))
