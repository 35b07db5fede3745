"""Three small models with named nodes: a CNN with a skip, a block with attention, a fallback."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(name, nodes, inputs, outputs, weights, folder: Path) -> Path:
    """Write a model; nodes are (op, inputs, output, attributes), named after their output."""
    graph = helper.make_graph(
        [
            helper.make_node(op, read, [wrote], name=wrote, **attributes)
            for op, read, wrote, attributes in nodes
        ],
        name,
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in outputs],
        [numpy_helper.from_array(array, n) for n, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def weights(**shapes):
    generator = np.random.default_rng(0)
    return {
        name: (generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        for name, shape in shapes.items()
    }


def cnn(folder: Path) -> Path:
    padded = {"pads": [1, 1, 1, 1]}
    return save(
        "cnn",
        [
            ("Conv", ["x", "w1"], "conv1", padded),
            ("Relu", ["conv1"], "relu1", {}),
            ("Conv", ["relu1", "w2"], "conv2", padded),
            ("Relu", ["conv2"], "relu2", {}),
            ("Add", ["relu1", "relu2"], "sum", {}),
            ("GlobalAveragePool", ["sum"], "pooled", {}),
            ("Flatten", ["pooled"], "flat", {}),
            ("MatMul", ["flat", "fc"], "y", {}),
        ],
        [("x", [1, 3, 16, 16])],
        [("y", [1, 10])],
        weights(w1=(8, 3, 3, 3), w2=(8, 8, 3, 3), fc=(8, 10)),
        folder,
    )


def attention(folder: Path) -> Path:
    return save(
        "attention",
        [
            ("MatMul", ["x", "wq"], "q", {}),
            ("MatMul", ["x", "wk"], "k", {}),
            ("MatMul", ["x", "wv"], "v", {}),
            ("Transpose", ["k"], "kt", {"perm": [0, 2, 1]}),
            ("MatMul", ["q", "kt"], "scores", {}),
            ("Softmax", ["scores"], "shares", {"axis": -1}),
            ("MatMul", ["shares", "v"], "mixed", {}),
            ("Add", ["mixed", "x"], "y", {}),
        ],
        [("x", [1, 12, 32])],
        [("y", [1, 12, 32])],
        weights(wq=(32, 32), wk=(32, 32), wv=(32, 32)),
        folder,
    )


def with_fallback(folder: Path) -> Path:
    """The op in the middle has no WebGPU kernel."""
    return save(
        "with_fallback",
        [
            ("MatMul", ["x", "w1"], "before", {}),
            ("Hardmax", ["before"], "lacking", {"axis": -1}),
            ("MatMul", ["lacking", "w2"], "y", {}),
        ],
        [("x", [8, 64])],
        [("y", [8, 16])],
        weights(w1=(64, 64), w2=(64, 16)),
        folder,
    )


MODELS = {"cnn": cnn, "attention": attention}
