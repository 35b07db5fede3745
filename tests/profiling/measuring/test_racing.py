"""Races: the fastest stays in, the slower leave, and limits of medians hold what they say."""

import math
from fractions import Fraction

import numpy as np
import pytest

from profiling.measuring.racing import AS_GOOD, FIRST_LOOK, SLOWER, median_interval, race


def raced(true_s, *, noise=0.0, rounds=10_000, seed=0, is_clean=lambda: True):
    """A race of things that take so long, and a share of it more by chance."""
    chance, taken = np.random.default_rng(seed), []

    def turn(number):
        taken.append(number)
        return true_s[number] * (1 + noise * chance.standard_exponential())

    most = rounds * len(true_s)
    goes_on = lambda: len(taken) < most  # noqa: E731
    return race(turn, len(true_s), goes_on=goes_on, is_clean=is_clean, seed=seed), taken


def test_without_noise_the_first_look_decides():
    found, taken = raced([3.0, 1.0, 2.0, 1.0])
    assert (found.winner, found.is_certain) == (1, True)
    assert [racer.left for racer in found.racers] == [SLOWER, "", SLOWER, AS_GOOD]
    assert len(taken) == 4 * FIRST_LOOK


@pytest.mark.parametrize("seed", range(20))
def test_the_fastest_is_not_thrown_out_and_wins_in_the_end(seed):
    found, _ = raced([1.3, 1.0, 1.1, 1.04, 2.0], noise=0.05, seed=seed)
    assert found.racers[1].left != SLOWER
    assert found.is_certain and found.winner == 1
    # Who is far behind leaves at the first look and takes no more of anybody's time.
    assert len(found.racers[4].turn_s) == FIRST_LOOK


def test_what_a_budget_ends_is_not_certain_and_the_best_so_far_is_the_answer():
    found, _ = raced([1.0, 1.02], noise=0.3, rounds=30)
    medians = [racer.median_s for racer in found.racers]
    assert not found.is_certain and found.winner == int(np.argmin(medians))
    assert [racer.left for racer in found.racers] == ["", ""]


def test_a_round_that_is_cut_short_or_disturbed_does_not_count():
    found, _ = raced([1.0, 2.0], rounds=0)
    assert found.winner is None and not found.is_certain
    clean = iter([False, True] * 10_000)
    found, taken = raced([1.0, 2.0], is_clean=lambda: next(clean))
    assert len(taken) == 4 * FIRST_LOOK
    assert {len(racer.turn_s) for racer in found.racers} == {FIRST_LOOK}


def test_who_runs_alone_is_measured_and_certain():
    found, taken = raced([1.0])
    assert found.is_certain and len(taken) == FIRST_LOOK and found.racers[0].median_s == 1.0


@pytest.mark.parametrize("error", [0.2, 0.05, 0.004])
def test_limits_are_the_narrowest_that_the_binomial_distribution_allows(error):
    for num in (1, 2, 5, 6, 7, 10, 23, 60):
        k = 0
        while sum(math.comb(num, j) for j in range(k + 1)) <= Fraction(error / 2) * 2**num:
            k += 1
        low, high = median_interval(list(range(1, num + 1)), error)
        assert (low, high) == ((k, num + 1 - k) if k else (-math.inf, math.inf)), num


def test_many_values_are_counted_by_the_normal_distribution():
    low, high = median_interval(list(range(1, 2001)))
    assert (low, high) == pytest.approx((957, 2001 - 957), abs=1)


def test_limits_hold_the_median_as_often_as_they_say():
    rows = np.random.default_rng(5).exponential(size=(2000, 25))
    limits = [median_interval(row.tolist(), 0.1) for row in rows]
    held = np.mean([low <= math.log(2) <= high for low, high in limits])
    assert 0.89 <= held <= 0.97
