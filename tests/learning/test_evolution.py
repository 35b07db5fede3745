"""Evolution strategies: ranks by hand, steps that go downhill, and chance that repeats."""

import numpy as np
import pytest

from placement.learning.evolution import Evolution, centred_ranks


def test_ranks_are_centred_and_equals_share_theirs():
    assert centred_ranks(np.array([30.0, 10.0, 20.0])).tolist() == [0.5, -0.5, 0.0]
    assert centred_ranks(np.array([1.0, 1.0, 5.0])).tolist() == [-0.25, -0.25, 0.5]
    assert centred_ranks(np.array([np.inf, 2.0, np.inf])).tolist() == [0.25, -0.5, 0.25]
    assert centred_ranks(np.array([3.0])).tolist() == [0.0]


def test_changes_come_in_opposite_pairs_around_the_weights():
    evolution = Evolution(np.array([1.0, 2.0]), sigma=0.5, learning_rate=0.1, seed=3)
    asked = evolution.asked(4)
    assert asked.shape == (8, 2)
    assert (asked[:4] + asked[4:]) / 2 == pytest.approx(np.tile([1.0, 2.0], (4, 1)))


def test_weights_go_to_where_the_cost_is_least():
    best = np.array([1.0, -2.0, 0.5])
    evolution = Evolution(np.zeros(3), sigma=0.1, learning_rate=0.05, seed=0)
    for _ in range(200):
        evolution.told(((evolution.asked(16) - best) ** 2).sum(axis=1))
    assert evolution.weights == pytest.approx(best, abs=0.1)


def test_equal_costs_move_nothing():
    evolution = Evolution(np.ones(3), sigma=0.1, learning_rate=0.05, seed=0)
    evolution.asked(4)
    evolution.told(np.full(8, 7.0))
    assert evolution.weights.tolist() == [1.0, 1.0, 1.0]
