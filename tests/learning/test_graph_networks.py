"""Graph convolutions and clusters' means, against dense matrices and finite differences."""

import numpy as np
import pytest
import torch

from placement.learning.environment import Edges
from placement.learning.networks.graph import GraphNetwork, Neighbours, linear, perceptron
from placement.learning.networks.hsdag import pooled

EDGES = Edges(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), np.ones(4))


def by_matrix():
    """D^-1/2 (A + I) D^-1/2 with A symmetric, for EDGES and a fifth node without an edge."""
    a = np.eye(5)
    a[EDGES.source, EDGES.target] = a[EDGES.target, EDGES.source] = 1
    degree = a.sum(axis=1)
    return torch.tensor(a / np.sqrt(np.outer(degree, degree)), dtype=torch.float32)


def test_messages_are_the_normalised_adjacency_matrix():
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(Neighbours(EDGES, 5).heard(x), by_matrix() @ x, atol=1e-6)


def test_a_network_is_its_layers_one_after_another():
    generator = torch.Generator().manual_seed(1)
    network = GraphNetwork((3, 4, 2), generator)
    x = torch.randn(5, 3, generator=generator)
    first, second = network.layers
    hidden = (by_matrix() @ first(x)).relu()
    expected = (by_matrix() @ second(hidden)).relu()
    assert torch.allclose(network(x, Neighbours(EDGES, 5)), expected, atol=1e-6)


def test_weights_come_from_the_generator_alone_and_keep_to_their_bound():
    one, other = (linear(30, 20, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(one.weight, other.weight)
    assert float(one.weight.detach().abs().max()) <= (6 / 50) ** 0.5
    assert not one.bias.any()
    before = torch.random.get_rng_state()
    assert len(perceptron((3, 4, 5), torch.Generator().manual_seed(0))) == 3
    assert torch.equal(torch.random.get_rng_state(), before)


def test_means_of_clusters_are_weighted_and_have_the_gradients_of_their_scores():
    described = torch.tensor([[1.0, 0.0], [3.0, 2.0], [5.0, 7.0]], dtype=torch.float64)
    cluster = torch.tensor([0, 0, 1])
    score = torch.tensor([0.25, 0.75, 0.5], dtype=torch.float64, requires_grad=True)
    assert pooled(described, cluster, score).tolist() == [
        pytest.approx([2.5, 1.5], rel=1e-4),
        pytest.approx([5.0, 7.0], rel=1e-4),
    ]
    assert torch.autograd.gradcheck(lambda s: pooled(described, cluster, s), (score,))
