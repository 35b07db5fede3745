"""Drawing under a joint memory limit: never beyond it, and with the chances that are counted."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from placement.learning.environment import coarser
from placement.learning.networks.masked import chances
from placement.learning.sampling import draw, in_turn, masks_of
from placement.learning.simulated import simulated
from placement.learning.training import at_random, changed
from tests.instances import random_problem


def environment(sizes, limits, seed=0):
    """One unit for each size and a device for each limit, all of them allowed."""
    problem = random_problem(seed, num_ops=len(sizes), num_devices=len(limits))
    return replace(
        simulated(problem),
        size_bytes=np.array(sizes, dtype=float),
        limit_bytes=np.array(limits, dtype=float),
    )


def uniforms(num, env, seed=0):
    return np.random.default_rng(seed).random((num, env.num_units))


def held(env, devices):
    return [np.bincount(row, env.size_bytes, env.num_devices) for row in devices]


def test_memory_is_never_exceeded_where_room_is_left():
    for seed in range(10):
        chance = np.random.default_rng(seed)
        sizes = chance.integers(1, 9, size=14)
        # A fifth more than an even share, and no unit is larger than what that leaves in the end.
        env = environment(sizes, [1.2 * sizes.sum() / 3 + 3] * 3, seed)
        sample = draw(env, chance.normal(size=(14, 3)) * 3, uniforms(200, env, seed))
        assert (np.array(held(env, sample.devices)) <= env.limit_bytes).all()
        assert np.isfinite(env.values_s(sample.devices)).all()


def test_masks_are_the_devices_with_room_by_hand():
    """Of sizes 2, 3 and 1 the second chooses first, then the first, then the last."""
    env = environment([2, 3, 1], [4, 3])
    assert in_turn(env).tolist() == [1, 0, 2]
    masks = masks_of(env, np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]]))
    both, first, second = [True, True], [True, False], [False, True]
    assert masks[0].tolist() == [second, both, both]
    assert masks[1].tolist() == [first, both, first]
    # The last placement is beyond the limit: its first unit was to be on the other device.
    assert masks[2].tolist() == [second, both, second]


def test_where_nothing_has_room_all_that_is_allowed_counts():
    env = environment([5, 5, 5], [6, 6])
    env.allowed[2] = [False, True]
    sample = draw(env, np.zeros((3, 2)), uniforms(50, env))
    # The unit with one device chooses first, the next has the other, the last has none.
    assert in_turn(env).tolist() == [2, 0, 1]
    for masks in sample.masks.tolist():
        assert masks == [[True, False], [True, True], [False, True]]
    assert np.isinf(env.values_s(sample.devices)).all()


@pytest.mark.parametrize("limits", [[100, 100], [6, 7], [9, 5], [4, 4]])
def test_chances_of_all_placements_add_up_to_one_and_are_those_of_draws(limits):
    env = environment([1, 2, 3, 2], limits)
    logits = np.random.default_rng(1).normal(size=(4, 2))
    every = np.array(list(itertools.product(range(2), repeat=4)))
    counted = chances(torch.from_numpy(logits), masks_of(env, every), every)
    chance = counted.log_chance.exp().numpy()
    assert chance.sum() == pytest.approx(1.0)
    sample = draw(env, logits, uniforms(40_000, env))
    drawn = np.bincount(sample.devices @ [8, 4, 2, 1], minlength=16) / 40_000
    # Five standard deviations of a share of 40 000 draws.
    assert drawn == pytest.approx(chance, abs=0.0125)
    assert not drawn[chance == 0].any()
    again = masks_of(env, sample.devices)
    assert np.array_equal(again, sample.masks)


def test_chances_by_the_definition():
    """Each choice is a softmax over the devices of its mask; the entropy is that of a choice."""
    env = environment([1, 2, 3, 2], [6, 7, 2])
    logits = np.random.default_rng(2).normal(size=(5, 4, 3))
    sample = draw(env, logits, uniforms(5, env))
    counted = chances(torch.from_numpy(logits), sample.masks, sample.devices)
    entropies = []
    for n in range(5):
        log_chance = 0.0
        for u in range(4):
            weights = np.exp(logits[n, u]) * sample.masks[n, u]
            p = weights / weights.sum()
            log_chance += np.log(p[sample.devices[n, u]])
            entropies.append(-sum(x * np.log(x) for x in p if x > 0))
        assert counted.log_chance[n].item() == pytest.approx(log_chance)
    assert counted.entropy.item() == pytest.approx(np.mean(entropies))


def test_gradients_are_numbers_where_masks_leave_one_device():
    env = environment([3, 3], [3, 3])
    logits = torch.zeros((2, 2), requires_grad=True)
    sample = draw(env, logits.detach().numpy(), uniforms(6, env))
    counted = chances(logits, sample.masks, sample.devices)
    (counted.log_chance.mean() + counted.entropy).backward()
    assert torch.isfinite(logits.grad).all()
    # The second unit has no choice, so that its logits do not matter.
    assert not logits.grad[in_turn(env)[1]].any()


def test_without_a_limit_one_mask_is_that_of_all():
    env = environment([1, 2, 3], [100, 100])
    env.allowed[1, 0] = False
    assert not env.is_tight
    sample = draw(env, np.zeros((3, 2)), uniforms(1_000, env))
    assert sample.masks.tolist() == [env.allowed.tolist()]
    assert masks_of(env, sample.devices).shape == (1, 3, 2)
    assert set(sample.devices[:, 1].tolist()) == {1}
    assert sample.devices[:, [0, 2]].mean() == pytest.approx(0.5, abs=0.06)


def test_draws_of_clusters_keep_to_memory_too():
    env = environment([1, 1, 2, 2, 3, 3], [8, 8])
    coarse = coarser(env, np.array([0, 0, 1, 1, 2, 2]))
    sample = draw(coarse, np.array([[9.0, 0.0]] * 3), uniforms(100, coarse))
    assert np.isfinite(coarse.values_s(sample.devices)).all()


def test_changes_of_a_placement_within_memory_stay_within_it():
    env = environment([1, 2, 3, 2, 4, 4, 1, 1], [10, 9])
    chance = np.random.default_rng(4)
    base = at_random(env, 1, chance)[0]
    rows = changed(env, base, 500, 0.2, chance)
    assert (np.array(held(env, rows)) <= env.limit_bytes).all()
    moved = (rows != base).sum(axis=1)
    # A fifth of the units is drawn anew, half the time on the same device, and some make room.
    assert 0.5 < moved.mean() < 2.5 and moved.max() > 1
