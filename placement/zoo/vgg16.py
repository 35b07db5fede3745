"""VGG-16: Simonyan and Zisserman, "Very deep convolutional networks ...", ICLR 2015."""

from collections.abc import Mapping

from torch import nn

from placement.zoo._parts import Built, classifier, head

SOURCE = "Simonyan and Zisserman 2015"
NUM_OPS = (38, 137)
SIZES = {"batch": 1, "size": 224}
# Convolutions per stage, and their channels.
STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))


def build(sizes: Mapping[str, int]) -> Built:
    module, channels = nn.Sequential(), 3
    for number, (count, wide) in enumerate(STAGES, 1):
        stage = nn.Sequential()
        for _ in range(count):
            stage.append(nn.Conv2d(channels, wide, 3, padding=1)).append(nn.ReLU())
            channels = wide
        module.add_module(f"stage{number}", stage.append(nn.MaxPool2d(2)))
    module.add_module("pool", nn.AdaptiveAvgPool2d(7))
    module.add_module("flatten", nn.Flatten())
    module.add_module("head", head(512 * 49))
    return classifier(module, sizes["batch"], sizes["size"])
