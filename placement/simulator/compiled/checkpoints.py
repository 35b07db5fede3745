"""What a run knows between two kernels, kept in rows and taken out again (compiled).

Times (in seconds): free (D), end of what runs (D), compute done (D), links free (D * D), then the
clock, the rate of host devices and the latest end so far. Places: whether a segment is open (D),
the kernel that runs or -1 (D), the position of the next one (D), the last transfer on each link
(D * D), then the number of host devices that are busy.
"""

from placement.compiled.jit import inner
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.run_state import RunState


@inner
def restored(state: RunState, since: int, times_s: Floats, places: Ints, num_devices: int) -> None:
    """Fill the arrays with checkpoint `since`, the first being the start of every run."""
    for i in range(times_s.size):
        times_s[i] = state.times_s[since, i] if since > 0 else 0.0
    for i in range(places.size):
        places[i] = state.places[since, i] if since > 0 else 0
    if since == 0:
        times_s[times_s.size - 2] = 1.0
        for d in range(num_devices):
            places[num_devices + d] = -1
        for i in range(num_devices * num_devices):
            places[3 * num_devices + i] = -1


@inner
def kept(state: RunState, row: int, times_s: Floats, places: Ints) -> None:
    """Write the arrays into a checkpoint."""
    for i in range(times_s.size):
        state.times_s[row, i] = times_s[i]
    for i in range(places.size):
        state.places[row, i] = places[i]
