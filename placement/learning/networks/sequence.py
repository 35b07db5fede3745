"""A policy that places units one after another: the sequence model over co-location groups.

Mirhoseini et al., "Device placement optimization with reinforcement learning", ICML 2017.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.carrying import Axis, Carried
from placement.learning.networks.placing import InTurn
from placement.learning.training import Drawn


class SequencePolicy:
    """Reads features of units (U, F) and says their devices; the chance of each is exact."""

    def __init__(self, features: torch.Tensor, placing: InTurn) -> None:
        self.features, self.placing = features, placing
        self._chance = torch.zeros(0)

    def parameters(self) -> list[nn.Parameter]:
        return [weights for weights in self.placing.parameters() if weights.requires_grad]

    def carried(self, inputs: Axis, devices: Axis) -> Carried:
        """What goes to a file: all but what units prefer of their own."""
        return self.placing.carried(inputs, devices)

    def draw(self, num: int, generator: torch.Generator) -> Drawn:
        placed = self.placing(self.features, num, generator)
        chance = self._chance = placed.chance
        entropy = -(chance * (chance + 1e-8).log()).sum(dim=1).mean()
        return Drawn(placed.devices.numpy(), placed.log_chance, entropy)

    def chances(self) -> Floats:
        """Of each unit on each device (U, D), averaged over the last draw."""
        return self._chance.detach().double().numpy()

    def log_chance(self, devices: Ints) -> torch.Tensor | None:
        return self.placing.log_chance(self.features, torch.from_numpy(devices))

    def groups(self) -> Ints:
        """The units themselves, which are groups of ops."""
        return np.arange(len(self.features))
