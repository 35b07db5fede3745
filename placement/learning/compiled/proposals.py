"""Regions of neighbours moved to another device, in many placements (compiled)."""

import numpy as np

from placement.compiled.jit import jit
from placement.compiled.random import below, seeded, uniform
from placement.core.graph import Ints
from placement.learning.environment import Bools

# The chances of one more region in a row, of a region of one unit, and of one more unit in others.
MORE_REGIONS, ALONE, MORE_UNITS = 0.5, 0.5, 2.0 / 3.0


@jit
def move_regions(rows: Ints, ptr: Ints, neighbours: Ints, allowed: Bools, seed: int) -> None:
    """Change placements (N, U) in place; see `Regions.moved`."""
    num_units, num_devices = allowed.shape
    state = seeded(seed)
    seen, number = np.full(num_units, -1, np.int64), 0
    region, border = np.empty(num_units, np.int64), np.empty(neighbours.size, np.int64)
    fitting = np.empty(num_devices, np.int64)
    for n in range(rows.shape[0]):
        is_going_on = num_units > 0
        while is_going_on:
            region[0] = below(num_units, state)
            seen[region[0]] = number
            num, num_border = 1, 0
            is_growing = uniform(state) >= ALONE
            newest = region[0]
            while is_growing:
                for i in range(ptr[newest], ptr[newest + 1]):
                    if seen[neighbours[i]] != number:
                        seen[neighbours[i]] = number
                        border[num_border] = neighbours[i]
                        num_border += 1
                if num_border == 0:
                    break
                taken = below(num_border, state)
                newest = border[taken]
                num_border -= 1
                border[taken] = border[num_border]
                region[num] = newest
                num += 1
                is_growing = uniform(state) < MORE_UNITS
            num_may = 0
            for d in range(num_devices):
                may, moves = True, False
                for i in range(num):
                    may = may and allowed[region[i], d]
                    moves = moves or rows[n, region[i]] != d
                if may and moves:
                    fitting[num_may] = d
                    num_may += 1
            if num_may > 0:
                device = fitting[below(num_may, state)]
                for i in range(num):
                    rows[n, region[i]] = device
            number += 1
            is_going_on = uniform(state) < MORE_REGIONS
