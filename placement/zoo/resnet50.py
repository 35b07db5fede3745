"""ResNet-50: He, Zhang, Ren and Sun, "Deep residual learning ...", CVPR 2016.

The stride is in the 3 x 3 convolution, as in most published weights.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from placement.zoo._parts import NUM_CLASSES, Built, classifier

SOURCE = "He et al. 2016"
NUM_OPS = (175, 578)
SIZES = {"batch": 1, "size": 224}
# Blocks per stage, their inner channels, and the stride of the first.
STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))


class Bottleneck(nn.Module):
    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        wide = 4 * inner
        self.conv1, self.norm1 = nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(inner)
        self.conv3, self.norm3 = nn.Conv2d(inner, wide, 1, bias=False), nn.BatchNorm2d(wide)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != wide:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, wide, 1, stride, bias=False), nn.BatchNorm2d(wide)
            )

    def forward(self, x: Tensor) -> Tensor:
        made = torch.relu(self.norm1(self.conv1(x)))
        made = torch.relu(self.norm2(self.conv2(made)))
        return torch.relu(self.norm3(self.conv3(made)) + self.shortcut(x))


def build(sizes: Mapping[str, int]) -> Built:
    module = nn.Sequential()
    module.add_module("stem", nn.Conv2d(3, 64, 7, 2, padding=3, bias=False))
    module.add_module("norm", nn.BatchNorm2d(64))
    module.add_module("relu", nn.ReLU())
    module.add_module("pool", nn.MaxPool2d(3, 2, padding=1))
    channels = 64
    for number, (count, inner, stride) in enumerate(STAGES, 1):
        stage = nn.Sequential()
        for i in range(count):
            stage.append(Bottleneck(channels, inner, stride if i == 0 else 1))
            channels = 4 * inner
        module.add_module(f"stage{number}", stage)
    module.add_module("average", nn.AdaptiveAvgPool2d(1))
    module.add_module("flatten", nn.Flatten())
    module.add_module("head", nn.Linear(channels, NUM_CLASSES))
    return classifier(module, sizes["batch"], sizes["size"])
