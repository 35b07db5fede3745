"""The simplest policy there is: every unit has a distribution over devices of its own."""

import numpy as np
import torch

from placement.learning.training import Drawn


class Independent:
    """Logits (U, D), which no softmax gives a chance where a unit may not be."""

    def __init__(self, environment):
        allowed = torch.from_numpy(environment.allowed)
        self.logits = torch.nn.Parameter(torch.zeros(allowed.shape))
        self._mask = torch.zeros(allowed.shape).masked_fill(~allowed, -1e9)

    def parameters(self):
        return [self.logits]

    def _log_probs(self):
        return torch.log_softmax(self.logits + self._mask, dim=1)

    def draw(self, num, generator):
        log_probs = self._log_probs()
        drawn = torch.multinomial(log_probs.exp(), num, replacement=True, generator=generator)
        devices = drawn.T.numpy()
        entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
        return Drawn(devices, self.log_chance(devices), entropy)

    def log_chance(self, devices):
        units = np.arange(devices.shape[1])
        return self._log_probs()[units, torch.from_numpy(devices)].sum(dim=1)

    def groups(self):
        return None

    def chances(self):
        return self._log_probs().exp().detach().double().numpy()
