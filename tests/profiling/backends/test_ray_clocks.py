"""Offsets and drifts of other hosts' clocks, against clocks by hand whose truth is known."""

import itertools
import random

import pytest

from profiling.backends._ray.clocks import FRESH_S, MOST_RATE, WANDER, HostClock, reading_of

SLACK_S = 1e-9


class Pair:
    """Our clock, and another one that runs at a rate of its own; ways take what `ways_s` says."""

    def __init__(self, ahead_s, rate, ways_s):
        self.now_s, self.ahead_s, self.rate, self.ways_s = 100.0, ahead_s, rate, ways_s
        self._set_at_s = self.now_s

    def clock(self):
        return self.now_s

    def ahead_now_s(self):
        return self.ahead_s + self.rate * (self.now_s - self._set_at_s)

    def ask(self):
        self.now_s += next(self.ways_s)
        there_s = self.now_s + self.ahead_now_s()
        self.now_s += next(self.ways_s)
        return there_s

    def change(self, rate, jump_s=0.0):
        self.ahead_s, self._set_at_s, self.rate = self.ahead_now_s() + jump_s, self.now_s, rate


@pytest.mark.parametrize("ahead_s", [-3.0, 0.0, 1e5])
def test_the_quickest_of_the_round_trips_bounds_the_offset(ahead_s):
    pair = Pair(ahead_s, 0.0, itertools.cycle([0.3, 0.05, 0.9, 0.2, 0.01, 0.4]))
    found = reading_of(pair.ask, pair.clock)
    assert abs(found.ahead_s - ahead_s) <= found.uncertainty_s + SLACK_S
    quickest_s = (0.3 + 0.05) / 2
    assert found.uncertainty_s == pytest.approx(quickest_s, rel=2e-3), "of the round trips"


def ways(rng):
    while True:
        yield rng.uniform(5e-5, 1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_offset_and_drift_lie_within_what_is_said_whenever_one_asks(seed):
    rng = random.Random(seed)
    rate = rng.uniform(-2e-4, 2e-4)
    pair = Pair(rng.uniform(-1e4, 1e4), rate, ways(rng))
    clock = HostClock(pair.ask, pair.clock)
    said = []
    for _ in range(40):
        pair.now_s += rng.uniform(0.0, 4 * FRESH_S)
        offset = clock.offset()
        assert abs(offset.ahead_s - pair.ahead_now_s()) <= offset.uncertainty_s + SLACK_S
        assert abs(offset.rate - rate) <= offset.rate_uncertainty + SLACK_S
        # A span that ends a second later lies as sure, with what the rate adds.
        pair.now_s += 0.5
        there_s = pair.now_s + pair.ahead_now_s()
        room_s = offset.uncertainty_s + offset.rate_uncertainty * 0.6 + SLACK_S
        assert abs(offset.here(there_s) - pair.now_s) <= room_s
        said.append(offset)
    assert said[-1].rate_uncertainty < MOST_RATE / 10, "readings far apart tell the drift"
    assert said[-1].uncertainty_s < 1e-3


def test_a_drift_that_nobody_corrected_would_be_told_wrong_after_a_minute():
    """What the readings are for: 100 us per second are 6 ms in a minute."""
    pair = Pair(0.0, 1e-4, ways(random.Random(7)))
    clock = HostClock(pair.ask, pair.clock)
    first = clock.offset()
    for _ in range(60):
        pair.now_s += 1.1
        last = clock.offset()
    there_s = pair.now_s + pair.ahead_now_s()
    assert abs(first.here(there_s) - pair.now_s) > 5e-3
    assert abs(last.here(there_s) - pair.now_s) < 5e-4


@pytest.mark.parametrize("jump_s", [0.0, -0.2, 3.0])
def test_a_clock_that_is_set_or_changes_its_rate_is_known_by_its_later_readings(jump_s):
    rng = random.Random(3)
    pair = Pair(1.0, 1e-4, ways(rng))
    clock = HostClock(pair.ask, pair.clock)
    for _ in range(20):
        pair.now_s += 5.0
        clock.offset()
    pair.change(-3e-4, jump_s)
    for _ in range(8):
        pair.now_s += 5.0
        offset = clock.offset()
        assert abs(offset.ahead_s - pair.ahead_now_s()) <= offset.uncertainty_s + SLACK_S
    assert abs(offset.rate + 3e-4) <= offset.rate_uncertainty + SLACK_S


@pytest.mark.parametrize("seed", range(6))
def test_a_rate_that_wanders_is_known_within_what_is_said(seed):
    """So little that no reading contradicts those before it."""
    rng = random.Random(seed)
    pair = Pair(1.0, 1e-5, ways(rng))
    clock = HostClock(pair.ask, pair.clock)
    for _ in range(60):
        pair.now_s += rng.uniform(1.0, 30.0)
        pair.change(1e-5 + rng.uniform(-0.5, 0.5) * WANDER)
        offset = clock.offset()
        assert abs(offset.ahead_s - pair.ahead_now_s()) <= offset.uncertainty_s + SLACK_S


def test_a_clock_is_not_read_again_within_a_second():
    pair = Pair(0.0, 0.0, ways(random.Random(1)))
    asked = []

    def ask():
        asked.append(pair.now_s)
        return pair.ask()

    clock = HostClock(ask, pair.clock)
    clock.offset()
    once = len(asked)
    pair.now_s += FRESH_S / 2
    clock.offset()
    assert len(asked) == once
    pair.now_s += FRESH_S
    clock.offset()
    assert len(asked) == 2 * once
