"""How much is tried: in `make test` enough to notice what breaks, in `make fuzz` all there is.

`make test-hosts` tries all there is over Ray hosts: what `TRY_ALL` says.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "fresh" or bool(os.environ.get("TRY_ALL"))
# Much memory or long to train, and no kind of op that Inception v1 (ONNX) or v3 has not.
HEAVY = (
    *("alexnet", "alexnet:training", "vgg16", "vgg16:training", "resnet50:training"),
    *("onnx-alexnet", "onnx-vgg19", "onnx-zfnet512"),
)


def either(enough: T, everything: T) -> T:
    """What this run tries. Tests that ask are marked `thorough`, so that `make fuzz` finds them."""
    return everything if THOROUGH else enough


def light(names: Iterable[str]) -> list[str]:
    """Names of samples without the heaviest, which `make fuzz` has."""
    every = list(names)
    return either([name for name in every if name not in HEAVY], every)
