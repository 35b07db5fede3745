"""Levels of learning: their sizes, what is handed on, and orders that suit a placement."""

import numpy as np

from placement.learning.budget import Budget
from placement.learning.environment import coarser
from placement.learning.ladder import climb, rungs
from placement.learning.simulated import simulated
from placement.learning.training import Learned, Point
from tests.instances import random_problem

NOTHING = None


def test_rungs_are_apart_by_the_factor_and_end_at_the_units():
    clusters = [np.arange(120) // size for size in (2, 3, 5, 10, 30)]
    found = rungs(clusters, 120, 2.5, 10)
    assert [int(cluster.max()) + 1 for cluster in found] == [12, 40, 120]
    assert [len(rungs([], 7, 2.0, 1)), rungs([], 7, 2.0, 1)[0].tolist()] == [1, list(range(7))]


def test_each_level_begins_where_the_last_ended_and_budgets_are_even_parts():
    environment = simulated(random_problem(0, num_ops=12, num_devices=3))
    num = environment.num_units
    halves, heard, told = np.arange(num) // (num // 2), [], []

    def learn(level, budget, tell, start):
        heard.append((level.num_units, budget.max_evaluations, start))
        devices = np.arange(level.num_units) % 2
        value_s = float(level.values_s(devices[None])[0])
        tell(Point(budget.max_evaluations, value_s, value_s, 0.0), 1.0, NOTHING)
        return Learned(devices, value_s, budget.max_evaluations, ())

    def tell(point, share, batch):
        told.append((point.evaluations, share))
        return True

    levels = [halves, np.arange(num)]
    learned = climb(environment, levels, learn, Budget(None, 100), tell, None)
    assert [row[:2] for row in heard] == [(int(halves.max()) + 1, 50), (num, 50)]
    assert heard[0][2] is None
    assert heard[1][2].tolist() == (halves % 2).tolist()
    assert learned.devices.tolist() == (np.arange(num) % 2).tolist()
    assert learned.evaluations == 100
    assert told == [(50, 0.5), (100, 1.0)]


def test_whoever_stops_listening_gets_what_was_found_so_far():
    environment = simulated(random_problem(0, num_ops=12))
    num = environment.num_units
    begun = []

    def learn(level, budget, tell, start):
        begun.append(level.num_units)
        tell(Point(1, 1.0, 1.0, 0.0), 0.1, NOTHING)
        return Learned(np.zeros(level.num_units, dtype=np.int64), 1.0, 1, ())

    levels = [np.zeros(num, dtype=np.int64), np.arange(num)]
    learned = climb(environment, levels, learn, Budget(None, 100), lambda *_: False, None)
    assert begun == [1]
    assert learned.devices.tolist() == [0] * num


def test_an_environment_that_suits_a_placement_values_it_no_worse():
    better = 0
    for seed in range(12):
        problem = random_problem(seed, num_ops=25, num_devices=3, execution="op")
        environment = simulated(problem)
        devices = np.random.default_rng(seed).integers(3, size=(1, problem.num_units))
        before_s = environment.values_s(devices)[0]
        suited_s = environment.suited(devices[0]).values_s(devices)[0]
        assert suited_s <= before_s
        better += suited_s < before_s
        level = coarser(environment, np.arange(problem.num_units) // 2)
        rows = devices[:, : level.num_units]
        assert level.suited(rows[0]).values_s(rows)[0] <= level.values_s(rows)[0]
    assert better
