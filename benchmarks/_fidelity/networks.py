"""Networks that no calibration sees, written as ONNX files with weights by chance.

A small BERT, a ViT, a ConvNeXt, a RegNet, a MobileNet v2 and four towers of convolutions: the same
kernels and shapes as their models, fewer of them, so that a step takes some milliseconds.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from placement.core.costs import Floats

OPSET, IR_VERSION = 20, 10


class Network:
    """A graph that grows op by op; every method returns the name of what its op makes."""

    def __init__(self, name: str, shape: tuple[int, ...], seed: int = 0) -> None:
        self.name, self.shape = name, shape
        self._chance = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def op(self, kind: str, *inputs: str, num: int = 1, **attributes: object) -> str:
        made = f"{kind.lower()}_{len(self._nodes)}"
        names = [made] if num == 1 else [f"{made}_{i}" for i in range(num)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, name=made, **attributes))
        return names[0]

    def weight(self, *shape: int) -> str:
        scale = 1.0 / np.sqrt(max(1, np.prod(shape[1:]) if len(shape) > 1 else 1))
        return self._kept(scale * self._chance.standard_normal(shape))

    def ones(self, *shape: int) -> str:
        return self._kept(np.ones(shape))

    def sizes(self, *values: int) -> str:
        name = f"s{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.array(values, dtype=np.int64), name))
        return name

    def _kept(self, values: Floats) -> str:
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def conv(self, x: str, made: int, read: int, size: int, stride: int = 1, group: int = 1) -> str:
        return self.op(
            "Conv",
            x,
            self.weight(made, read // group, size, size),
            self.weight(made),
            kernel_shape=[size, size],
            strides=[stride, stride],
            pads=[size // 2] * 4,
            group=group,
        )

    def dense(self, x: str, read: int, made: int) -> str:
        return self.op("Add", self.op("MatMul", x, self.weight(read, made)), self.weight(made))

    def norm(self, x: str, width: int) -> str:
        return self.op("LayerNormalization", x, self.ones(width), self.weight(width), axis=-1)

    def attention(self, x: str, length: int, width: int, heads: int) -> str:
        apart, back = self.sizes(1, length, heads, width // heads), self.sizes(1, length, width)
        q, k, v = (
            self.op(
                "Transpose", self.op("Reshape", self.dense(x, width, width), apart), perm=turned
            )
            for turned in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = self.op("Mul", self.op("MatMul", q, k), self._kept(np.array(width**-0.5)))
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        merged = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), back)
        return self.dense(merged, width, width)

    def pooled(self, x: str, width: int, made: int = 10) -> str:
        flat = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.dense(flat, width, made)

    def write(self, output: str, folder: Path) -> Path:
        graph = helper.make_graph(
            self._nodes,
            self.name,
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            self._weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = IR_VERSION
        path = folder / f"{self.name}.onnx"
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        return path


def _transformer(net: Network, x: str, depth: int, length: int, width: int, heads: int) -> str:
    for _ in range(depth):
        x = net.op("Add", x, net.attention(net.norm(x, width), length, width, heads))
        inner = net.op("Gelu", net.dense(net.norm(x, width), width, 4 * width))
        x = net.op("Add", x, net.dense(inner, 4 * width, width))
    return x


def bert(folder: Path) -> Path:
    net = Network("small-bert", (1, 64, 256))
    return net.write(_transformer(net, "input", 4, 64, 256, 4), folder)


def vit(folder: Path) -> Path:
    net = Network("small-vit", (1, 3, 224, 224))
    patches = net.op(
        "Conv", "input", net.weight(192, 3, 16, 16), kernel_shape=[16, 16], strides=[16, 16]
    )
    rows = net.op("Transpose", net.op("Reshape", patches, net.sizes(1, 192, 196)), perm=[0, 2, 1])
    return net.write(_transformer(net, rows, 4, 196, 192, 3), folder)


def convnext(folder: Path) -> Path:
    net = Network("small-convnext", (1, 3, 128, 128))
    width = 48
    x = net.op("Conv", "input", net.weight(width, 3, 4, 4), kernel_shape=[4, 4], strides=[4, 4])
    for stage in range(3):
        for _ in range(2):
            rows = net.op("Transpose", net.conv(x, width, width, 7, group=width), perm=[0, 2, 3, 1])
            inner = net.op("Gelu", net.dense(net.norm(rows, width), width, 4 * width))
            back = net.op("Transpose", net.dense(inner, 4 * width, width), perm=[0, 3, 1, 2])
            x = net.op("Add", x, back)
        if stage < 2:
            x, width = net.conv(x, 2 * width, width, 3, stride=2), 2 * width
    return net.write(net.pooled(x, width), folder)


def regnet(folder: Path) -> Path:
    net = Network("small-regnet", (1, 3, 128, 128))
    x, width = net.op("Relu", net.conv("input", 32, 3, 3, stride=2)), 32
    for made in (64, 128, 256):
        for number in range(2):
            stride = 2 if number == 0 else 1
            inner = net.op("Relu", net.conv(x, made, width, 1))
            inner = net.op("Relu", net.conv(inner, made, made, 3, stride, group=made // 16))
            inner = net.conv(inner, made, made, 1)
            beside = net.conv(x, made, width, 1, stride) if number == 0 else x
            x, width = net.op("Relu", net.op("Add", inner, beside)), made
    return net.write(net.pooled(x, width), folder)


def mobilenet(folder: Path) -> Path:
    net = Network("small-mobilenet", (1, 3, 160, 160))
    low, high = net._kept(np.array(0.0)), net._kept(np.array(6.0))
    x, width = net.op("Clip", net.conv("input", 16, 3, 3, stride=2), low, high), 16
    for made, stride, num in ((24, 2, 2), (32, 2, 3), (64, 2, 3), (96, 1, 2)):
        for number in range(num):
            inner = net.op("Clip", net.conv(x, 6 * width, width, 1), low, high)
            step = stride if number == 0 else 1
            inner = net.conv(inner, 6 * width, 6 * width, 3, step, group=6 * width)
            inner = net.conv(net.op("Clip", inner, low, high), made, 6 * width, 1)
            x = net.op("Add", x, inner) if number else inner
            width = made
    return net.write(net.pooled(x, width), folder)


def towers(folder: Path) -> Path:
    net = Network("four-towers", (1, 3, 96, 96))
    stem = net.op("Relu", net.conv("input", 32, 3, 3, stride=2))
    ends = []
    for size in (1, 3, 3, 5):
        x = stem
        for _ in range(5):
            x = net.op("Relu", net.conv(x, 32, 32, size))
        ends.append(x)
    joined = net.op("Concat", *ends, axis=1)
    return net.write(net.pooled(net.op("Relu", net.conv(joined, 64, 128, 1)), 64), folder)


WRITTEN: Mapping[str, Callable[[Path], Path]] = {
    "small-bert": bert,
    "small-vit": vit,
    "small-convnext": convnext,
    "small-regnet": regnet,
    "small-mobilenet": mobilenet,
    "four-towers": towers,
}
