"""Seeded random weights of sane scale in place of constant ones.

Activations should neither vanish nor explode, and outputs should differ between inputs, so that
comparing them means something. Convolutions and matrix products get uniform weights with variance
gain^2 / fan-in (compare He et al., "Delving Deep into Rectifiers", 2015). The second half of every
filter is the first half negated: its sum is zero, so the mean that rectified inputs share cancels
out; without that all images look alike after a few layers. Batch normalisation gets scale and
variance near 1, shift and mean near 0, and so do the Mul and Add that some exporters put behind it.
What flows into a sum of branches is scaled down so that the variance stays: by 1 / sqrt(n) where
all n summands come out of weights, by 1/4 beside an identity (compare Zhang et al., "Fixup", 2019).

Each weight has its own generator, seeded by its name, so that order does not matter; float32 from
PCG64 is the same on every platform.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

from placement.formats.onnx.checks.walk import refill
from placement.formats.onnx.infer import infer
from placement.formats.onnx.values import UNKNOWN, Value, graph_values

GAIN_AFTER_RELU = 1.7  # about 1 / sqrt(variance of a rectified normal)
GAIN_AFTER_AVERAGE = 4.0  # averaging a whole image leaves little variance
GAIN_OF_IMAGES = 1.75
BESIDE_IDENTITY = 0.25
SPREAD = 0.05
SHIFT = 0.02

Floats = NDArray[np.float32]
_PRODUCTS = ("Conv", "Gemm", "MatMul")
_NORMS = ("BatchNormalization", "Mul", "Add")
_VIEWS = ("Unsqueeze", "Reshape", "Identity", "Squeeze")


def fill_weights(model: onnx.ModelProto, seed: int) -> None:
    """Replace every float32 weight of a prepared model, in place.

    ConstantOfShape nodes that made weights become initializers. Constants of other types (shapes,
    axes) keep their values.
    """
    graph = model.graph
    net = _Network.of(graph, graph_values(infer(model, graph.name)[0].graph))
    weights = {t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    made = {
        node.output[0]
        for node in graph.node
        if node.op_type == "ConstantOfShape" and net.shape(node.output[0]) is not None
    }
    kept = [node for node in graph.node if node.output[0] not in made]
    used = {value for node in kept for value in node.input}
    stored = [t for t in graph.initializer if t.name in used - weights]
    refill(graph.node, kept)
    refill(graph.initializer, stored)
    for name in sorted((weights | made) & used):
        array = net.weight(name, seed)
        graph.initializer.add(
            name=name,
            dims=array.shape,
            data_type=onnx.TensorProto.FLOAT,
            raw_data=array.astype("<f4", copy=False).tobytes(),
        )


@dataclass(frozen=True)
class _Network:
    """Who writes and who first reads each value."""

    values: Mapping[str, Value]
    writer: Mapping[str, onnx.NodeProto]
    reader: Mapping[str, tuple[onnx.NodeProto, int]]
    share: Mapping[str, float]

    @staticmethod
    def of(graph: onnx.GraphProto, values: Mapping[str, Value]) -> "_Network":
        writer = {value: node for node in graph.node for value in node.output}
        reader: dict[str, tuple[onnx.NodeProto, int]] = {}
        for node in graph.node:
            for i, value in enumerate(node.input):
                reader.setdefault(value, (node, i))
        return _Network(values, writer, reader, _shares(graph, writer))

    def shape(self, value: str) -> tuple[int, ...] | None:
        return self.values.get(value, UNKNOWN).shape

    def weight(self, name: str, seed: int) -> Floats:
        """One weight, by what the op that reads it does with it."""
        shape = self.shape(name) or ()
        node, position = self.reader[name]
        while node.op_type in _VIEWS and node.output[0] in self.reader:
            node, position = self.reader[node.output[0]]
        share = self.share.get(node.output[0], 1.0)
        if node.op_type in _PRODUCTS and position == 1 and len(shape) >= 2:
            return _filters(name, shape, node, share * self._gain(node), seed)
        if node.op_type == "BatchNormalization" and position == 1:
            return _uniform(name, shape, share, SPREAD * share, seed)
        if node.op_type == "Mul" or (node.op_type == "BatchNormalization" and position == 4):
            return _uniform(name, shape, 1.0, SPREAD, seed)
        return _uniform(name, shape, 0.0, SHIFT, seed)

    def _gain(self, product: onnx.NodeProto) -> float:
        """By what lies between the product and the one before it."""
        value, averaged = product.input[0], False
        while value in self.writer:
            node = self.writer[value]
            if node.op_type in _PRODUCTS:
                return 1.0
            averaged |= node.op_type == "GlobalAveragePool"
            averaged |= node.op_type == "AveragePool" and product.op_type != "Conv"
            if averaged:
                return GAIN_AFTER_AVERAGE
            if node.op_type == "Relu":
                return GAIN_AFTER_RELU
            value = node.input[0]
        return GAIN_OF_IMAGES


def _shares(graph: onnx.GraphProto, writer: Mapping[str, onnx.NodeProto]) -> dict[str, float]:
    """Factor for what a node writes, by its first output, where that flows into a sum."""
    shares = {}
    for node in graph.node:
        if node.op_type == "Sum":
            summands = [
                value
                for value in node.input
                if value in writer and writer[value].op_type in (*_PRODUCTS, *_NORMS)
            ]
            whole = len(summands) == len(node.input)
            factor = 1 / math.sqrt(len(summands)) if whole else BESIDE_IDENTITY
            shares.update(dict.fromkeys(summands, factor))
    return shares


def _filters(
    name: str, shape: tuple[int, ...], node: onnx.NodeProto, gain: float, seed: int
) -> Floats:
    """Weights of a product; those that make one output element sum to zero."""
    rows_first = node.op_type == "Conv" or any(a.name == "transB" and a.i for a in node.attribute)
    rows = shape[0] if rows_first else math.prod(shape[:-2]) * shape[-1]
    fan_in = math.prod(shape) // max(1, rows)
    half = fan_in // 2
    array = np.empty((rows, fan_in), dtype=np.float32)
    drawn = _uniform(name, (rows, fan_in - half), 0.0, gain / math.sqrt(max(1, fan_in)), seed)
    array[:, : fan_in - half] = drawn
    np.negative(drawn[:, :half], out=array[:, fan_in - half :])
    if rows_first:
        return array.reshape(shape)
    return array.reshape(*shape[:-2], shape[-1], shape[-2]).swapaxes(-1, -2)


def _uniform(name: str, shape: tuple[int, ...], mean: float, deviation: float, seed: int) -> Floats:
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))
    array: Floats = generator.random(shape, dtype=np.float32)
    array -= np.float32(0.5)
    array *= np.float32(deviation * math.sqrt(12.0))
    if mean:
        array += np.float32(mean)
    return array
