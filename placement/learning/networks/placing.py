"""Networks that place groups: one device each, apart from each other or one after another.

`Apart` decides for each group alone. `InTurn` is the sequence model with attention of Mirhoseini et
al. (ICML 2017, ICLR 2018): an LSTM reads the groups both ways, another says their devices one after
another, each time looking back at what was read (additive attention, Bahdanau et al. 2015).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import nn

from placement.learning.carrying import Axis, Carried, joined, plain

# Logits of devices that may not be.
NEVER = -1e9


class Placed(NamedTuple):
    """Devices (N, G) of groups, the logarithm of the chance of each row (N,), and the chance of
    each device (G, D), averaged over rows; both chances have gradients."""

    devices: torch.Tensor
    log_chance: torch.Tensor
    chance: torch.Tensor


class Placing(nn.Module):
    """Places groups by their features (G, F) where `allowed` (G, D) lets them be.

    Logits become `steepness * tanh(logits / temperature)` where the steepness is positive. `noise`
    shakes them by this share of their root mean square.
    """

    allowed: torch.Tensor
    table: nn.Parameter

    def __init__(self, allowed: torch.Tensor, steepness: float, temperature: float) -> None:
        super().__init__()
        self.register_buffer("allowed", allowed)
        self.steepness, self.temperature = steepness, temperature
        self.noise = 0.0

    @property
    def num_groups(self) -> int:
        return int(self.allowed.shape[0])

    @property
    def num_devices(self) -> int:
        return int(self.allowed.shape[1])

    @abstractmethod
    def axes(self, inputs: Axis, devices: Axis) -> dict[str, tuple[Axis | None, ...]]:
        """Where what depends on the problem stands in a file, but for the table."""

    def carried(self, inputs: Axis, devices: Axis, groups: Axis | None = None) -> Carried:
        """What goes to a file; the table does where groups have places there."""
        parameters, axes = dict(self.named_parameters()), self.axes(inputs, devices)
        if groups is None:
            del parameters["table"]
        else:
            axes["table"] = (groups, devices)
        return Carried(parameters, axes, devices)

    @abstractmethod
    def forward(self, rows: torch.Tensor, num: int, generator: torch.Generator) -> Placed:
        """Devices by chance, as many times as wanted."""

    @abstractmethod
    def log_chance(self, rows: torch.Tensor, devices: torch.Tensor) -> torch.Tensor:
        """Of given devices (N, G), without noise: (N,)."""

    def log_chances(
        self, logits: torch.Tensor, allowed: torch.Tensor, shaking: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Logarithms of chances (..., D) from logits, shaken by normal numbers of this shape."""
        logits = logits / self.temperature
        if self.steepness:
            logits = self.steepness * torch.tanh(logits)
        if shaking is not None and self.noise:
            size = logits.detach().square().mean(dim=(0, -1), keepdim=True).sqrt()
            logits = logits + self.noise * size * shaking
        return torch.log_softmax(logits.masked_fill(~allowed, NEVER), dim=-1)


