"""Clusters from a graph's own edges, and a device for each: Duan et al., NeurIPS 2024 (HSDAG).

A graph network describes units, edges between likely partners score high, every unit keeps its best
edge, and what hangs together is a cluster. Here one pass parses the graph: repeated until nothing
changes, as the authors' code does, a connected graph becomes one cluster.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.carrying import Axis, Carried
from placement.learning.environment import Environment
from placement.learning.networks.graph import GraphNetwork, Neighbours, linear, perceptron
from placement.learning.networks.masked import NEVER, chances
from placement.learning.sampling import draw, masks_of
from placement.learning.training import Drawn

# Added to scores where they divide, since sigmoids may become 0.
LEAST_SCORE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of the network, and which of the paper's choices it makes.

    With `residual` each unit chooses its device, from what is known of itself and of its cluster;
    without it a cluster chooses for all its units. Descriptions grow by those of their cluster from
    one step to the next and begin anew after `steps`. A step draws `per_step` placements, 0 for
    all that are asked for.
    """

    hidden: int = 128
    layers: int = 2
    residual: bool = True
    steps: int = 20
    per_step: int = 0


class HsdagPolicy(nn.Module):
    """The policy; `features` (U, F) describe the units of the environment."""

    def __init__(
        self, environment: Environment, features: Tensor, shape: Shape, generator: torch.Generator
    ) -> None:
        super().__init__()
        self._shape, self._features = shape, features
        self._environment = environment
        self._neighbours = Neighbours(environment.edges, environment.num_units)
        self._source = torch.from_numpy(environment.edges.source)
        self._target = torch.from_numpy(environment.edges.target)
        hidden, num_devices = shape.hidden, environment.num_devices
        self.enter = linear(features.shape[1], hidden, generator)
        self.graph = GraphNetwork((hidden,) * (shape.layers + 1), generator)
        self.score = perceptron((hidden, hidden, 1), generator)
        self.choose = perceptron(
            (hidden * (2 if shape.residual else 1), hidden, num_devices), generator
        )
        with torch.no_grad():
            for weight in list(self.choose.parameters())[-2:]:
                # So that every device is about as likely at first.
                weight.mul_(0.1)
        self._state = torch.zeros(environment.num_units, hidden)
        self._step = 0
        self._logits: Tensor | None = None
        self._likely: Tensor | None = None
        self._cluster: Ints = np.zeros(environment.num_units, dtype=np.int64)

    def carried(self, inputs: Axis, devices: Axis) -> Carried:
        """What goes to a file, and where the inputs stand there."""
        axes = {
            "enter.weight": (None, inputs),
            "choose.2.weight": (devices, None),
            "choose.2.bias": (devices,),
        }
        return Carried(dict(self.named_parameters()), axes, devices)

    def draw(self, num: int, generator: torch.Generator) -> Drawn:
        """Placements (N, U) by chance, in as many steps as the shape says."""
        per_step = self._shape.per_step or num
        parts = [
            self._draw(min(per_step, num - begin), generator) for begin in range(0, num, per_step)
        ]
        return Drawn(
            np.concatenate([part.devices for part in parts]),
            torch.cat([part.log_chance for part in parts]),
            torch.stack([part.entropy for part in parts]).mean(),
        )

    def log_chance(self, devices: Ints) -> Tensor | None:
        """Of placements (N, U) by the last step's chances; None where clusters choose, which give
        other placements than their own no chance."""
        if self._logits is None:
            return None
        return chances(self._logits, masks_of(self._environment, devices), devices).log_chance

    def groups(self) -> Ints:
        """The cluster of each unit (U,) in the last step."""
        return self._cluster

    def chances(self) -> Floats | None:
        """Of each unit on each device (U, D) in the last step."""
        likely = self._likely
        if self._logits is not None:
            allowed = torch.from_numpy(self._environment.allowed)
            likely = self._logits.detach().masked_fill(~allowed, NEVER).softmax(dim=1)
        return None if likely is None else likely.double().numpy()

    def _draw(self, num: int, generator: torch.Generator) -> Drawn:
        if self._step == self._shape.steps:
            self._step, self._state = 0, torch.zeros_like(self._state)
        described = self.graph(self.enter(self._features) + self._state, self._neighbours)
        cluster, score = self._parse(described)
        self._cluster = cluster.numpy()
        of_cluster = pooled(described, cluster, score)
        joined = of_cluster[cluster]
        self._step += 1
        self._state = _unit_norm(self._state + joined.detach())
        if self._shape.residual:
            self._logits = self.choose(torch.cat([described, joined], dim=1))
            return self._by_unit(self._logits, num, generator)
        return self._by_cluster(self.choose(of_cluster), cluster.numpy(), num, generator)

    def _by_unit(self, logits: Tensor, num: int, generator: torch.Generator) -> Drawn:
        uniforms = torch.rand(num, len(logits), generator=generator, dtype=torch.float64)
        sample = draw(self._environment, logits.detach().double().numpy(), uniforms.numpy())
        return Drawn(sample.devices, *chances(logits, sample.masks, sample.devices))

    def _by_cluster(
        self, logits: Tensor, cluster: Ints, num: int, generator: torch.Generator
    ) -> Drawn:
        joint = np.ones((len(logits), self._environment.num_devices), dtype=np.bool_)
        np.logical_and.at(joint, cluster, self._environment.allowed)
        likely = logits.detach().masked_fill(~torch.from_numpy(joint), NEVER).softmax(dim=1)
        self._likely = likely[torch.from_numpy(cluster)]
        drawn = torch.multinomial(likely, num, replacement=True, generator=generator).T.numpy()
        return Drawn(np.ascontiguousarray(drawn[:, cluster]), *chances(logits, joint[None], drawn))

    def _parse(self, described: Tensor) -> tuple[Tensor, Tensor]:
        """The cluster of each unit (U,), and the score of the edge that it keeps, 1 where none."""
        from placement.learning.compiled.parsing import parsed

        scores = self.score(described[self._source] * described[self._target])[:, 0].sigmoid()
        by_edge = scores.detach().numpy().astype(np.float64)
        edges, allowed = self._environment.edges, self._environment.allowed
        cluster, kept = parsed(edges.source, edges.target, by_edge, allowed)
        scores = torch.cat([scores, torch.ones(1)])
        return torch.from_numpy(cluster), scores[torch.from_numpy(kept)]


def pooled(described: Tensor, cluster: Tensor, score: Tensor) -> Tensor:
    """The mean of each cluster's units (C, H), weighted by their scores, which learn from it."""
    num = int(cluster.max()) + 1
    sums = described.new_zeros(num, described.shape[1])
    sums = sums.index_add(0, cluster, described * score[:, None])
    return sums / score.new_zeros(num).index_add(0, cluster, score + LEAST_SCORE)[:, None]


def _unit_norm(x: Tensor) -> Tensor:
    """Rows scaled to a root mean square of 1, so that what is added up does not grow."""
    return x / (x.square().mean(dim=1, keepdim=True).sqrt() + 1e-6)
