"""Clocks of other hosts, read on this one's: offset and drift estimated from round trips.

Whoever asks a host for its clock knows that it was read between question and answer. The quickest
of some round trips leaves the least room: its middle is the estimate, and half of it the most that
it may be wrong by (Cristian, Distributed Computing 3, 1989). Clocks also gain on each other. Of
several readings only those rates are left that are possible between each two of them, as in the
linear programs of Moon, Skelly and Towsley (Infocom 1999). Rates change, too, so what a reading
says becomes less sure with its age, as in NTP.
"""

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
ROUNDS = 16
# Any clock may gain so much: what NTP corrects at most (RFC 5905, 500 ppm), on both sides. And its
# rate may change by so much (15 ppm there).
MOST_RATE, WANDER = 1e-3, 1.5e-5
# The readings that are looked at, and after how long a clock is read again.
MOST_READINGS, FRESH_S = 16, 1.0


@dataclass(frozen=True)
class Reading:
    """By how much a host's clock was ahead of ours at a moment of ours, and how sure that is."""

    at_s: float
    ahead_s: float
    uncertainty_s: float


@dataclass(frozen=True)
class Offset:
    """What a host's clock is ahead of ours at a moment of ours, and gains in each second from then.

    `uncertainty_s` and `rate_uncertainty` are the most that either may be wrong by.
    """

    ahead_s: float = 0.0
    uncertainty_s: float = 0.0
    at_s: float = 0.0
    rate: float = 0.0
    rate_uncertainty: float = 0.0

    def here(self, there_s: float) -> float:
        """A time of the host's clock on ours.

        >>> Offset(ahead_s=2.0, at_s=10.0, rate=0.5).here(18.0)
        14.0
        """
        return (there_s - self.ahead_s + self.rate * self.at_s) / (1.0 + self.rate)


class HostClock:
    """The clock that `ask` reads on another host, known by readings from time to time."""

    def __init__(self, ask: Clock, clock: Clock = time.perf_counter) -> None:
        self._ask, self._clock = ask, clock
        self._readings: list[Reading] = []

    def offset(self) -> Offset:
        """The offset and its drift as of now; read again where the last reading is old."""
        if not self._readings or self._clock() > self._readings[-1].at_s + FRESH_S:
            self.read()
        return self.known()

    def known(self) -> Offset:
        """The same by the readings that there are; there must be one."""
        return offset_of(self._readings, self._clock())

    def read(self) -> None:
        """Take a reading; those before it that do not agree with it any more are forgotten."""
        readings = [*self._readings[1 - MOST_READINGS :], reading_of(self._ask, self._clock)]
        while not _agree(readings):
            del readings[0]
        self._readings = readings


def reading_of(ask: Clock, clock: Clock = time.perf_counter, rounds: int = ROUNDS) -> Reading:
    """The quickest of some round trips."""
    best = Reading(0.0, 0.0, math.inf)
    for _ in range(rounds):
        asked_s = clock()
        there_s = ask()
        half_s = (clock() - asked_s) / 2
        if half_s < best.uncertainty_s:
            most_s = half_s * (1.0 + MOST_RATE)
            best = Reading(asked_s + half_s, there_s - (asked_s + half_s), most_s)
    return best


def offset_of(readings: list[Reading], now_s: float) -> Offset:
    """What readings that agree with each other say of a moment after them."""
    slowest, fastest = _rates(readings)
    least_s, most_s = _bounds(readings, now_s)
    rate, spread = (slowest + fastest) / 2, (fastest - slowest) / 2
    return Offset((least_s + most_s) / 2, (most_s - least_s) / 2, now_s, rate, spread)


def _rates(readings: list[Reading]) -> tuple[float, float]:
    """The least and the most that the clock may gain per second."""
    slowest, fastest = -MOST_RATE, MOST_RATE
    for before, after in itertools.combinations(readings, 2):
        passed_s = after.at_s - before.at_s
        if passed_s > 0.0:
            gained_s = after.ahead_s - before.ahead_s
            room_s = before.uncertainty_s + after.uncertainty_s + WANDER * passed_s
            slowest = max(slowest, (gained_s - room_s) / passed_s)
            fastest = min(fastest, (gained_s + room_s) / passed_s)
    return slowest, fastest


def _bounds(readings: list[Reading], now_s: float) -> tuple[float, float]:
    """The least and the most that the clock may be ahead at a moment after the readings."""
    slowest, fastest = _rates(readings)
    least_s, most_s = -math.inf, math.inf
    for reading in readings:
        passed_s = now_s - reading.at_s
        room_s = reading.uncertainty_s + WANDER * passed_s
        least_s = max(least_s, reading.ahead_s - room_s + slowest * passed_s)
        most_s = min(most_s, reading.ahead_s + room_s + fastest * passed_s)
    return least_s, most_s


def _agree(readings: list[Reading]) -> bool:
    """Whether one rate is possible for all: clocks are set, and change their rates."""
    slowest, fastest = _rates(readings)
    least_s, most_s = _bounds(readings, readings[-1].at_s)
    return len(readings) == 1 or (slowest <= fastest and least_s <= most_s)
