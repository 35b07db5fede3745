"""What a search by samples writes down for those who follow it: its first batches, and its end."""

import math
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.environment import Environment
from placement.learning.training import Batch, Point


class Seen(NamedTuple):
    """A batch that was written down: the best placement (U,) that the policy drew, its seconds, and
    the chance of each unit on each device (U, D) with which it was drawn.

    Without `is_exact` the chances are shares of the `num_drawn` placements.
    """

    point: Point
    environment: Environment
    devices: Ints
    value_s: float
    chances: Floats
    is_exact: bool
    num_drawn: int


class Trace:
    """Has room for so many batches; one without any writes nothing down.

    `answers` are those of the candidates with their seconds, `batches` counts all batches, of which
    `last` is the last point; `found_s` is what the best takes as it was found, `own_s` in the end.
    """

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.answers: list[tuple[str, float]] = []
        self.seen: list[Seen] = []
        self.num_batches = 0
        self.last: Point | None = None
        self.found_s, self.own_s = math.inf, math.inf

    def answered(self, name: str, value_s: float) -> None:
        """What a candidate has answered, and what that takes."""
        if self.room:
            self.answers.append((name, value_s))

    def end(self, found_s: float, own_s: float) -> None:
        """What the best placement takes as it was found, and with what was made of it."""
        self.found_s, self.own_s = found_s, own_s

    def hear(self, point: Point, batch: Batch) -> None:
        """Write a batch down, while there is room."""
        self.num_batches, self.last = self.num_batches + 1, point
        if len(self.seen) >= self.room:
            return
        own_s = batch.value_s[: batch.num_own]
        best, chances = int(own_s.argmin()), batch.chances()
        found = _shares(batch) if chances is None else chances
        self.seen.append(
            Seen(
                point,
                batch.environment,
                batch.devices[best].copy(),
                float(own_s[best]),
                found.copy(),
                chances is not None,
                batch.num_own,
            )
        )


def _shares(batch: Batch) -> Floats:
    """Of the placements that were drawn, in how many each unit is on each device (U, D)."""
    own = batch.devices[: batch.num_own]
    devices = range(batch.environment.num_devices)
    return np.stack([(own == d).mean(axis=0) for d in devices], axis=1)
