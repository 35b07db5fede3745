"""Moves of units from device to device, and the step after them without a whole new run (compiled).

A move changes nothing before the first kernel that it touches: those that move, and the makers of
what they read where these now send to other devices. The run goes on from the checkpoint before.
"""

import numpy as np

from placement.compiled.jit import inner, jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.simulator.compiled.links import find_first_use, find_first_uses
from placement.simulator.compiled.loads import find_loads
from placement.simulator.compiled.run import by_events, run
from placement.simulator.flat import Flat
from placement.simulator.run_state import STRIDE, UNUSED, RunState


@jit
def begin(flat: Flat, state: RunState, device_of_unit: Ints) -> float:
    """Make a placement the base; seconds of its step."""
    state.load_s[:] = 0.0
    for k in range(state.device.size):
        d = device_of_unit[flat.unit_of_kernel[k]]
        state.device[k] = d
        state.load_s[d] += flat.compute_s[k, d]
    find_first_uses(flat, state.device, state.position, state.first)
    return run(flat, state, int(0), bool(True), np.inf)


@jit
def begin_each(
    flat: Flat, state: RunState, placements: Ints, throughput: bool, values_s: Floats
) -> None:
    """Seconds of many placements (N, U), one after another."""
    for i in range(placements.shape[0]):
        values_s[i] = begin(flat, state, placements[i])
        if throughput:
            loads_s, links_s = find_loads(flat, state)
            values_s[i] = max(loads_s.max(), links_s.max())


@inner
def relocate(flat: Flat, state: RunState, unit: int, dest: int, touched: Ints) -> None:
    """Put the kernels of a unit on a device, and lower `touched[d]` to the first position on each
    device d from which its run may differ."""
    num_devices = flat.call_s.size
    for i in range(flat.kernel_ptr[unit], flat.kernel_ptr[unit + 1]):
        k = flat.kernels_of_unit[i]
        source = state.device[k]
        if source == dest:
            continue
        state.device[k] = dest
        state.load_s[source] -= flat.compute_s[k, source]
        state.load_s[dest] += flat.compute_s[k, dest]
        touched[source] = min(touched[source], state.position[k])
        touched[dest] = min(touched[dest], state.position[k])
        for j in range(flat.in_ptr[k], flat.in_ptr[k + 1]):
            t = flat.in_tensors[j]
            p = flat.producer[t]
            for d in (source, dest):
                at = t * num_devices + d
                was_read = state.first[at] != UNUSED
                find_first_use(flat, state.device, state.position, state.first, t, d)
                if was_read == (state.first[at] != UNUSED):
                    continue
                if p < 0:
                    if flat.host >= 0 and not flat.on_host[d]:
                        touched[:] = 0
                elif state.device[p] != d:
                    q = state.device[p]
                    touched[q] = min(touched[q], state.position[p])


@inner
def checkpoint_before(flat: Flat, state: RunState, touched: Ints) -> int:
    """The last checkpoint at which no device has passed its `touched` position."""
    num_kernels = state.order.size
    if not by_events(flat):
        return int(min(touched.min(), num_kernels - 1) // STRIDE)
    low, high = 0, (num_kernels - 1) // STRIDE
    while low < high:
        middle = (low + high + 1) // 2
        untouched = True
        for d in range(touched.size):
            # The position that device d starts next; see checkpoints.py.
            following = state.places[middle, 2 * touched.size + d]
            # One that waits for what moves away could have gone on already.
            idle = state.places[middle, touched.size + d] < 0
            if following > touched[d] or (idle and following == touched[d]):
                untouched = False
        if untouched:
            low = middle
        else:
            high = middle - 1
    return low


@jit
def try_group(
    flat: Flat, state: RunState, units: Ints, dest: int, limit_s: float, keep: bool
) -> float:
    """Seconds of the step with some units moved, infinite once above the limit.

    With `keep` a step within the limit becomes the new base, otherwise nothing is kept. Units whose
    device may not be `dest` stay where they are.
    """
    touched = np.full(flat.call_s.size, state.order.size)
    sources = np.empty(units.size, dtype=np.int64)
    for i in range(units.size):
        u = units[i]
        sources[i] = -1
        if flat.kernel_ptr[u] < flat.kernel_ptr[u + 1] and flat.allowed[u, dest]:
            sources[i] = state.device[flat.kernels_of_unit[flat.kernel_ptr[u]]]
            relocate(flat, state, u, dest, touched)
    since = checkpoint_before(flat, state, touched)
    value_s = run(flat, state, since, bool(False), limit_s)
    if keep and value_s < np.inf:
        return run(flat, state, since, bool(True), np.inf)
    for i in range(units.size - 1, -1, -1):
        if sources[i] >= 0:
            relocate(flat, state, units[i], sources[i], touched)
    return value_s
