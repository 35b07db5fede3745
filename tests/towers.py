"""Towers side by side that join at the end, and blocks of three ways in a row, as ONNX files."""

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


def save_three_ways(path: Path, num_blocks: int = 6) -> None:
    """Blocks in a row, each of three ways that meet again; nothing in the file is called by a name
    that says something."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    num_channels, side, nodes, weights = 8, 16, [], []

    def conv(before: str, channels: int, size: int) -> str:
        number = len(nodes)
        kernel = np.zeros((num_channels, channels, size, size), dtype=np.float32)
        weights.append(numpy_helper.from_array(kernel, f"w{number}"))
        pads = [size // 2] * 4
        nodes.append(helper.make_node("Conv", [before, f"w{number}"], [f"v{number}"], pads=pads))
        nodes.append(helper.make_node("Relu", [f"v{number}"], [f"v{number + 1}"]))
        return f"v{number + 1}"

    last, channels = conv("x", 3, 3), num_channels
    for _ in range(num_blocks):
        ways = [
            conv(last, channels, 1),
            conv(conv(last, channels, 1), num_channels, 3),
            conv(conv(last, channels, 1), num_channels, 5),
        ]
        last, channels = f"v{len(nodes)}", 3 * num_channels
        nodes.append(helper.make_node("Concat", ways, [last], axis=1))
    nodes.append(helper.make_node("GlobalAveragePool", [last], ["y"]))
    graph = helper.make_graph(
        nodes,
        "ways",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, 1, 1])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, str(path))
