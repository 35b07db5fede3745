"""Networks drawn by chance from the blocks that networks are built of: nobody chose or met them.

`drawn-N` is the network of seed N. One or two towers over images or rows, each of some stages of
blocks of one kind (residual, inverted with squeeze and excitation, branches, dense, attention,
mixer, gated dilated convolutions, recurrent cells) with widths and depths by chance, joined at the
end. A step takes some milliseconds to some tens of them.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks._fidelity.networks import Network

NAME = re.compile(r"drawn-(\d+)")


def drawn(seed: int, folder: Path) -> Path:
    """The ONNX file of network `drawn-<seed>`."""
    chance = np.random.default_rng(seed)
    size = int(chance.choice((96, 128, 160)))
    net = Network(f"drawn-{seed}", (1, 3, size, size), seed)
    tower = (_image_tower, _row_tower, _hybrid_tower)
    ends = [
        tower[chance.integers(len(tower))](net, chance, size)
        for _ in range(int(chance.integers(1, 3)))
    ]
    names, width = [name for name, _ in ends], sum(width for _, width in ends)
    joined = net.op("Concat", *names, axis=1) if len(names) > 1 else names[0]
    return net.write(net.dense(joined, width, int(chance.integers(10, 1000))), folder)


def _image_tower(net: Network, chance: np.random.Generator, size: int) -> tuple[str, int]:
    x, width, _ = _stages(net, chance, size, int(chance.integers(2, 5)))
    return net.op("Flatten", net.op("GlobalAveragePool", x)), width


def _row_tower(net: Network, chance: np.random.Generator, size: int) -> tuple[str, int]:
    """Patches of the image as rows, and blocks over them."""
    patch = int(chance.choice((8, 16)))
    width = 64 * int(chance.integers(2, 6))
    x = net.op(
        "Conv",
        "input",
        net.weight(width, 3, patch, patch),
        kernel_shape=[patch, patch],
        strides=[patch, patch],
    )
    return _over_rows(net, chance, x, (size // patch) ** 2, width)


def _hybrid_tower(net: Network, chance: np.random.Generator, size: int) -> tuple[str, int]:
    x, width, size = _stages(net, chance, size, 2)
    made = 64 * int(chance.integers(2, 5))
    return _over_rows(net, chance, net.conv(x, made, width, 1), size * size, made)


def _stages(net: Network, chance: np.random.Generator, size: int, num: int) -> tuple[str, int, int]:
    """Stages of convolutions, each half as high and wide: the last values, channels and side."""
    width = 8 * int(chance.integers(2, 6))
    x = net.op("Relu", net.conv("input", width, 3, 3, stride=2))
    size //= 2
    for _ in range(num):
        block = IMAGE_BLOCKS[chance.integers(len(IMAGE_BLOCKS))]
        for _ in range(int(chance.integers(1, 4))):
            x, width = block(net, chance, x, width)
        made = 16 * int(chance.integers(width // 16 + 1, width // 8 + 2))
        x, width, size = net.op("Relu", net.conv(x, made, width, 3, stride=2)), made, -(-size // 2)
    return x, width, size


def _residual(net: Network, chance: np.random.Generator, x: str, width: int) -> tuple[str, int]:
    inner = net.op("Relu", net.conv(x, width // 2, width, 1))
    inner = net.op("Relu", net.conv(inner, width // 2, width // 2, 3))
    return net.op("Relu", net.op("Add", x, net.conv(inner, width, width // 2, 1))), width


def _inverted(net: Network, chance: np.random.Generator, x: str, width: int) -> tuple[str, int]:
    """An inverted residual: wide, convolved channel by channel, squeezed and excited, narrow."""
    wide, size = 4 * width, int(chance.choice((3, 5)))
    inner = net.op("HardSwish", net.conv(x, wide, width, 1))
    inner = net.op("HardSwish", net.conv(inner, wide, wide, size, group=wide))
    squeezed = net.op("Relu", net.conv(net.op("GlobalAveragePool", inner), width, wide, 1))
    excited = net.op("HardSigmoid", net.conv(squeezed, wide, width, 1))
    narrow = net.conv(net.op("Mul", inner, excited), width, wide, 1)
    return net.op("Add", x, narrow), width


def _branches(net: Network, chance: np.random.Generator, x: str, width: int) -> tuple[str, int]:
    """Side by side: convolutions of several sizes and what a pooling leaves, concatenated."""
    own, ends = 8 * int(chance.integers(2, 7)), []
    for size in (1, 3, 5, 3)[: int(chance.integers(2, 5))]:
        inner = net.op("Relu", net.conv(x, own, width, 1))
        ends.append(net.op("Relu", net.conv(inner, own, own, size)) if size > 1 else inner)
    pooled = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    ends.append(net.op("Relu", net.conv(pooled, own, width, 1)))
    return net.op("Concat", *ends, axis=1), own * len(ends)


def _dense(net: Network, chance: np.random.Generator, x: str, width: int) -> tuple[str, int]:
    grown = 8 * int(chance.integers(2, 5))
    inner = net.op("Relu", net.conv(x, 2 * grown, width, 1))
    new = net.op("Relu", net.conv(inner, grown, 2 * grown, 3))
    return net.op("Concat", x, new, axis=1), width + grown


IMAGE_BLOCKS = (_residual, _inverted, _branches, _dense)


def _over_rows(
    net: Network, chance: np.random.Generator, x: str, length: int, width: int
) -> tuple[str, int]:
    """Blocks over the positions of an image as rows, and their mean."""
    rows = net.op("Reshape", x, net.sizes(1, width, length))
    rows = net.op("Transpose", rows, perm=[0, 2, 1])
    block = ROW_BLOCKS[chance.integers(len(ROW_BLOCKS))]
    for _ in range(int(chance.integers(2, 6))):
        rows = block(net, chance, rows, (length, width))
    mean = net.op("ReduceMean", rows, net.sizes(1), keepdims=0)
    return mean, width


def _attention(net: Network, chance: np.random.Generator, x: str, shape: tuple[int, int]) -> str:
    length, width = shape
    x = net.op("Add", x, net.attention(net.norm(x, width), length, width, width // 64))
    return net.op("Add", x, _perceptron(net, net.norm(x, width), width, 4 * width))


def _mixer(net: Network, chance: np.random.Generator, x: str, shape: tuple[int, int]) -> str:
    """Perceptrons across the rows, then within each."""
    length, width = shape
    turned = net.op("Transpose", net.norm(x, width), perm=[0, 2, 1])
    mixed = _perceptron(net, turned, length, 2 * length)
    x = net.op("Add", x, net.op("Transpose", mixed, perm=[0, 2, 1]))
    return net.op("Add", x, _perceptron(net, net.norm(x, width), width, 2 * width))


def _gated(net: Network, chance: np.random.Generator, x: str, shape: tuple[int, int]) -> str:
    """Two dilated convolutions along the rows, one the gate of the other."""
    _, width = shape
    step = int(chance.choice((1, 2, 4)))
    turned = net.op("Transpose", x, perm=[0, 2, 1])
    value, gate = (
        net.op(
            kind,
            net.op(
                "Conv",
                turned,
                net.weight(width, width, 3),
                net.weight(width),
                kernel_shape=[3],
                dilations=[step],
                pads=[step, step],
            ),
        )
        for kind in ("Tanh", "Sigmoid")
    )
    return net.op("Add", x, net.op("Transpose", net.op("Mul", value, gate), perm=[0, 2, 1]))


def _recurrent(net: Network, chance: np.random.Generator, x: str, shape: tuple[int, int]) -> str:
    length, width = shape
    steps = net.op("Transpose", x, perm=[1, 0, 2])
    made = net.op(
        "GRU",
        steps,
        net.weight(1, 3 * width, width),
        net.weight(1, 3 * width, width),
        hidden_size=width,
    )
    return net.op("Add", x, net.op("Reshape", made, net.sizes(1, length, width)))


def _perceptron(net: Network, x: str, width: int, inner: int) -> str:
    return net.dense(net.op("Gelu", net.dense(x, width, inner)), inner, width)


RowBlock = Callable[[Network, np.random.Generator, str, tuple[int, int]], str]
ROW_BLOCKS: tuple[RowBlock, ...] = (_attention, _mixer, _gated, _recurrent)
