"""Well-known networks built in code with seeded weights: for inference, and as training steps.

`resnet50` is the network, `resnet50:training` a step of training it. Sizes such as the batch are
set like symbolic dimensions (`--dim batch=4`).
"""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from placement import zoo
from placement.core.model import Model, Sample, SymbolicDim
from placement.core.registry import Registry
from placement.loaders.base import SampleSource

_NETWORKS = Registry(zoo.__name__, zoo.__path__, "build", "network")
TRAINING = ":training"


class Zoo(SampleSource):
    """Opens the networks of `placement.zoo`; `load_sample` takes a seed for their weights."""

    def samples(self) -> tuple[Sample, ...]:
        found = []
        for name in _NETWORKS.names():
            said = _constants(name)
            about = f"{said['SOURCE']}, built in code, random weights"
            inference, training = said["NUM_OPS"]
            found.append(Sample(name, inference, about))
            found.append(Sample(f"{name}{TRAINING}", training, f"{about}, one training step"))
        return tuple(found)

    def load_sample(self, name: str, dims: Mapping[str, int], seed: int = 0) -> Model:
        from placement.formats.torch.zoo import open_sample

        return open_sample(name, dims, seed, self.symbolic_dims(name))

    def symbolic_dims(self, name: str) -> tuple[SymbolicDim, ...]:
        from placement.formats.torch.zoo import sizes_of

        return tuple(
            SymbolicDim(key, size, f"a size of {name}") for key, size in sizes_of(name).items()
        )


@cache
def _constants(name: str) -> dict[str, Any]:
    """What a network's file says of itself, read without importing it and so the framework."""
    file = ast.parse((Path(zoo.__path__[0]) / f"{name}.py").read_text(encoding="utf-8"))
    told = (line for line in file.body if isinstance(line, ast.Assign))
    return {
        target.id: ast.literal_eval(line.value)
        for line in told
        for target in line.targets
        if isinstance(target, ast.Name) and target.id in ("SOURCE", "NUM_OPS")
    }


SAMPLES = Zoo()
