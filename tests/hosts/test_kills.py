"""Actors and nodes killed at any moment, ten of each: in runs and trainings in turn."""

import random

import pytest

from tests.hosts import kills, trainings
from tests.profiling.live import diamond

ROUNDS = 5
# From a kill to the sentence, and to the first step without the host: no hang.
SILENCE_S, GOES_ON_S = 10.0, 30.0


@pytest.mark.parametrize("what", ["actor", "node"])
def test_runs_go_on_whoever_is_killed(cluster, tmp_path, what):
    model, chance = diamond(tmp_path), random.Random(0)
    for _ in range(ROUNDS):
        told = kills.during_a_run(cluster, what, model, chance)
        assert "Host 'beta' left the cluster" in told.words and told.words.count(".") == 1
        assert 0.0 < told.silence_s < SILENCE_S and told.goes_on_s < GOES_ON_S


@pytest.mark.parametrize("what", ["actor", "node"])
def test_trainings_lose_nothing_whoever_is_killed(cluster, what):
    model, chance = trainings.opened(), random.Random(1)
    expected = trainings.alone(model)
    for _ in range(ROUNDS):
        told, reached = kills.during_a_training(cluster, what, model, chance)
        assert trainings.is_same(reached, expected)
        if told.words:
            assert "Host 'beta' left the cluster" in told.words and told.words.count(".") == 1
            assert 0.0 < told.silence_s < SILENCE_S and told.goes_on_s < GOES_ON_S
