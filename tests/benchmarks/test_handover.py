"""Ratios of the table of hand-overs, over several openings of the same programs."""

import math

import pytest

from benchmarks.live.handover import OPENINGS, STUDENT, ratio_over


def test_a_ratio_is_the_mean_over_openings_and_its_interval_knows_how_they_differ():
    """By hand: logarithms of ratios are 0.02 and -0.02 by turns, but for steps that stand out."""
    openings = [
        {"a": [math.exp(0.02 * (-1) ** number), 9.0, 1e-9], "b": [1.0, 1.0, 7.0]}
        for number in range(OPENINGS)
    ]
    ratio, low, high = ratio_over(openings, "a", "b")
    assert ratio == pytest.approx(1.0)
    reach = STUDENT * 0.02 / math.sqrt(OPENINGS - 1)
    assert (math.log(low), math.log(high)) == pytest.approx((-reach, reach))


def test_steps_of_one_opening_that_agree_say_nothing_of_others():
    openings = [{"a": [1.0 + 0.01 * number] * 3, "b": [1.0] * 3} for number in range(OPENINGS)]
    _, low, high = ratio_over(openings, "a", "b")
    assert low < 1.02 < 1.05 < high
