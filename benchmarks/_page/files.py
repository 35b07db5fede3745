"""The model files that the studio and its peers open: two of the onnx package, and made-up ones.

A file is written anew, with another name for its output, for every time it is opened: so
nobody's cache has met it before, and all sides read the same bytes.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

LIGHT = {"Inception v2": "light_inception_v2", "DenseNet-121": "light_densenet121"}
MADE_UP = {"1,000 ops": 1_000, "3,000 ops": 3_000, "10,000 ops": 10_000, "30,000 ops": 30_000}
OPS_PER_BLOCK, NUM_STAGES = 12, 10
SHAPE = (1, 8, 14, 14)
OPSET, IR_VERSION = 17, 8


def write(name: str, copy: int, folder: Path) -> Path:
    """The model of that name as a file of its own; the same copy has the same bytes again."""
    import onnx

    from placement.formats.onnx.samples import light_folder

    if name in MADE_UP:
        model = made_up(MADE_UP[name])
    else:
        model = onnx.load(light_folder() / f"{LIGHT[name]}.onnx")
    _rename_output(model.graph, f"output_{copy}")
    path = folder / f"{name.lower().replace(' ', '-').replace(',', '')}-{copy}.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def made_up(num_ops: int) -> "ModelProto":
    """A convolutional network of stages of blocks of three branches, with the names that PyTorch's
    exporter gives; what no block takes of `num_ops` makes the head."""
    from onnx import TensorProto, helper

    num_blocks, num_left = divmod(num_ops, OPS_PER_BLOCK)
    per_stage = max(1, -(-num_blocks // NUM_STAGES))
    network, value = _Network(), "input"
    for number in range(num_blocks):
        stage, block = divmod(number, per_stage)
        value = network.block(f"/stages.{stage}/blocks.{block}", value)
    for number in range(num_left):
        value = network.op("Relu", [value], f"/head/act.{number}")
    first, last = (
        helper.make_tensor_value_info(end, TensorProto.FLOAT, SHAPE) for end in ("input", value)
    )
    graph = helper.make_graph(network.nodes, "made up", [first], [last], network.weights)
    imports = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


class _Network:
    """Nodes and weights of a network in the making; its methods return the value they write."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []

    def op(self, kind: str, inputs: list[str], path: str, **attributes: object) -> str:
        from onnx import helper

        name = f"{path}/{kind}"
        self.nodes.append(helper.make_node(kind, inputs, [f"{name}_output_0"], name, **attributes))
        return f"{name}_output_0"

    def conv(self, value: str, path: str) -> str:
        from onnx import numpy_helper

        weight = f"{path}.weight"
        filters = np.full((SHAPE[1], SHAPE[1], 1, 1), 1 / SHAPE[1], np.float32)
        self.weights.append(numpy_helper.from_array(filters, weight))
        return self.op("Conv", [value, weight], path)

    def block(self, path: str, value: str) -> str:
        """Three branches and a shortcut, added up."""
        a = self.op("Relu", [self.conv(value, f"{path}/a/conv1")], f"{path}/a/act1")
        a = self.op("Relu", [self.conv(a, f"{path}/a/conv2")], f"{path}/a/act2")
        b = self.op("Relu", [self.conv(value, f"{path}/b/conv")], f"{path}/b/act")
        window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        c = self.conv(self.op("AveragePool", [value], f"{path}/c/pool", **window), f"{path}/c/conv")
        for branch, name in ((b, "join1"), (c, "join2"), (value, "shortcut")):
            a = self.op("Add", [a, branch], f"{path}/{name}")
        return self.op("Relu", [a], f"{path}/act")


def _rename_output(graph: "GraphProto", name: str) -> None:
    old = graph.output[0].name
    graph.output[0].name = name
    for node in graph.node:
        for names in (node.input, node.output):
            for i, value in enumerate(names):
                if value == old:
                    names[i] = name
