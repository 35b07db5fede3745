"""Policies by groups and sequence models: chances against sums over everything they could draw."""

import itertools
import math

import numpy as np
import pytest
import torch

from placement.learning.networks.grouping import GroupedPolicy, Grouper, Schedule
from placement.learning.networks.placing import Apart, InTurn
from placement.learning.networks.sequence import SequencePolicy
from placement.learning.planner_features import group_features, op_features, summed_features
from placement.learning.simulated import simulated
from placement.learning.training import one_torch_thread
from tests.instances import random_problem

NUM_GROUPS, NUM_DEVICES = 3, 2


@pytest.fixture(autouse=True)
def one_thread():
    with one_torch_thread():
        yield


def tiny(**more):
    problem = random_problem(1, num_ops=4, num_devices=NUM_DEVICES, **more)
    return simulated(problem)


def policy_of(environment, placing_kind=Apart, schedule=None, seed=0):
    torch.manual_seed(seed)
    num_groups, num_units = NUM_GROUPS, environment.num_units
    grouper = Grouper(5, 8, num_units, num_groups, own=schedule is None)
    anywhere = torch.ones(num_groups, environment.num_devices, dtype=torch.bool)
    num_features = 2 * num_groups + summed_features(environment).shape[1]
    placing = placing_kind(num_features, anywhere, hidden=8, own=True, preference=1.0)
    features = torch.randn(num_units, 5)
    return GroupedPolicy(environment, features, grouper, placing, schedule)


def placing_of(kind, allowed, **more):
    torch.manual_seed(3)
    placing = kind(4, allowed, hidden=6, own=True, preference=0.5, **more)
    return placing, torch.randn(len(allowed), 4)


@pytest.mark.parametrize("kind", [Apart, InTurn])
def test_the_chances_of_all_placements_of_groups_add_up_to_one(kind):
    allowed = torch.tensor([[True, True, True], [True, False, True], [False, True, True]])
    placing, rows = placing_of(kind, allowed, steepness=5.0, temperature=2.0)
    every = torch.tensor(list(itertools.product(range(3), repeat=3)))
    logs = placing.log_chance(rows, every)
    assert logs.exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    forbidden = (every[:, 1] == 1) | (every[:, 2] == 0)
    assert logs[forbidden].exp().sum().item() == 0.0


@pytest.mark.parametrize("kind", [Apart, InTurn])
def test_what_is_drawn_has_the_chance_that_is_said(kind):
    placing, rows = placing_of(kind, torch.ones(3, 2, dtype=torch.bool))
    placed = placing(rows, 4000, torch.Generator().manual_seed(0))
    again = placing.log_chance(rows, placed.devices)
    assert torch.allclose(placed.log_chance, again, atol=1e-5)
    for devices in itertools.product(range(2), repeat=3):
        share = (placed.devices == torch.tensor(devices)).all(dim=1).double().mean().item()
        chance = placing.log_chance(rows, torch.tensor([devices])).exp().item()
        assert share == pytest.approx(chance, abs=4 * math.sqrt(chance / 4000))
    shares = torch.stack([(placed.devices == d).double().mean(dim=0) for d in range(2)], dim=1)
    assert torch.allclose(placed.chance.double(), shares, atol=0.05)


def test_a_device_said_in_turn_depends_on_those_said_before():
    placing, rows = placing_of(InTurn, torch.ones(2, 2, dtype=torch.bool))
    with torch.no_grad():
        placing.said.weight.mul_(5.0)
    logs = placing.log_chance(rows, torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])).exp()
    zero_after = [(logs[i] / (logs[i] + logs[i + 1])).item() for i in (0, 2)]
    assert zero_after[0] != pytest.approx(zero_after[1], abs=1e-4)


@pytest.mark.parametrize("kind", [Apart, InTurn])
def test_gradients_are_those_of_finite_differences(kind):
    placing, rows = placing_of(kind, torch.ones(3, 2, dtype=torch.bool), steepness=2.0)
    placing, rows = placing.double(), rows.double()
    devices = torch.tensor([[0, 1, 1], [1, 1, 0]])
    for weights in placing.parameters():
        value = placing.log_chance(rows, devices).sum()
        placing.zero_grad()
        value.backward()
        with torch.no_grad():
            flat, step = weights.view(-1), 1e-6
            flat[0] += step
            more = placing.log_chance(rows, devices).sum().item()
            flat[0] -= 2 * step
            less = placing.log_chance(rows, devices).sum().item()
            flat[0] += step
        slope = weights.grad.view(-1)[0].item()
        assert slope == pytest.approx((more - less) / (2 * step), abs=1e-6)


