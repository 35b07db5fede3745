"""One run of the simulator, in order or by events, whichever the machine asks for (compiled)."""

import numpy as np

from placement.compiled.jit import inner, jit
from placement.simulator.compiled.by_events import run_by_events
from placement.simulator.compiled.in_order import run_in_order
from placement.simulator.flat import Flat
from placement.simulator.run_state import RunState


@inner
def by_events(flat: Flat) -> bool:
    """Whether devices slow each other down, or send by one channel."""
    num_on_host = 0
    for d in range(flat.on_host.size):
        num_on_host += flat.on_host[d]
    return flat.shares_channels or (flat.contention > 0.0 and num_on_host > 1)


@jit
def run(flat: Flat, state: RunState, since: int, save: bool, limit_s: float) -> float:
    """Seconds of the step from checkpoint `since` on; see `run_in_order`."""
    if by_events(flat):
        return run_by_events(flat, state, since, save, limit_s)
    return run_in_order(flat, state, since, save, limit_s)


def run_whole(flat: Flat, state: RunState) -> float:
    """Seconds of the step from the start, kept as the base of trials."""
    return float(run(flat, state, int(0), bool(True), np.inf))
