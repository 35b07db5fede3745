"""Earliest finish time scheduling in a given order: the second phase of HEFT, CPoP and PEFT."""

import numpy as np
from numpy.typing import NDArray

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.placers._lists.gaps_compiled import find_gap
from placement.placers._lists.lanes_compiled import (
    Lanes,
    candidates,
    duration_s,
    inputs_ready,
    put,
    rest_of_unit_s,
)
from placement.simulator.flat import Flat


@jit
def earliest_finish(flat: Flat, lanes: Lanes, order: Ints, outlook_s: Floats, wanted: Ints) -> None:
    """Schedule every kernel, each where its finish time plus `outlook_s` (K, D) is least.

    What the rest of its unit computes there counts too. Kernel k goes to device `wanted[k]` where
    that is not -1 and a candidate; ties go to the first device.
    """
    found = np.zeros(flat.allowed.shape[1], dtype=np.bool_)
    for k in order:
        candidates(flat, lanes, flat.unit_of_kernel[k], found)
        d = wanted[k]
        if d < 0 or not found[d]:
            d = least_finish(flat, lanes, k, found, outlook_s[k])
        put(flat, lanes, k, d)


@jit
def least_finish(
    flat: Flat, lanes: Lanes, k: int, found: NDArray[np.bool_], outlook_s: Floats
) -> int:
    """The device among those `found` (D,) where kernel k's finish plus outlook (D,) is least."""
    inputs_ready(flat, lanes, k, 0, found.size)
    ready_s, free_s, insertion = lanes.ready_s, lanes.free_s, lanes.insertion
    best, least_s = -1, np.inf
    for d in range(found.size):
        if not found[d]:
            continue
        seconds = duration_s(flat, lanes, k, d)
        start_s = max(ready_s[d], free_s[d])
        if insertion and start_s > ready_s[d]:
            _, _, start_s = find_gap(lanes.gaps, d, ready_s[d], seconds)
        value_s = start_s + seconds + rest_of_unit_s(flat, lanes, k, d) + outlook_s[d]
        if best < 0 or value_s < least_s:
            best, least_s = d, value_s
    return best
