"""Clocks of other hosts, read on this one's: an offset estimated from round trips.

Whoever asks a host for its clock knows that it was read between question and answer. The quickest
of some round trips leaves the least room: its middle is the estimate, and half of it the most that
it may be wrong by (Cristian, Distributed Computing 3, 1989).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
ROUNDS = 16


@dataclass(frozen=True)
class Offset:
    """What a host's clock is ahead of ours, and by how much that may be wrong, in seconds."""

    ahead_s: float = 0.0
    uncertainty_s: float = 0.0
    read_s: float = 0.0

    def here(self, there_s: float) -> float:
        """A time of the host's clock on ours."""
        return there_s - self.ahead_s


def offset_of(ask: Clock, clock: Clock = time.perf_counter, rounds: int = ROUNDS) -> Offset:
    """The offset of the clock that `ask` reads on another host."""
    best = Offset(uncertainty_s=float("inf"))
    for _ in range(rounds):
        asked_s = clock()
        there_s = ask()
        answered_s = clock()
        half_s = (answered_s - asked_s) / 2
        if half_s < best.uncertainty_s:
            best = Offset(there_s - (asked_s + half_s), half_s, answered_s)
    return best
