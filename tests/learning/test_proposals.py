"""Regions that move, against what chance says of graphs where it is easily said."""

from dataclasses import replace

import numpy as np
import pytest

from placement.learning.environment import Edges
from placement.learning.proposals import Regions
from placement.learning.simulated import simulated
from tests.instances import random_problem

NUM_UNITS, NUM_ROWS = 400, 4000


def environment_of(num_units, pairs, num_devices=3):
    """An environment of which only units, devices and edges are looked at."""
    some = simulated(random_problem(0, num_ops=4, num_devices=num_devices))
    source, target = (np.array([p[i] for p in pairs], dtype=np.int64) for i in (0, 1))
    return replace(
        some,
        allowed=np.ones((num_units, num_devices), dtype=np.bool_),
        size_bytes=np.ones(num_units),
        edges=Edges(source, target, np.ones(len(pairs))),
    )


def moved(environment, seed=0, num=NUM_ROWS):
    start = np.zeros(environment.num_units, dtype=np.int64)
    return Regions(environment).moved(start, num, np.random.default_rng(seed))


def test_without_edges_two_units_move_on_average_and_at_least_one():
    rows = moved(environment_of(NUM_UNITS, []))
    counts = (rows > 0).sum(axis=1)
    assert counts.mean() == pytest.approx(2.0, abs=0.1)
    assert (counts == 1).mean() == pytest.approx(0.5, abs=0.04)
    assert (rows == 1).sum() == pytest.approx((rows == 2).sum(), rel=0.1)
    assert np.bincount(np.nonzero(rows)[1], minlength=NUM_UNITS).min() > 0


def test_half_of_the_regions_take_a_neighbour_with_them():
    pairs = [(i, i + 1) for i in range(0, NUM_UNITS, 2)]
    rows = moved(environment_of(NUM_UNITS, pairs))
    assert (rows > 0).sum(axis=1).mean() == pytest.approx(2 * 1.5, abs=0.15)
    one, other = rows[:, ::2], rows[:, 1::2]
    together, alone = ((one > 0) & (one == other)).sum(), ((one > 0) != (other > 0)).sum()
    assert together / (together + alone) == pytest.approx(0.5, abs=0.04)


def test_regions_hang_together_and_grow_to_four_units_on_average():
    """On a line a region is a stretch: of one unit, or of 1 + 3 on average."""
    rows = moved(environment_of(NUM_UNITS, [(i, i + 1) for i in range(NUM_UNITS - 1)]))
    assert (rows > 0).sum(axis=1).mean() == pytest.approx(2 * 2.5, abs=0.3)
    stretches = (np.diff(rows > 0, axis=1, prepend=False).sum(axis=1) + 1) // 2
    assert stretches.mean() == pytest.approx(2.0, abs=0.15)


def test_units_go_only_where_all_of_their_region_may_be():
    environment = environment_of(4, [(0, 1), (1, 2), (2, 3)])
    allowed = environment.allowed.copy()
    allowed[0, 2] = allowed[1, 1] = allowed[3, 1:] = False
    rows = moved(replace(environment, allowed=allowed), num=500)
    for device in range(3):
        assert set(np.flatnonzero((rows == device).any(axis=0))) <= set(
            np.flatnonzero(allowed[:, device])
        )
    assert not rows[:, 3].any()


def test_the_seed_alone_decides_and_nothing_is_wanted_of_an_empty_batch():
    environment = environment_of(9, [(0, 1), (1, 5), (5, 6)])
    assert moved(environment, seed=3).tolist() == moved(environment, seed=3).tolist()
    assert moved(environment, seed=3).tolist() != moved(environment, seed=4).tolist()
    assert moved(environment, num=0).shape == (0, 9)
