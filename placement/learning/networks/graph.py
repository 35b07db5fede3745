"""Graph convolutions by plain sums over edges: Kipf and Welling, ICLR 2017."""

import itertools
import math

import torch
from torch import Tensor, nn

from placement.learning.environment import Edges


class Neighbours:
    """Who hears whom: every edge both ways and each node itself, with the weights of a GCN.

    A message from u to v counts 1 / sqrt((degree of u + 1) (degree of v + 1)).
    """

    def __init__(self, edges: Edges, num_nodes: int) -> None:
        source, target = torch.from_numpy(edges.source), torch.from_numpy(edges.target)
        own = torch.arange(num_nodes)
        self.speaker = torch.cat([source, target, own])
        self.hearer = torch.cat([target, source, own])
        degree = torch.bincount(self.hearer, minlength=num_nodes).float()
        self.weight = (degree[self.speaker] * degree[self.hearer]).rsqrt()[:, None]

    def heard(self, x: Tensor) -> Tensor:
        """The weighted sum of what each node's neighbours say (N, H)."""
        return torch.zeros_like(x).index_add(0, self.hearer, x[self.speaker] * self.weight)


class GraphNetwork(nn.Module):
    """Layers of linear maps and sums over neighbours, each followed by a ReLU."""

    def __init__(self, sizes: tuple[int, ...], generator: torch.Generator) -> None:
        super().__init__()
        pairs = itertools.pairwise(sizes)
        self.layers = nn.ModuleList(linear(a, b, generator) for a, b in pairs)

    def forward(self, x: Tensor, neighbours: Neighbours) -> Tensor:
        for layer in self.layers:
            x = neighbours.heard(layer(x)).relu()
        return x


def linear(num_in: int, num_out: int, generator: torch.Generator) -> nn.Linear:
    """A linear map with weights by Glorot and Bengio, 2010, from a generator of its own."""
    layer = nn.Linear(num_in, num_out, device="meta").to_empty(device="cpu")
    bound = math.sqrt(6.0 / (num_in + num_out))
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.zero_()
    return layer


def perceptron(sizes: tuple[int, ...], generator: torch.Generator) -> nn.Sequential:
    """Linear maps with a ReLU between them."""
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [linear(a, b, generator), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
