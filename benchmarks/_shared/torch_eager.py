"""A training step as plain PyTorch runs it: what a person's own loop does, for comparison."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from placement.core.machine import Device
from placement.loaders.zoo import TRAINING
from profiling.backends._torch.run import use_threads
from profiling.backends._torch.teams import let_go
from profiling.backends.base import Program
from profiling.devices.cores import usable_cores

# What `placement.formats.torch.optimisers` takes where nothing is said.
LEARNING_RATE = 0.01


class EagerStep(Program):
    """A network of the zoo, its loss and SGD, on one device's cores or on all of them for None."""

    def __init__(self, sample: str, dims: Mapping[str, int], device: Device | None) -> None:
        name = sample.removesuffix(TRAINING)
        found = importlib.import_module(f"placement.zoo.{name}")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            built = found.build({**found.SIZES, **dims})
        self._module, self._inputs, self._targets, self._loss = built
        self._module.train()
        self._optimiser = torch.optim.SGD(self._module.parameters(), lr=LEARNING_RATE)
        self._cores = len(usable_cores()) if device is None else device.cores
        self.rest = let_go if self._cores > 1 else None
        self._value: Any = None

    def run(self, segment: int) -> None:
        use_threads(self._cores)
        self._optimiser.zero_grad(set_to_none=True)
        made = self._module(*self._inputs)
        loss: Callable[..., Any] | None = self._loss
        self._value = made if loss is None else loss(made, *self._targets)
        self._value.backward()
        self._optimiser.step()

    def outputs(self) -> dict[str, Any]:
        return {"loss": self._value.detach().numpy().copy()}

    def close(self) -> None:
        del self._module, self._optimiser
