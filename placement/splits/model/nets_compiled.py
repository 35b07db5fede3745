"""Compiled counts of nets: what places of units, devices or calls, pay for what crosses to others.

A place pays for a net while it holds some of its units, and not all. Whoever moves units keeps the
counts true in a loop of its own: one for both kinds of places, inlined, made annealing a tenth
slower.
"""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.contract import UnitArrays


@jit
def count_nets(
    place: Ints, num_places: int, num_paying: int, units: UnitArrays, seconds: Floats
) -> Ints:
    """How many units of each net each place holds (T, P), for the place of each unit (U,).

    Units at -1 are nowhere. What the first `num_paying` places pay is added to their seconds.
    """
    net_ptr, net_units, net_cost_s = units.net_ptr, units.net_units, units.net_cost_s
    held = np.zeros((len(net_cost_s), num_places), np.int64)
    for net in range(len(net_cost_s)):
        for p in range(net_ptr[net], net_ptr[net + 1]):
            if place[net_units[p]] >= 0:
                held[net, place[net_units[p]]] += 1
        for at in range(num_paying):
            if 0 < held[net, at] < net_ptr[net + 1] - net_ptr[net]:
                seconds[at] += net_cost_s[net]
    return held
