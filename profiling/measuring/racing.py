"""A race: which of several things takes the least time, by rounds in which each takes one turn.

Successive elimination (Even-Dar, Mannor and Mansour, JMLR 7, 2006; races: Maron and Moore, NIPS
1993) with a test that presumes nothing about how times are distributed. In each round everyone who
is still in the race takes a turn, in an order drawn anew, so that whatever slows the computer slows
all alike. At looks after 10, 15, 23, ... rounds each rival is held against the leader, who has the
smallest median: the ratios of their times, round by round, have an interval of their median by
order statistics (the sign test). A rival whose whole interval is above 1 is slower and leaves, one
whose interval lies within `ALIKE` of 1 is as good as the leader and leaves too. The race is decided
once the leader runs alone. The chance of error of 5 % is shared among the rivals and the looks, of
which look k gets 6 / (pi k)^2, so the fastest is thrown out in at most one race of twenty, however
long it takes. That rounds do not depend on each other is presumed: rounds in which somebody else
computed are to be left out (`is_clean`).
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
FIRST_LOOK, LOOK_GROWTH = 10, 1.5
# Times that differ by less are called alike.
ALIKE = 0.01
SLOWER, AS_GOOD = "slower", "as good"


@dataclass(frozen=True)
class Racer:
    """Seconds of every turn, and why it left the race: empty for who was in it at its end."""

    turn_s: tuple[float, ...]
    left: str = ""

    @property
    def median_s(self) -> float:
        """Infinite where it took no turn."""
        return statistics.median(self.turn_s) if self.turn_s else math.inf


@dataclass(frozen=True)
class Race:
    """What came of it: the racers as they were declared, and whether the first of them is certain.

    The winner has the smallest median of those who are in the race at its end; None before the end
    of a first round.
    """

    racers: tuple[Racer, ...]
    winner: int | None
    is_certain: bool


@dataclass(frozen=True)
class Standing:
    """How a race stands after a round: the leader, its median, and how many are still in it."""

    num_rounds: int
    leader: int
    median_s: float
    num_left: int


def race(
    turn: Callable[[int], float],
    num: int,
    *,
    goes_on: Callable[[], bool],
    is_clean: Callable[[], bool] = lambda: True,
    tell: Callable[[Standing], object] = lambda standing: None,
    seed: int = 0,
) -> Race:
    """Let `num` racers take turns until the fastest is certain or `goes_on` says no.

    `turn` takes a racer's turn and gives its seconds. A round counts once all have taken theirs and
    `is_clean` says that nothing disturbed it.
    """
    turn_s: list[list[float]] = [[] for _ in range(num)]
    left, chance = [""] * num, np.random.default_rng(seed)
    remaining, num_rounds, num_looks, look = list(range(num)), 0, 0, FIRST_LOOK
    while remaining and (len(remaining) > 1 or num_rounds < FIRST_LOOK):
        row = _round(turn, [remaining[i] for i in chance.permutation(len(remaining))], goes_on)
        if row is None:
            break
        if not is_clean():
            continue
        for number in remaining:
            turn_s[number].append(row[number])
        num_rounds += 1
        leader = _leader(turn_s, remaining)
        if num_rounds == look:
            num_looks += 1
            look = math.ceil(look * LOOK_GROWTH)
            error = (1 - CONFIDENCE) * 6 / (math.pi * num_looks) ** 2 / max(1, num - 1)
            for number in remaining:
                if number != leader:
                    left[number] = _compared(turn_s[number], turn_s[leader], error)
            remaining = [number for number in remaining if not left[number]]
        tell(Standing(num_rounds, leader, statistics.median(turn_s[leader]), len(remaining)))
    return Race(
        tuple(Racer(tuple(seconds), why) for seconds, why in zip(turn_s, left, strict=True)),
        _leader(turn_s, remaining) if num_rounds else None,
        is_certain=len(remaining) == 1 and num_rounds >= FIRST_LOOK,
    )


def _round(
    turn: Callable[[int], float], order: Sequence[int], goes_on: Callable[[], bool]
) -> dict[int, float] | None:
    """Seconds by racer, None where the race was ended before all had taken their turn."""
    row: dict[int, float] = {}
    for number in order:
        if not goes_on():
            return None
        row[number] = turn(number)
    return row


def _leader(turn_s: Sequence[Sequence[float]], remaining: Sequence[int]) -> int:
    """Who has the smallest median, the first declared of equals."""
    return min(remaining, key=lambda number: (statistics.median(turn_s[number]), number))


def _compared(rival_s: Sequence[float], leader_s: Sequence[float], error: float) -> str:
    """Why a rival leaves the race, if it does."""
    # Both took part in every round so far.
    ratios = [a / b if b else math.inf for a, b in zip(rival_s, leader_s, strict=True)]
    low, high = median_interval(ratios, 2 * error)
    if low > 1.0:
        return SLOWER
    low, high = median_interval(ratios, error)
    return AS_GOOD if low >= 1 / (1 + ALIKE) and high <= 1 + ALIKE else ""


def median_interval(values: Sequence[float], error: float = 1 - CONFIDENCE) -> tuple[float, float]:
    """Limits of the median of what the values were drawn from, whatever its distribution.

    The k-th smallest and the k-th largest value, with the greatest k for which both together fail
    in at most `error` of all cases (`error` / 2 each, by the binomial distribution); without limits
    where there are too few values for any k.

    >>> median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    (1.0, 6.0)
    """
    num = len(values)
    ranked, k = sorted(values), 0
    # Chance that fewer than k + 1 of the values are below the median.
    term = tail = math.ldexp(1.0, -num) if num < 1000 else 0.0
    if num >= 1000:
        # The normal approximation, once the binomial terms are too small to be summed.
        k = max(0, math.floor(num / 2 - _deviates(error / 2) * math.sqrt(num) / 2))
    else:
        while tail <= error / 2 and k < num // 2:
            k += 1
            term *= (num - k + 1) / k
            tail += term
    if k == 0:
        return -math.inf, math.inf
    return ranked[k - 1], ranked[num - k]


def _deviates(error: float) -> float:
    """Standard deviations that a normal variable exceeds in this share of cases."""
    return statistics.NormalDist().inv_cdf(1 - error)