class Apart(Placing):
    """Two layers, and with `own` a table of what each group prefers."""

    def __init__(
        self,
        num_features: int,
        allowed: torch.Tensor,
        *,
        hidden: int,
        own: bool = False,
        preference: float = 0.0,
        steepness: float = 0.0,
        temperature: float = 1.0,
    ) -> None:
        super().__init__(allowed, steepness, temperature)
        self.layers = nn.Sequential(
            nn.Linear(num_features, hidden), nn.ReLU(), nn.Linear(hidden, self.num_devices)
        )
        self.table = preferences(self.num_groups, self.num_devices, own, preference)

    def axes(self, inputs: Axis, devices: Axis) -> dict[str, tuple[Axis | None, ...]]:
        return {
            "layers.0.weight": (None, inputs),
            "layers.2.weight": (devices, None),
            "layers.2.bias": (devices,),
        }

    def forward(self, rows: torch.Tensor, num: int, generator: torch.Generator) -> Placed:
        logits = self._logits(rows)[None]
        shaking = torch.randn(logits.shape, generator=generator) if self.noise else None
        logs = self.log_chances(logits, self.allowed, shaking)[0]
        chance = logs.exp()
        devices = torch.multinomial(chance.detach(), num, replacement=True, generator=generator).T
        return Placed(devices, picked(logs.expand(num, -1, -1), devices), chance)

    def log_chance(self, rows: torch.Tensor, devices: torch.Tensor) -> torch.Tensor:
        logs = self.log_chances(self._logits(rows), self.allowed)
        return picked(logs.expand(len(devices), -1, -1), devices)

    def _logits(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layers(rows) + self.table
        return logits


class InTurn(Placing):
    """The sequence model: its width is that of the decoder, twice that of each reading LSTM."""

    def __init__(
        self,
        num_features: int,
        allowed: torch.Tensor,
        *,
        hidden: int,
        own: bool = False,
        preference: float = 0.0,
        steepness: float = 0.0,
        temperature: float = 1.0,
    ) -> None:
        super().__init__(allowed, steepness, temperature)
        self.reader = nn.LSTM(num_features, hidden // 2, bidirectional=True)
        self.writer = nn.LSTM(hidden, hidden, batch_first=True)
        # The last row stands before the first group.
        self.said = nn.Embedding(self.num_devices + 1, hidden)
        self.key, self.query = (nn.Linear(hidden, hidden, bias=False) for _ in range(2))
        self.score = nn.Linear(hidden, 1, bias=False)
        self.head = nn.Linear(2 * hidden, self.num_devices, bias=False)
        self.table = preferences(self.num_groups, self.num_devices, own, preference)

    def axes(self, inputs: Axis, devices: Axis) -> dict[str, tuple[Axis | None, ...]]:
        return {
            "reader.weight_ih_l0": (None, inputs),
            "reader.weight_ih_l0_reverse": (None, inputs),
            "said.weight": (joined(devices, plain(1)), None),
            "head.weight": (devices, None),
        }

    def forward(self, rows: torch.Tensor, num: int, generator: torch.Generator) -> Placed:
        # What is drawn needs no gradient, and given all of it the rest is one pass.
        shape = (num, self.num_groups, self.num_devices)
        shaking = torch.randn(shape, generator=generator) if self.noise else None
        with torch.no_grad():
            devices = self._drawn(rows, num, generator, shaking)
        logs = self._given(rows, devices, shaking)
        return Placed(devices, picked(logs, devices), logs.exp().mean(dim=0))

    def log_chance(self, rows: torch.Tensor, devices: torch.Tensor) -> torch.Tensor:
        return picked(self._given(rows, devices, None), devices)

    def _read(
        self, rows: torch.Tensor, num: int
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """What attention looks at (G, H), and the writer's first state."""
        read, (last, cell) = self.reader(rows)
        state = (last.reshape(1, 1, -1).repeat(1, num, 1), cell.reshape(1, 1, -1).repeat(1, num, 1))
        return self.key(read), state

    def _logits(self, written: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """From states (N, T, H) of the writer."""
        looks = self.score(torch.tanh(self.query(written)[:, :, None] + memory))[..., 0]
        seen = torch.softmax(looks, dim=-1) @ memory
        logits: torch.Tensor = self.head(torch.cat([written, seen], dim=-1))
        return logits

    def _drawn(
        self,
        rows: torch.Tensor,
        num: int,
        generator: torch.Generator,
        shaking: torch.Tensor | None,
    ) -> torch.Tensor:
        memory, state = self._read(rows, num)
        said = torch.full((num, 1), self.num_devices)
        found = []
        for g in range(self.num_groups):
            written, state = self.writer(self.said(said), state)
            logits = self._logits(written, memory) + self.table[g]
            shaken = None if shaking is None else shaking[:, g : g + 1]
            logs = self.log_chances(logits, self.allowed[g], shaken)
            said = torch.multinomial(logs[:, 0].exp(), 1, generator=generator)
            found.append(said)
        return torch.cat(found, dim=1)

    def _given(
        self, rows: torch.Tensor, devices: torch.Tensor, shaking: torch.Tensor | None
    ) -> torch.Tensor:
        """Logarithms of chances (N, G, D), each given the devices before it."""
        memory, state = self._read(rows, len(devices))
        first = torch.full((len(devices), 1), self.num_devices)
        written, _ = self.writer(self.said(torch.cat([first, devices[:, :-1]], dim=1)), state)
        logits = self._logits(written, memory) + self.table
        return self.log_chances(logits, self.allowed, shaking)


def preferences(num_groups: int, num_devices: int, own: bool, preference: float) -> nn.Parameter:
    """Logits (G, D) of the groups' `own`, if they have any.

    At first group g prefers device g modulo D: groups that are all alike learn nothing from
    placements that are only given.
    """
    table = torch.zeros(num_groups, num_devices)
    table[torch.arange(num_groups), torch.arange(num_groups) % num_devices] = preference
    return nn.Parameter(table, requires_grad=own)


def picked(logs: torch.Tensor, devices: torch.Tensor) -> torch.Tensor:
    """Sums (N,) over the logarithms (N, G, D) of what was picked (N, G)."""
    return logs.gather(2, devices[..., None])[..., 0].sum(dim=1)