def test_the_chance_of_a_placement_is_summed_over_all_groupings():
    environment = tiny()
    policy = policy_of(environment)
    drawn = policy.draw(5, torch.Generator().manual_seed(1))
    shares = torch.softmax(policy.grouper(policy.features), dim=1)
    rows = policy.soft_rows(shares)
    logs = torch.log_softmax(policy.placing.layers(rows) + policy.placing.table, dim=1)
    # Given the devices of groups, any grouping whose devices are the same counts.
    placed = policy.placing(rows, 5, torch.Generator().manual_seed(1))
    for n in range(5):
        of_group = placed.devices[n]
        chance = math.exp(sum(logs[g, of_group[g]].item() for g in range(NUM_GROUPS)))
        same = 0.0
        for groups in itertools.product(range(NUM_GROUPS), repeat=environment.num_units):
            if of_group[list(groups)].tolist() == drawn.devices[n].tolist():
                same += math.prod(shares[u, g].item() for u, g in enumerate(groups))
        assert drawn.log_chance[n].exp().item() == pytest.approx(chance * same, rel=1e-3)


def test_given_placements_are_as_likely_as_units_alone_would_draw_them():
    environment = tiny()
    policy = policy_of(environment)
    policy.draw(2, torch.Generator().manual_seed(1))
    chances = policy.chances()
    assert chances.sum(axis=1) == pytest.approx(1.0)
    given = np.array([[0, 1, 1, 0], [1, 1, 1, 1]])[:, : environment.num_units]
    logs = policy.log_chance(given)
    for row, log in zip(given, logs.tolist(), strict=True):
        alone = [chances[u, d] for u, d in enumerate(row)]
        assert math.exp(log) == pytest.approx(math.prod(alone), rel=1e-4)


def test_a_soft_description_of_hard_groups_is_the_description_of_groups():
    environment = tiny()
    policy = policy_of(environment)
    groups = np.array([0, 2, 0, 2])[: environment.num_units]
    shares = torch.nn.functional.one_hot(torch.from_numpy(groups), NUM_GROUPS).float()
    hard = group_features(environment, groups, NUM_GROUPS)
    assert policy.soft_rows(shares).numpy() == pytest.approx(hard, abs=1e-6)


def test_the_planners_draw_has_one_grouping_and_the_chance_of_groups_and_devices():
    environment = tiny()
    policy = policy_of(environment, InTurn, Schedule(noise=0.0, placing_until=1))
    generator = torch.Generator().manual_seed(2)
    logs = torch.log_softmax(policy.grouper(policy.features), dim=1)
    for _ in range(3):
        drawn = policy.draw(4, generator)
        # All four share a grouping: some grouping explains what is drawn, and its chance.
        placed = policy._placed
        explained = [
            groups
            for groups in itertools.product(range(NUM_GROUPS), repeat=environment.num_units)
            if (placed.devices[:, list(groups)].numpy() == drawn.devices).all()
        ]
        of_groups = [sum(logs[u, g].item() for u, g in enumerate(groups)) for groups in explained]
        rest = drawn.log_chance - placed.log_chance
        assert torch.allclose(rest, rest[0].expand(4), atol=1e-5)
        assert min(abs(rest[0].item() - log) for log in of_groups) < 1e-4
    assert policy.log_chance(drawn.devices) is None


def test_groups_are_placed_anew_only_until_the_schedule_says():
    policy = policy_of(tiny(), InTurn, Schedule(placing_until=2))
    generator, seen = torch.Generator().manual_seed(0), []
    for _ in range(5):
        policy.draw(8, generator)
        seen.append(policy._placed.devices.tolist())
    assert seen[0] != seen[1] and seen[1] == seen[2] == seen[4]


def test_units_go_to_their_fastest_device_where_their_groups_is_not_for_them():
    problem = random_problem(5, num_ops=12, num_devices=3, with_gaps=True)
    environment = simulated(problem)
    policy = policy_of(environment)
    drawn = policy.draw(50, torch.Generator().manual_seed(1))
    assert environment.allowed[np.arange(environment.num_units), drawn.devices].all()


def test_units_that_favour_a_placement_draw_most_of_it():
    environment = tiny()
    policy = policy_of(environment)
    with torch.no_grad():
        policy.placing.table.mul_(20.0)
    devices = np.array([0, 1, 1, 0])[: environment.num_units]
    policy.favour(devices, 50.0)
    drawn = policy.draw(20, torch.Generator().manual_seed(1))
    assert (drawn.devices == devices).mean() > 0.9


def test_a_sequence_policy_says_the_chance_of_what_it_drew():
    environment = tiny()
    allowed = torch.from_numpy(environment.allowed)
    torch.manual_seed(0)
    features = torch.from_numpy(op_features(environment)).float() / 10
    policy = SequencePolicy(features, InTurn(features.shape[1], allowed, hidden=8))
    drawn = policy.draw(6, torch.Generator().manual_seed(0))
    assert torch.allclose(policy.log_chance(drawn.devices), drawn.log_chance, atol=1e-5)
    assert policy.chances().sum(axis=1) == pytest.approx(1.0, abs=1e-5)
