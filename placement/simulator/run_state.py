"""The arrays that a simulation works on, allocated once and used for many placements."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.flat import Flat

Uses = NDArray[np.int32]
Flags = NDArray[np.bool_]
# Arrays and settings taken out of a larger tuple once, before an inner loop.
Parts = tuple[Any, ...]
# Largest position: of a tensor that no kernel of a device reads.
UNUSED = np.iinfo(np.int32).max
# Kernels between two checkpoints: restoring costs little, and few kernels run again in vain.
STRIDE = 8


class RunState(NamedTuple):
    """Kernels (K), tensors times devices (T * D), devices (D).

    `device`, `order` and its inverse `position` say what runs where and when; `first[t * D + d]` is
    the position of the first reader of tensor t on device d, or UNUSED. `arrived_s` holds the base
    run, `trial_s` what a trial changes. `sent_s` and `behind` (the transfer that held the link
    before, or -1) are empty unless a timeline is wanted. `load_s` (D,) is the compute of each
    device, `tail_s` (K,) the least time from a kernel's end to the step's end. `times_s` and
    `places` keep the state of the base run before every STRIDE-th kernel, a row each; what the
    columns are says `compiled/checkpoints.py`. There are no rows where nothing is tried.
    """

    device: Ints
    order: Ints
    position: Ints
    first: Uses
    start_s: Floats
    end_s: Floats
    arrived_s: Floats
    trial_s: Floats
    sent_s: Floats
    behind: Ints
    load_s: Floats
    tail_s: Floats
    times_s: Floats
    places: Ints


class Trace(NamedTuple):
    """Room for the first N moves of a search that change a placement, and how many it wrote, (1,).

    A row of `moves` (N, 6): the unit, its block or -1, the device that it should go to, the unit
    that goes back from there to make room and its block, -1 for none, and what came of it. A row of
    `figures` (N, 4): the temperature, what the move was allowed to take, what the base takes after
    it, and the best so far, in seconds. Without rows nothing is written.
    """

    num: Ints
    moves: Ints
    figures: Floats


# What came of a move: no room for it, taken back, accepted, accepted and the best so far.
NO_ROOM, REFUSED, ACCEPTED, BEST = range(4)


def trace_of(num_moves: int) -> Trace:
    """Room for this many moves."""
    num = np.zeros(1, dtype=np.int64)
    return Trace(num, np.zeros((num_moves, 6), dtype=np.int64), np.zeros((num_moves, 4)))


def run_state(flat: Flat, order: Ints, *, detail: bool = False, trials: bool = True) -> RunState:
    """Room for runs of a problem in one order; `detail` keeps when transfers started.

    Without `trials` all runs are whole ones: no checkpoints are kept, which are large where there
    are many devices, for every two of them may have a link.
    """
    num_kernels, num_devices = flat.compute_s.shape
    num_pairs = flat.producer.size * num_devices
    num_saved = num_kernels // STRIDE + 1 if trials else 0
    position = np.empty(num_kernels, dtype=np.int64)
    position[order] = np.arange(num_kernels)
    return RunState(
        device=np.zeros(num_kernels, dtype=np.int64),
        order=np.ascontiguousarray(order, dtype=np.int64),
        position=position,
        first=np.empty(num_pairs, dtype=np.int32),
        start_s=np.zeros(num_kernels),
        end_s=np.zeros(num_kernels),
        arrived_s=np.zeros(num_pairs),
        trial_s=np.zeros(num_pairs if trials else 0),
        sent_s=np.zeros(num_pairs if detail else 0),
        behind=np.full(num_pairs if detail else 0, -1, dtype=np.int64),
        load_s=np.zeros(num_devices),
        tail_s=np.zeros(num_kernels),
        times_s=np.zeros((num_saved, 3 * num_devices + num_devices**2 + 3)),
        places=np.zeros((num_saved, 3 * num_devices + num_devices**2 + 1), dtype=np.int64),
    )
