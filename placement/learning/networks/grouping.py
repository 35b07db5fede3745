"""A policy that groups units by a fully connected network and places the groups.

The grouper has two linear maps and a softmax per unit, as in the hierarchical planner (Mirhoseini
et al., ICLR 2018). Units that may not be where their group is go to their fastest device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.carrying import Axis, Carried, devices, groups, joined
from placement.learning.environment import Environment
from placement.learning.networks.placing import Placed, Placing
from placement.learning.planner_features import (
    group_features,
    scaled_axis,
    summed_axis,
    summed_features,
)
from placement.learning.training import Drawn

# Keeps logarithms of chances finite.
LEAST_CHANCE = 1e-8


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """By updates: until when logits are shaken, by which share of their size, and until when
    groups are placed anew, not where they were placed last."""

    noise: float = 0.5
    noise_until: int = 750
    placing_until: int = 500


class Grouper(nn.Module):
    """Logits of groups (U, G) from features (U, F); with `own` each unit learns some of its own."""

    def __init__(self, num_features: int, hidden: int, num_units: int, num_groups: int, own: bool):
        super().__init__()
        self.first = nn.Linear(num_features, hidden, bias=False)
        self.last = nn.Linear(hidden, num_groups, bias=False)
        self.bends = own
        self.table = nn.Parameter(torch.zeros(num_units, num_groups), requires_grad=own)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        between = self.first(features)
        logits: torch.Tensor = self.last(torch.relu(between) if self.bends else between)
        return logits + self.table


class GroupedPolicy:
    """Draws groups of units and devices of groups.

    With `schedule` it is the planner's own: one grouping for all placements of a draw, and the
    chance of a placement is that of its groups and their devices. Without, every placement has a
    grouping of its own, groups are described by the share that units have in them, and the chance
    of a placement is summed over all groupings that give the same devices.
    """

    def __init__(
        self,
        environment: Environment,
        features: torch.Tensor,
        grouper: Grouper,
        placing: Placing,
        schedule: Schedule | None = None,
    ) -> None:
        self.environment, self.features = environment, features
        self.grouper, self.placing, self.schedule = grouper, placing, schedule
        edges = environment.edges
        self._source, self._target = torch.from_numpy(edges.source), torch.from_numpy(edges.target)
        self._summed = torch.from_numpy(summed_features(environment)).float()
        self._allowed = torch.from_numpy(environment.allowed)
        fastest = np.where(environment.allowed, environment.unit_s, np.inf).argmin(axis=1)
        self._fastest = torch.from_numpy(fastest)
        self._step = 0
        self._placed: Placed | None = None
        self._shares = self._chance = torch.zeros(0)
        self._groups: Ints = np.zeros(environment.num_units, dtype=np.int64)

    def parameters(self) -> list[nn.Parameter]:
        both = [*self.grouper.parameters(), *self.placing.parameters()]
        return [weights for weights in both if weights.requires_grad]

    def carried(self) -> Carried:
        """What goes to a file: all but the logits that units learn of their own."""
        by_speed = devices(self.environment)
        by_device = groups(self.placing.num_groups, by_speed)
        described = joined(by_device, by_device, summed_axis(self.environment))
        placing = self.placing.carried(described, by_speed, by_device)
        axes: dict[str, tuple[Axis | None, ...]] = {
            "grouper.first.weight": (None, scaled_axis(self.environment)),
            "grouper.last.weight": (by_device, None),
        }
        parameters: dict[str, torch.Tensor] = {
            "grouper.first.weight": self.grouper.first.weight,
            "grouper.last.weight": self.grouper.last.weight,
        }
        for name, parameter in placing.parameters.items():
            parameters[f"placing.{name}"] = parameter
        for name, its in placing.axes.items():
            axes[f"placing.{name}"] = its
        return Carried(parameters, axes, by_speed)

    def favour(self, devices: Ints, strength: float) -> None:
        """Let every unit prefer the groups that prefer its device (U,) by this much."""
        liked = self.placing.table.argmax(dim=1) == torch.from_numpy(devices)[:, None]
        with torch.no_grad():
            self.grouper.table.add_(strength * liked)

    def draw(self, num: int, generator: torch.Generator) -> Drawn:
        if self.schedule is not None:
            return self._planned(num, generator, self.schedule)
        self._shares = torch.softmax(self.grouper(self.features), dim=1)
        placed = self.placing(self.soft_rows(self._shares), num, generator)
        self._chance = self._shares @ placed.chance
        self._groups = self._shares.detach().argmax(dim=1).numpy()
        groups = torch.multinomial(
            self._shares.detach(), num, replacement=True, generator=generator
        )
        devices = placed.devices.gather(1, groups.T)
        log_chance = placed.log_chance + self._log_given_groups(placed.devices, devices)
        entropy = -(self._chance * (self._chance + LEAST_CHANCE).log()).sum(dim=1).mean()
        return Drawn(self._fitting(devices), log_chance, entropy)

    def log_chance(self, devices: Ints) -> torch.Tensor | None:
        """As if each unit drew group and device for itself; nothing under the planner's own."""
        if self.schedule is not None:
            return None
        logs = (self._chance + LEAST_CHANCE).log()
        given = torch.from_numpy(devices)
        return logs.expand(len(given), -1, -1).gather(2, given[..., None])[..., 0].sum(dim=1)

    def groups(self) -> Ints:
        """The likeliest group of each unit (U,) at the last draw."""
        return self._groups

    def chances(self) -> Floats:
        """Of each unit on each device (U, D) at the last draw."""
        return self._chance.detach().double().numpy()

    def soft_rows(self, shares: torch.Tensor) -> torch.Tensor:
        """Features of groups (G, 2 G + T + 25) in which units have shares (U, G)."""
        between = shares[self._source].T @ shares[self._target]
        rows = torch.cat([between, between.T, shares.T @ self._summed], dim=1)
        return rows / (rows.amax(dim=1, keepdim=True) + 1.0)

    def _planned(self, num: int, generator: torch.Generator, schedule: Schedule) -> Drawn:
        noise = schedule.noise if self._step <= schedule.noise_until else 0.0
        logits = self.grouper(self.features)
        if noise:
            size = logits.detach().square().mean().sqrt()
            logits = logits + noise * size * torch.randn(logits.shape, generator=generator)
        logs = torch.log_softmax(logits, dim=1)
        groups = torch.multinomial(logs.detach().exp(), 1, generator=generator)
        self._groups = groups[:, 0].numpy()
        described = group_features(self.environment, groups[:, 0].numpy(), self.placing.num_groups)
        rows = torch.from_numpy(described).float()
        self.placing.noise = noise
        if self._placed is None or self._step < schedule.placing_until:
            self._placed = self.placing(rows, num, generator)
        else:
            log_chance = self.placing.log_chance(rows, self._placed.devices)
            self._placed = self._placed._replace(log_chance=log_chance)
        self._step += 1
        self._chance = self._placed.chance[groups[:, 0]]
        devices = self._placed.devices[:, groups[:, 0]]
        log_chance = self._placed.log_chance + logs.gather(1, groups).sum()
        entropy = -(logs.exp() * logs).sum(dim=1).mean()
        return Drawn(self._fitting(devices), log_chance, entropy)

    def _log_given_groups(self, of_group: torch.Tensor, devices: torch.Tensor) -> torch.Tensor:
        """Logarithms (N,) of the chance that units get their devices (N, U) given the groups'."""
        chosen = nn.functional.one_hot(of_group, self.placing.num_devices).to(self._shares.dtype)
        chance = self._shares @ chosen
        logs = (chance.gather(2, devices[..., None])[..., 0] + LEAST_CHANCE).log()
        return logs.sum(dim=1)

    def _fitting(self, devices: torch.Tensor) -> Ints:
        may = self._allowed[torch.arange(self._allowed.shape[0]), devices]
        found: Ints = torch.where(may, devices, self._fastest).numpy()
        return found
