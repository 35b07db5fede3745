"""Training by sqrt(time): its numbers by hand."""

import math

import numpy as np
import pytest
import torch

from placement.learning.budget import Budget
from placement.learning.signals import SignalRecipe, train_by_signal
from placement.learning.simulated import simulated
from placement.learning.training import Drawn
from tests.instances import random_problem


def test_signals_are_roots_and_failing_placements_take_a_hundred_seconds():
    recipe = SignalRecipe()
    assert recipe.signals(np.array([4.0, 0.25, math.inf])).tolist() == [2.0, 0.5, 10.0]


def test_the_rate_falls_in_steps_after_its_first_updates():
    recipe = SignalRecipe(learning_rate=0.1, decay=0.5, decay_every=50, decay_after=400)
    rates = [recipe.rate(update) for update in (0, 399, 449, 450, 499, 500)]
    assert rates == pytest.approx([0.1, 0.1, 0.1, 0.05, 0.05, 0.025])


class Fixed:
    """Draws the same placement; its log chance is its weight, so the gradient can be read."""

    def __init__(self, devices):
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.devices, self.gradients = devices, []
        self.weight.register_hook(lambda slope: self.gradients.append(float(slope)))

    def parameters(self):
        return [self.weight]

    def draw(self, num, generator):
        devices = np.repeat(self.devices[None], num, axis=0)
        return Drawn(devices, self.weight.expand(num), torch.zeros(()))

    def log_chance(self, devices):
        return None

    def groups(self):
        return None


def test_a_signal_is_held_against_the_moving_average_of_those_before():
    environment = simulated(random_problem(0, num_ops=6))
    devices = np.zeros(environment.num_units, dtype=np.int64)
    signal = math.sqrt(float(environment.values_s(devices[None])[0]))
    policy = Fixed(devices)
    recipe = SignalRecipe(batch=2, kept=0.9, clip=1e9, failing_s=400.0)
    learned = train_by_signal(environment, policy, recipe, Budget(None, 6), seed=0)
    averages = [20.0]
    for _ in range(2):
        averages.append(0.9 * averages[-1] + 0.1 * signal)
    assert policy.gradients == pytest.approx([signal - average for average in averages], rel=1e-5)
    assert learned.evaluations == 6 and len(learned.curve) == 3
    assert learned.value_s == pytest.approx(signal**2)


def test_nothing_possible_is_said_in_a_sentence():
    environment = simulated(random_problem(0, num_ops=6))
    object.__setattr__(environment, "limit_bytes", np.zeros(environment.num_devices))
    policy = Fixed(np.zeros(environment.num_units, dtype=np.int64))
    with pytest.raises(ValueError, match="None of the 4 placements"):
        train_by_signal(environment, policy, SignalRecipe(), Budget(None, 4), seed=0)
