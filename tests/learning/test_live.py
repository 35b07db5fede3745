"""Learning from measurements: within the number, never worse than the start, wrong ones refused."""

import itertools
import math

import numpy as np
import pytest

from placement.learning.environment import coarser
from placement.learning.live import BATCH, TURNS, Live, cluster_of_units, learn_live
from placement.learning.simulated import simulated
from placement.placers import placer_class
from tests.instances import random_problem


@pytest.fixture(scope="module")
def environment():
    return simulated(random_problem(3, num_ops=9, num_devices=3))


class Computer:
    """Measured seconds by placement: hidden costs per unit and device, noise from turn to turn."""

    def __init__(self, problem, noise=0.0, wrong=()):
        self.problem, self.noise, self.wrong = problem, noise, wrong
        self.cost_s = np.random.default_rng(8).random((problem.num_units, problem.num_devices))
        self.chance = np.random.default_rng(9)
        self.asked = []

    def true_s(self, placement):
        devices = self.problem.kernel_devices(placement)
        of_unit = np.zeros(self.problem.num_units, dtype=int)
        of_unit[self.problem.unit_of_kernel] = devices
        return float(self.cost_s[np.arange(len(of_unit)), of_unit].sum())

    def measure(self, placements, turns):
        self.asked.append((placements, turns))
        true_s = [self.true_s(p) * (1 + self.noise * self.chance.random()) for p in placements]
        return [math.inf if p in self.wrong else s for p, s in zip(placements, true_s, strict=True)]


def start_of(environment):
    return np.array([int(np.flatnonzero(row)[-1]) for row in environment.allowed])


def learned(environment, computer, num, **more):
    live = Live(computer.measure, num)
    of = environment.problem.placement_of
    return learn_live(environment, start_of(environment), live, placement_of=of, seed=1, **more)


def test_it_finds_what_is_fast_here_and_not_by_prediction(environment):
    computer = Computer(environment.problem)
    found = learned(environment, computer, 300)
    start_s = computer.true_s(environment.problem.placement_of(start_of(environment)))
    choices = [np.flatnonzero(row).tolist() for row in environment.allowed]
    every = [
        computer.true_s(environment.problem.placement_of(d)) for d in itertools.product(*choices)
    ]
    assert found.value_s == computer.true_s(found.placement) < found.start_s == start_s
    assert found.value_s <= np.quantile(every, 0.02)


@pytest.mark.parametrize("num", [1, 7, 20])
def test_the_incumbent_stands_in_each_batch_and_the_number_is_kept(environment, num):
    computer = Computer(environment.problem)
    found = learned(environment, computer, num)
    batches = [(placements, turns) for placements, turns in computer.asked if turns == TURNS]
    others = [p for placements, _ in batches for p in placements[1:]]
    assert len(others) == num == found.num_placements
    assert len({tuple(sorted(p.device_of.items())) for p in others}) == num, "none twice"
    assert all(len(placements) <= BATCH for placements, _ in batches)


@pytest.mark.parametrize("noise", [0.0, 0.5, 3.0])
def test_the_answer_was_not_slower_than_the_start_in_the_last_turns(environment, noise):
    computer = Computer(environment.problem, noise=noise)
    found = learned(environment, computer, 40)
    assert found.value_s <= found.start_s


def test_what_computes_something_wrong_is_no_answer(environment):
    class Wrong(Computer):
        def measure(self, placements, turns):
            first_s, *_ = super().measure(placements, turns)
            return [first_s] + [math.inf] * (len(placements) - 1)

    found = learned(environment, Wrong(environment.problem), 21)
    assert found.placement == environment.problem.placement_of(start_of(environment))


def test_it_ends_when_it_is_told_to(environment):
    told = []

    def tell(best_s, number):
        told.append(number)
        return len(told) < 2

    assert learned(environment, Computer(environment.problem), 100, tell=tell).num_placements == 14


def test_clusters_of_clusters_lead_to_units(environment):
    cluster = np.arange(environment.num_units) // 2
    coarse = coarser(environment, cluster)
    coarser_still = coarser(coarse, np.arange(coarse.num_units) // 2)
    of_unit = cluster_of_units(coarser_still)
    assert of_unit.tolist() == coarser_still.cluster[coarse.cluster].tolist()
    assert cluster_of_units(environment).tolist() == list(range(environment.num_units))


def test_a_control_measures_in_the_end():
    problem = random_problem(3, num_ops=9, num_devices=3)
    computer, told = Computer(problem), []
    placer = placer_class("mutation")(max_iterations=2)

    def report(progress):
        told.append(progress.note)
        return True

    found = placer.place_live(problem, Live(computer.measure, 30), report)
    assert computer.true_s(found) <= computer.true_s(placer.place(problem))
    assert "measured" in told[-1]
