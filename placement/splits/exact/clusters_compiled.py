"""Compiled search of contiguous splits where accelerators are in clusters, in steps that go on."""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.exact.chains_compiled import MARGIN, Ideals
from placement.splits.exact.ideals_compiled import WORD, contained
from placement.splits.model.priced import Priced
from placement.splits.model.priced_compiled import (
    PhaseLoads,
    is_repeated,
    loads_with,
    put,
    sample_s,
)


class Backwards(NamedTuple):
    """Where a search from the last part to the first stands.

    Depth (1,); by depth (D + 1,) the ideal before the parts so far, and of the part in front of it
    the ideal and the device that were tried last; devices of units (U,), -1 for those in no part.
    """

    depth: Ints
    ideal: Ints
    before: Ints
    device_tried: Ints
    device: Ints


@jit
def search_backwards(
    state: Backwards,
    ideals: Ideals,
    least_s: Floats,
    pinned: Ints,
    priced: Priced,
    best: Ints,
    best_s: float,
    max_nodes: int,
) -> tuple[float, bool]:
    """Search on for `max_nodes` parts; the least time between samples, and whether that is all.

    `least_s` (M, A + 1, C + 1) bounds chains to an ideal with so many devices or fewer; `pinned`
    (U,) is the device that a unit must have, -1 for any.
    """
    depth, device = state.depth, state.device
    rows, acc_s, cpu_s = ideals.rows, ideals.acc_s, ideals.cpu_s
    num_units, num_devices, k = len(device), priced.allowed.shape[1], priced.num_accelerators
    loads: PhaseLoads = loads_with(device, priced)
    used, own = np.zeros(num_devices, np.int64), np.zeros(num_devices, np.int64)
    for u in range(num_units):
        if pinned[u] >= 0:
            own[pinned[u]] = 1
        if device[u] >= 0:
            used[device[u]] = 1
    crumb_s = MARGIN * acc_s[-1]
    num_tried = 0
    while depth[0] >= 0:
        if num_tried >= max_nodes:
            return best_s, False
        at = depth[0]
        j, i, d = state.ideal[at], state.before[at], state.device_tried[at]
        if d >= 0 and used[d] == 1 and device[first_between(rows, i, j, num_units)] == d:
            # Take back the last part.
            used[d] = 0
            for u in range(num_units):
                if device[u] == d:
                    put(u, int(-1), device, loads, priced)
        left_a, left_c = -1, -1
        for e in range(num_devices):
            if used[e] == 0:
                left_a, left_c = left_a + (e < k), left_c + (e >= k)
        d += 1
        if d == num_devices:
            i, d = i + 1, 0
        found = False
        while i < j and not found:
            on_acc = left_a >= 0 and acc_s[j] - acc_s[i] <= best_s + crumb_s
            on_acc = on_acc and ideals.no_acc[j] == ideals.no_acc[i]
            on_acc = on_acc and ideals.size_bytes[j] - ideals.size_bytes[i] <= priced.limit_bytes
            on_acc = on_acc and least_s[i, max(left_a, 0), left_c + 1] < best_s
            on_cpu = left_c >= 0 and cpu_s[j] - cpu_s[i] <= best_s + crumb_s
            on_cpu = on_cpu and ideals.no_cpu[j] == ideals.no_cpu[i]
            on_cpu = on_cpu and least_s[i, left_a + 1, max(left_c, 0)] < best_s
            pins = ideals.pins[j] - ideals.pins[i]
            if pins < 2 and (on_acc or on_cpu) and contained(rows, i, j):
                must = int(-1)
                if pins == 1:
                    for u in range(num_units):
                        if pinned[u] >= 0 and is_between(rows, i, j, u):
                            must = pinned[u]
                while d < num_devices and not found:
                    may = used[d] == 0 and (on_acc if d < k else on_cpu)
                    may = may and (d == must if must >= 0 else own[d] == 0)
                    if may and must < 0 and own.max() == 0:
                        if d < k:
                            may = not is_repeated(d, used, priced)
                        else:
                            may = d == k or used[d - 1] == 1
                    found = may
                    d += not may
            if not found:
                i, d = i + 1, 0
        if not found:
            depth[0] -= 1
            continue
        num_tried += 1
        state.before[at], state.device_tried[at] = i, d
        used[d] = 1
        for u in range(num_units):
            if is_between(rows, i, j, u):
                put(u, d, device, loads, priced)
        if sample_s(loads, priced.overlap) >= best_s * (1.0 - 1e-10):
            continue
        if i == 0:
            # Sums that came and went are true to their last digits only.
            best_s = sample_s(loads_with(device, priced), priced.overlap)
            best[:] = device
        elif at + 1 < len(state.ideal):
            depth[0] += 1
            state.ideal[at + 1], state.before[at + 1], state.device_tried[at + 1] = i, 0, -1
    return best_s, True


@jit
def is_between(rows: Ints, i: int, j: int, u: int) -> bool:
    """Whether a unit is in ideal j and not in ideal i."""
    return bool((rows[j, u // WORD] & ~rows[i, u // WORD]) >> (u % WORD) & 1)


@jit
def first_between(rows: Ints, i: int, j: int, num_units: int) -> int:
    """The first unit in ideal j and not in ideal i."""
    for u in range(num_units):
        if is_between(rows, i, j, u):
            return u
    return 0
