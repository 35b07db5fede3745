"""AlexNet in the single-tower form of Krizhevsky, "One weird trick ...", arXiv 1404.5997."""

from collections.abc import Mapping

from torch import nn

from placement.zoo._parts import Built, classifier, head

SOURCE = "Krizhevsky 2014"
NUM_OPS = (20, 85)
SIZES = {"batch": 1, "size": 224}


def build(sizes: Mapping[str, int]) -> Built:
    features = nn.Sequential(
        nn.Conv2d(3, 64, 11, stride=4, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.AdaptiveAvgPool2d(6),
    )
    module = nn.Sequential()
    module.add_module("features", features)
    module.add_module("flatten", nn.Flatten())
    module.add_module("head", head(256 * 36))
    return classifier(module, sizes["batch"], sizes["size"])
