"""From coarse to fine: a method begins on few clusters, and each finer level goes on from there.

Multilevel search after Karypis and Kumar, "A fast and high quality multilevel scheme for
partitioning irregular graphs", 1998; clusters of a level are joined in the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from placement.core.graph import Ints
from placement.learning.budget import Budget
from placement.learning.environment import Coarse, Environment, coarser
from placement.learning.training import Batch, Learned, Point, Tell

# Learns on one level from an incumbent, if there is one.
Learn = Callable[[Environment, Budget, Tell, Ints | None], Learned]


# Levels are this many times as fine as the one before, and none is coarser than the least.
FACTOR, LEAST_UNITS = 3.0, 48


def rungs(
    clusters: Sequence[Ints], num_units: int, factor: float = FACTOR, least: int = LEAST_UNITS
) -> list[Ints]:
    """Clusters (U,) of levels, the coarsest first, each at least `factor` times as fine as the one
    before; none has fewer than `least`, and the last are the units themselves."""
    found, last = [np.arange(num_units)], num_units
    for cluster in clusters:
        num = int(cluster.max(initial=-1)) + 1
        if least <= num <= last / factor:
            found.append(cluster)
            last = num
    return found[::-1]


def climb(
    environment: Environment,
    clusters: Sequence[Ints],
    learn: Learn,
    budget: Budget,
    tell: Tell,
    start: Ints | None,
) -> Learned:
    """What is learned on one level after another, the coarsest first; the levels share the budget
    evenly. The last of `clusters` has to be the units themselves."""
    best, evaluations = start, 0
    curve: list[Point] = []
    is_going_on = True
    for number, cluster in enumerate(clusters):
        level = coarser(environment, cluster)

        def heard(point: Point, share: float, batch: Batch, before: int = evaluations) -> bool:
            nonlocal is_going_on
            point = point._replace(evaluations=before + point.evaluations)
            curve.append(point)
            is_going_on = tell(point, budget.spent(point.evaluations), batch)
            return is_going_on

        first = None
        if best is not None:
            first = np.zeros(level.num_units, dtype=np.int64)
            first[level.cluster] = best
        part = budget.part(evaluations, len(clusters) - number)
        learned = learn(level, part, heard, first)
        best, evaluations = learned.devices[level.cluster], evaluations + learned.evaluations
        if isinstance(learned.environment, Coarse):
            environment = learned.environment.finer
        if not is_going_on or budget.spent(evaluations) >= 1.0:
            break
    assert best is not None
    return replace(
        learned,
        devices=best,
        evaluations=evaluations,
        curve=tuple(curve),
        environment=environment,
    )
