"""Timing on a clock that the test turns, and statistics against answers known beforehand."""

import math

import numpy as np
import pytest

from profiling.measuring.timing import Sample, interleaved, measure, ratio_interval


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def work(self, seconds: float) -> None:
        self.now_s += seconds


def test_warmup_is_not_timed():
    clock = Clock()
    takes = iter((100.0, 50.0, 1.0, 2.0, 3.0))
    sample = measure(lambda: clock.work(next(takes)), warmup=2, repeats=3, clock=clock)
    assert sample.times_s == (1.0, 2.0, 3.0)
    assert sample.median_s == 2.0


def test_goes_on_until_the_least_total():
    clock = Clock()
    sample = measure(lambda: clock.work(0.25), warmup=0, repeats=2, min_total_s=1.9, clock=clock)
    assert len(sample.times_s) == 8


def test_synchronising_is_part_of_the_time():
    clock = Clock()
    queued = []
    sample = measure(
        lambda: queued.append(0.5),
        warmup=1,
        repeats=2,
        clock=clock,
        synchronise=lambda: clock.work(queued.pop()),
    )
    assert sample.times_s == (0.5, 0.5)


def test_a_clock_that_stands_still_does_not_hang():
    assert measure(lambda: None, repeats=1, min_total_s=1.0, clock=lambda: 0.0).median_s == 0.0


def test_percentiles_and_spread():
    sample = Sample(tuple(float(i) for i in range(101)))
    assert (sample.p5_s, sample.median_s, sample.p95_s) == (5.0, 50.0, 95.0)
    assert sample.spread == pytest.approx(50.0 / 50.0)
    assert Sample((0.0, 0.0)).spread == 0.0


def test_nothing_measured_is_an_error():
    with pytest.raises(ValueError, match="no times"):
        Sample(())
    with pytest.raises(ValueError, match="0 repeats"):
        measure(lambda: None, repeats=0)
    with pytest.raises(ValueError, match="0 rounds"):
        interleaved({"a": lambda: None}, 0)


def test_interleaving_takes_turns_and_turns_round():
    ran = []
    calls = {name: (lambda name=name: ran.append(name)) for name in "abc"}
    samples = interleaved(calls, 3, warmup=0)
    assert "".join(ran) == "abccbaabc"
    assert {name: len(s.times_s) for name, s in samples.items()} == {"a": 3, "b": 3, "c": 3}


def test_drift_does_not_move_an_interleaved_ratio():
    """A computer that slows down by half on the way still shows a call 10 % slower as 10 %."""
    clock = Clock()
    slower = 1.0

    def work(seconds: float) -> None:
        nonlocal slower
        clock.work(seconds * slower)
        slower += 0.0025

    samples = interleaved(
        {"a": lambda: work(1.1), "b": lambda: work(1.0)}, 100, warmup=0, clock=clock
    )
    ratio, low, high = ratio_interval(samples["a"].times_s, samples["b"].times_s, seed=0)
    assert ratio == pytest.approx(1.1, rel=0.005)
    assert low <= ratio <= high


def test_the_interval_holds_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(7)
    held = 0
    for trial in range(200):
        a = 1.2 * np.exp(generator.normal(0.0, 0.1, 40))
        b = np.exp(generator.normal(0.0, 0.1, 40))
        _, low, high = ratio_interval(a.tolist(), b.tolist(), seed=trial, resamples=400)
        held += low <= 1.2 <= high
    # 95 % of 200 is 190, with a standard deviation of 3.
    assert held >= 178


def test_the_interval_is_the_same_for_the_same_seed():
    a, b = [1.0, 2.0, 3.0], [1.0, 1.5]
    assert ratio_interval(a, b, seed=3) == ratio_interval(a, b, seed=3)
    ratio, low, high = ratio_interval([2.0], [4.0], seed=0)
    assert (ratio, low, high) == (0.5, 0.5, 0.5)
    assert not math.isnan(ratio_interval(a, b, seed=3)[0])
