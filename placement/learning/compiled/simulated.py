"""Compiled values of many placements where the values in flight may be too many for a device."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.compiled.memory import find_peaks
from placement.simulator.compiled.moves import begin_each
from placement.simulator.flat import Flat
from placement.simulator.run_state import RunState


@jit
def values_within(
    flat: Flat,
    state: RunState,
    placements: Ints,
    throughput: bool,
    workspace_bytes: Ints,
    values_s: Floats,
) -> None:
    """Seconds of each placement (N, U), infinite where a device would hold more than it can."""
    for n in range(placements.shape[0]):
        begin_each(flat, state, placements[n : n + 1], throughput, values_s[n : n + 1])
        peaks = find_peaks(flat, state, workspace_bytes)
        for d in range(peaks.size):
            if peaks[d] > flat.limit_bytes[d]:
                values_s[n] = np.inf
