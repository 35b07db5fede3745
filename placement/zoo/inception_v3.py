"""Inception-V3 without its auxiliary classifier: Szegedy et al., "Rethinking the Inception
architecture for computer vision", CVPR 2016."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from placement.zoo._parts import NUM_CLASSES, Built, classifier

SOURCE = "Szegedy et al. 2016"
NUM_OPS = (313, 1088)
SIZES = {"batch": 1, "size": 299}


class Conv(nn.Module):
    """Convolution, normalisation, ReLU."""

    def __init__(self, channels: int, wide: int, kernel: int | tuple[int, int], **how: int) -> None:
        super().__init__()
        padding = how.get("padding", 0)
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        pads = (sides[0] // 2, sides[1] // 2) if padding else (0, 0)
        self.conv = nn.Conv2d(channels, wide, sides, how.get("stride", 1), pads, bias=False)
        self.norm = nn.BatchNorm2d(wide, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.norm(self.conv(x)))


class Branches(nn.Module):
    """Several ways side by side, their channels joined."""

    def __init__(self, **ways: nn.Module) -> None:
        super().__init__()
        for name, way in ways.items():
            self.add_module(name, way)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([way(x) for way in self.children()], 1)


def row(channels: int, *steps: tuple[int, int | tuple[int, int]]) -> nn.Sequential:
    """Convolutions one after another that keep the size."""
    made = nn.Sequential()
    for wide, kernel in steps:
        made.append(Conv(channels, wide, kernel, padding=1))
        channels = wide
    return made


def pooled(channels: int, wide: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, padding=1), Conv(channels, wide, 1))


def mixed_35(channels: int, pool: int) -> Branches:
    return Branches(
        one=Conv(channels, 64, 1),
        five=row(channels, (48, 1), (64, 5)),
        three=row(channels, (64, 1), (96, 3), (96, 3)),
        pool=pooled(channels, pool),
    )


def mixed_17(channels: int, inner: int) -> Branches:
    wide, high = (1, 7), (7, 1)
    return Branches(
        one=Conv(channels, 192, 1),
        seven=row(channels, (inner, 1), (inner, wide), (192, high)),
        twice=row(channels, (inner, 1), (inner, high), (inner, wide), (inner, high), (192, wide)),
        pool=pooled(channels, 192),
    )


def mixed_8(channels: int) -> Branches:
    def split(wide: int) -> Branches:
        return Branches(a=row(wide, (384, (1, 3))), b=row(wide, (384, (3, 1))))

    return Branches(
        one=Conv(channels, 320, 1),
        three=nn.Sequential(Conv(channels, 384, 1), split(384)),
        twice=nn.Sequential(*row(channels, (448, 1), (384, 3)), split(384)),
        pool=pooled(channels, 192),
    )


def reduced(**ways: nn.Module) -> Branches:
    """A block that halves the size."""
    return Branches(**ways, pool=nn.MaxPool2d(3, 2))


def build(sizes: Mapping[str, int]) -> Built:
    module = nn.Sequential()
    stem = nn.Sequential(
        Conv(3, 32, 3, stride=2),
        Conv(32, 32, 3),
        Conv(32, 64, 3, padding=1),
        nn.MaxPool2d(3, 2),
        Conv(64, 80, 1),
        Conv(80, 192, 3),
        nn.MaxPool2d(3, 2),
    )
    module.add_module("stem", stem)
    blocks = {
        "mixed5b": mixed_35(192, 32),
        "mixed5c": mixed_35(256, 64),
        "mixed5d": mixed_35(288, 64),
        "mixed6a": reduced(
            three=Conv(288, 384, 3, stride=2),
            twice=nn.Sequential(*row(288, (64, 1), (96, 3)), Conv(96, 96, 3, stride=2)),
        ),
        "mixed6b": mixed_17(768, 128),
        "mixed6c": mixed_17(768, 160),
        "mixed6d": mixed_17(768, 160),
        "mixed6e": mixed_17(768, 192),
        "mixed7a": reduced(
            three=nn.Sequential(Conv(768, 192, 1), Conv(192, 320, 3, stride=2)),
            seven=nn.Sequential(
                *row(768, (192, 1), (192, (1, 7)), (192, (7, 1))), Conv(192, 192, 3, stride=2)
            ),
        ),
        "mixed7b": mixed_8(1280),
        "mixed7c": mixed_8(2048),
    }
    for name, block in blocks.items():
        module.add_module(name, block)
    module.add_module("average", nn.AdaptiveAvgPool2d(1))
    module.add_module("flatten", nn.Flatten())
    module.add_module("head", nn.Linear(2048, NUM_CLASSES))
    return classifier(module, sizes["batch"], sizes["size"])
