"""Proposals: placements near good ones, in which regions of the graph move to another device.

What searches without a network live on (moves of blocks that hang together, `search/chain.py`) made
for batches. One unit that moves alone mostly adds transfers; neighbours that move with it do not.
"""

from functools import cached_property

import numpy as np

from placement.core.graph import Ints, starts
from placement.learning.environment import Environment


class Regions:
    """Makes proposals for one environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    @cached_property
    def _neighbours(self) -> tuple[Ints, Ints]:
        """Whom each unit has an edge with, as CSR."""
        edges = self._environment.edges
        unit = np.concatenate([edges.source, edges.target])
        other = np.concatenate([edges.target, edges.source])
        ptr = starts(np.bincount(unit, minlength=self._environment.num_units))
        return ptr, other[np.argsort(unit, kind="stable")]

    def moved(self, devices: Ints, num: int, chance: np.random.Generator) -> Ints:
        """A placement (U,) as many times as wanted (N, U), in each some regions moved.

        One region with the chance 1/2, two with 1/4 and so on. Half of the regions are one unit,
        the others grow along edges, by chance, to 3 units more on average. A region goes to any
        other device that may hold all of it; where there is none, it stays.
        """
        from placement.learning.compiled.proposals import move_regions

        environment = self._environment
        rows = np.repeat(devices[None], num, axis=0)
        seed = int(chance.integers(1 << 31))
        move_regions(rows, *self._neighbours, environment.allowed, seed)
        return rows
