"""Learning from measurements: placements near the best one and of a policy, run in turns with it.

Predicted and measured seconds differ, so a learner's last steps may be taken on the computer
itself. A batch holds the best placement so far (the incumbent) and others: some are drawn by the
policy, which learns from their measured seconds, some are changes of the incumbent, the better ones
by prediction. All of a batch are measured in the same minute. In the end the best one is measured
once more, in turns with the start; where it is not faster, the start is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.learning.environment import Coarse, Environment
from placement.learning.training import Trained, advantages, at_random

if TYPE_CHECKING:
    import torch

# Median seconds of some placements over so many turns, all in the same minute; infinite where a
# placement computes something wrong.
Measure = Callable[[Sequence[Placement], int], Sequence[float]]

BATCH = 8
TURNS, LAST_TURNS = 10, 40
# Of this many changes the better ones by prediction are measured, and as many by chance.
NUM_CHANGES = 64
MOST_CHANGED = 4
LEARNING_RATE = 1e-3
# Within a batch a placement must be faster by this share: less is noise.
LEAST_GAIN = 0.005


@dataclass(frozen=True)
class Live:
    """How placements are measured, and how many may be."""

    measure: Measure
    num_placements: int


@dataclass(frozen=True, eq=False)
class Measured:
    """What came of it: the answer, its seconds and the start's in the last turns, and how many
    placements were measured."""

    placement: Placement
    value_s: float
    start_s: float
    num_placements: int


# Hears measured seconds of the best so far and how many placements were measured; False ends it.
Tell = Callable[[float, int], bool]


def learn_live(
    environment: Environment,
    start: Ints,
    live: Live,
    *,
    trained: Trained | None = None,
    placement_of: Callable[[Ints], Placement],
    seed: int,
    tell: Tell = lambda best_s, number: True,
) -> Measured:
    """Measure placements of the problem's units (U,), from `start` on, until their number is up.

    Clusters of the environment move as one; `trained` is a policy for some level of the same units,
    `placement_of` makes a placement of units. Raises what `measure` raises.
    """
    chance = np.random.default_rng(seed)
    cluster = cluster_of_units(environment)
    learner = None if trained is None else _Learner(trained, seed)
    best, seen, number = start, {start.tobytes()}, 0
    # Of the best in measured seconds, by ratios from batch to batch.
    best_s = math.inf
    while number < live.num_placements:
        left = min(BATCH - 1, live.num_placements - number)
        drawn = learner.draw(left // 2) if learner else np.zeros((0, start.size), int)
        others = _changes(environment, cluster, best, left - len(drawn), seen, chance)
        proposals = np.concatenate([drawn, others])
        if not len(proposals):
            break
        seen.update(row.tobytes() for row in proposals)
        first_s, *seconds = live.measure([placement_of(row) for row in (best, *proposals)], TURNS)
        number += len(proposals)
        value_s = np.array(seconds)
        if learner and len(drawn):
            learner.learn(value_s[: len(drawn)])
        fastest = int(value_s.argmin())
        best_s = first_s
        if value_s[fastest] < first_s * (1.0 - LEAST_GAIN):
            best, best_s = proposals[fastest], float(value_s[fastest])
        if not tell(best_s, number):
            break
    if best is start or not number:
        return Measured(placement_of(start), best_s, best_s, number)
    start_s, end_s = live.measure([placement_of(start), placement_of(best)], LAST_TURNS)
    if end_s < start_s:
        return Measured(placement_of(best), end_s, start_s, number)
    return Measured(placement_of(start), start_s, start_s, number)


def cluster_of_units(environment: Environment) -> Ints:
    """The unit of a coarse environment in which each of the finest units is."""
    if not isinstance(environment, Coarse):
        return np.arange(environment.num_units)
    found: Ints = environment.cluster[cluster_of_units(environment.finer)]
    return found


def _changes(
    environment: Environment,
    cluster: Ints,
    best: Ints,
    num: int,
    seen: set[bytes],
    chance: np.random.Generator,
) -> Ints:
    """New placements (N, U) with a few clusters of the best one drawn anew."""
    rows, tried = (
        np.repeat(best[None], NUM_CHANGES, axis=0),
        at_random(environment, NUM_CHANGES, chance),
    )
    for row, devices in zip(rows, tried, strict=True):
        size = int(chance.integers(1, MOST_CHANGED + 1))
        moved = chance.choice(environment.num_units, min(size, environment.num_units), False)
        there = np.isin(cluster, moved)
        row[there] = devices[cluster[there]]
    fresh = np.array([row.tobytes() not in seen for row in rows])
    rows = np.unique(rows[fresh], axis=0)
    value_s = _finest(environment).values_s(rows) if len(rows) else np.zeros(0)
    rows, value_s = rows[np.isfinite(value_s)], value_s[np.isfinite(value_s)]
    by_value = rows[np.argsort(value_s, kind="stable")]
    better, others = by_value[: (num + 1) // 2], by_value[(num + 1) // 2 :]
    by_chance = others[chance.permutation(len(others))[: num - len(better)]]
    found: Ints = np.concatenate([better, by_chance])
    return found


def _finest(environment: Environment) -> Environment:
    return _finest(environment.finer) if isinstance(environment, Coarse) else environment


class _Learner:
    """A policy on its way by measured seconds."""

    def __init__(self, trained: Trained, seed: int) -> None:
        import torch

        policy = self._policy = trained.policy
        self._cluster = cluster_of_units(trained.environment)
        self._generator = torch.Generator().manual_seed(seed)
        self._optimiser: Any = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE)
        self._log_chance: torch.Tensor | None = None

    def draw(self, num: int) -> Ints:
        """Placements (N, U) that are to be measured and learned from."""
        drawn = self._policy.draw(num, self._generator)
        self._log_chance = drawn.log_chance
        found: Ints = drawn.devices[:, self._cluster]
        return found

    def learn(self, value_s: Floats) -> None:
        """A step of policy gradient by the seconds of what was drawn."""
        import torch

        assert self._log_chance is not None
        weight = torch.from_numpy(advantages(value_s)).to(self._log_chance.dtype)
        loss = -(weight * self._log_chance).mean()
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
