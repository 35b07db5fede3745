"""The policy of HSDAG: chances that are chances, clusters that hold, steps that begin anew."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from placement.learning.environment import Edges
from placement.learning.networks.hsdag import HsdagPolicy, Shape
from placement.learning.simulated import simulated
from tests.instances import random_problem

PAIRS = ((0, 1), (0, 2), (1, 3), (2, 3))


def environment_of(allowed):
    some = simulated(random_problem(0, num_ops=4, num_devices=3))
    source, target = (np.array([p[i] for p in PAIRS], dtype=np.int64) for i in (0, 1))
    edges = Edges(source, target, np.ones(len(PAIRS)))
    return replace(some, allowed=np.array(allowed, dtype=np.bool_), edges=edges)


ANYWHERE = environment_of([[True] * 3] * 4)


def policy_for(environment, **shape):
    generator = torch.Generator().manual_seed(5)
    features = torch.randn(environment.num_units, 6, generator=generator)
    return HsdagPolicy(environment, features, Shape(hidden=8, **shape), generator)


def draw(policy, num, seed=0):
    return policy.draw(num, torch.Generator().manual_seed(seed))


def test_chances_of_all_placements_sum_to_one_and_are_those_of_the_drawn():
    policy = policy_for(ANYWHERE)
    drawn = draw(policy, 50)
    assert torch.allclose(drawn.log_chance, policy.log_chance(drawn.devices))
    every = np.array(list(itertools.product(range(3), repeat=4)))
    chances = policy.log_chance(every).detach().exp()
    assert float(chances.sum()) == pytest.approx(1.0)
    # Units choose by themselves, so the mean entropy of a choice is that of all by their number.
    assert float(drawn.entropy.detach()) == pytest.approx(
        -float((chances * chances.log()).sum()) / 4
    )


def test_what_is_drawn_is_drawn_by_its_chance():
    policy = policy_for(ANYWHERE)
    drawn = draw(policy, 20_000)
    counts = np.bincount(drawn.devices @ 3 ** np.arange(3, -1, -1), minlength=81)
    every = np.array(list(itertools.product(range(3), repeat=4)))
    chances = policy.log_chance(every).detach().exp().numpy()
    assert counts / 20_000 == pytest.approx(chances, abs=0.004)


@pytest.mark.parametrize("residual", [True, False])
def test_no_unit_is_drawn_where_it_may_not_be(residual):
    allowed = [[True, False, True], [True, True, False], [True, True, True], [False, False, True]]
    drawn = draw(policy_for(environment_of(allowed), residual=residual), 500)
    for unit in range(4):
        assert set(drawn.devices[:, unit]) <= set(np.flatnonzero(allowed[unit]))
    assert torch.isfinite(drawn.log_chance).all()
    assert torch.isfinite(drawn.entropy)


def test_without_a_residual_a_cluster_decides_for_all_of_its_units():
    policy = policy_for(ANYWHERE, residual=False, per_step=1)
    drawn = draw(policy, 30)
    assert policy.log_chance(drawn.devices) is None
    # Every unit has an edge, so that no cluster has fewer than two units.
    assert all(min(map(row.tolist().count, row)) >= 2 for row in drawn.devices)


def test_descriptions_change_from_step_to_step_and_begin_anew():
    policy = policy_for(ANYWHERE, steps=2)
    one, two, three = (draw(policy, 8).log_chance.detach() for _ in range(3))
    assert not torch.allclose(one, two)
    assert torch.allclose(one, three)


@pytest.mark.parametrize("residual", [True, False])
def test_all_of_the_network_learns_from_what_was_drawn(residual):
    policy = policy_for(ANYWHERE, residual=residual)
    drawn = draw(policy, 8)
    (drawn.log_chance * torch.arange(8)).sum().backward()
    for name, parameter in policy.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name
