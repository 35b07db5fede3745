"""Timing discipline: warm up, repeat, interleave, and report medians with their spread.

Medians and interquartile ranges because step times have a long right tail; interleaving because a
computer's speed drifts, and two things timed one after the other are timed on two computers; the
interval of a ratio by the bootstrap (Efron, 1979), because nothing here is normally distributed.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Call = Callable[[], object]
Clock = Callable[[], float]

_MOST_REPEATS = 100_000


@dataclass(frozen=True)
class Sample:
    """Seconds of repeated calls, in the order they ran; at least one."""

    times_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.times_s:
            raise ValueError("A sample has no times; measure at least once.")

    def _at(self, percent: float) -> float:
        return float(np.percentile(self.times_s, percent))

    @property
    def median_s(self) -> float:
        return self._at(50)

    @property
    def p5_s(self) -> float:
        return self._at(5)

    @property
    def p95_s(self) -> float:
        return self._at(95)

    @property
    def spread(self) -> float:
        """Interquartile range over the median; zero where the median is."""
        return (self._at(75) - self._at(25)) / self.median_s if self.median_s else 0.0


def nothing() -> None:
    """The default `synchronise`: for calls that have ended when they return."""


def measure(
    call: Call,
    *,
    warmup: int = 3,
    repeats: int = 5,
    min_total_s: float = 0.0,
    clock: Clock = time.perf_counter,
    synchronise: Call = nothing,
) -> Sample:
    """Time a call at least `repeats` times and for at least `min_total_s` in all.

    `synchronise` waits for work that the call only queued, and is part of the time.
    """
    if repeats < 1:
        raise ValueError(f"Cannot measure with {repeats} repeats; use one or more.")
    for _ in range(warmup):
        call()
        synchronise()
    times_s: list[float] = []
    total_s = 0.0
    while len(times_s) < repeats or (total_s < min_total_s and len(times_s) < _MOST_REPEATS):
        times_s.append(_timed(call, clock, synchronise))
        total_s += times_s[-1]
    return Sample(tuple(times_s))


def interleaved(
    calls: Mapping[str, Call],
    rounds: int,
    *,
    warmup: int = 1,
    clock: Clock = time.perf_counter,
    synchronise: Call = nothing,
) -> dict[str, Sample]:
    """Time several calls turn by turn, so that drift meets all alike.

    Every round runs each call once, every other round in reverse, so that no call always runs in
    the caches that the same other one left. Times at one position belong to one round.
    """
    if rounds < 1:
        raise ValueError(f"Cannot measure with {rounds} rounds; use one or more.")
    for call in calls.values():
        for _ in range(warmup):
            call()
            synchronise()
    names = list(calls)
    times_s: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        turn = names if number % 2 == 0 else names[::-1]
        for name in turn:
            times_s[name].append(_timed(calls[name], clock, synchronise))
    return {name: Sample(tuple(times)) for name, times in times_s.items()}


def ratio_interval(
    a: Sequence[float],
    b: Sequence[float],
    seed: int,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> tuple[float, float, float]:
    """median(a) / median(b) with its bootstrap limits: (ratio, low, high).

    Times of equally many rounds are drawn round by round, which keeps what the two had in common
    in a round; otherwise each is drawn on its own.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.size == 0 or second.size == 0:
        raise ValueError("A ratio of medians needs times on both sides; measure at least once.")
    generator = np.random.default_rng(seed)
    draw = generator.integers(0, first.size, size=(resamples, first.size))
    paired = first.size == second.size
    other = draw if paired else generator.integers(0, second.size, size=(resamples, second.size))
    ratios = np.median(first[draw], axis=1) / np.median(second[other], axis=1)
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(ratios, (tail, 100.0 - tail))
    return float(np.median(first) / np.median(second)), float(low), float(high)


def _timed(call: Call, clock: Clock, synchronise: Call) -> float:
    start_s = clock()
    call()
    synchronise()
    return clock() - start_s
