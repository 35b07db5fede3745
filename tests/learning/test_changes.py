"""Changes of a placement: only what may be, at least one unit, and what each kind is about."""

import numpy as np
import pytest

from placement.learning.changes import redrawn, regrouped, some_units
from placement.learning.simulated import simulated
from tests.instances import random_problem


@pytest.fixture
def environment():
    return simulated(random_problem(1, num_ops=20, num_devices=3, with_gaps=True))


@pytest.fixture
def placement(environment):
    return environment.allowed.argmax(axis=1)


def may(environment, rows):
    return environment.allowed[np.arange(environment.num_units), rows].all()


def test_at_least_one_unit_changes_and_shares_are_even_by_their_logarithm():
    moves = some_units(1000, 4000, 0.1, np.random.default_rng(0))
    counts = moves.sum(axis=1)
    assert counts.min() == 1
    assert counts.max() < 160
    # From one unit in a thousand to one in ten the middle is one in a hundred.
    assert np.median(counts) == pytest.approx(10, abs=1.5)
    assert some_units(1, 3, 0.2, np.random.default_rng(0)).all()


def test_all_changes_keep_to_where_units_may_be(environment, placement):
    chance = np.random.default_rng(0)
    likely = chance.random((environment.num_units, environment.num_devices))
    groups = chance.integers(4, size=environment.num_units)
    for rows in (
        redrawn(environment, placement, likely, 200, 0.5, chance),
        regrouped(environment, placement, groups, 200, chance),
    ):
        assert rows.shape == (200, environment.num_units)
        assert may(environment, rows)
        assert (rows != placement).any()


def test_what_is_drawn_anew_follows_the_chances(environment, placement):
    likely = np.zeros((environment.num_units, environment.num_devices))
    likely[:, 2] = 1.0
    rows = redrawn(environment, placement, likely, 300, 1.0, np.random.default_rng(1))
    changed = rows[rows != placement]
    assert (changed == 2).mean() > 0.9


def test_only_one_group_moves_and_to_one_device(environment, placement):
    groups = np.arange(environment.num_units) % 4
    for row in regrouped(environment, placement, groups, 100, np.random.default_rng(2)):
        moved = row != placement
        assert len(set(groups[moved])) <= 1
        assert len(set(row[moved])) <= 1
