"""Compiled branch and bound over devices of units under any rules, in steps that go on."""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.graph import Ints
from placement.splits.model.priced import Priced
from placement.splits.model.priced_compiled import (
    PhaseLoads,
    is_repeated,
    loads_with,
    put,
    sample_s,
)


class Descent(NamedTuple):
    """Where a search stands: depth (1,), device tried last by depth and device by unit (U,)."""

    depth: Ints
    choice: Ints
    device: Ints


@jit
def branch_priced(
    descent: Descent,
    order: Ints,
    priced: Priced,
    alike: bool,
    best: Ints,
    best_s: float,
    max_nodes: int,
) -> tuple[float, bool]:
    """Search on for `max_nodes` nodes; the least time between samples, and whether that is all.

    Units of `order` get devices one after another; of accelerators that are `alike` and unused only
    the first. What is certain of the loads must stay below the best.
    """
    depth, choice, device = descent.depth, descent.choice, descent.device
    num, num_devices = len(order), priced.allowed.shape[1]
    loads: PhaseLoads = loads_with(device, priced)
    used = np.zeros(num_devices, np.int64)
    for u in range(num):
        if device[u] >= 0:
            used[device[u]] += 1
    num_tried = 0
    while depth[0] >= 0:
        if num_tried >= max_nodes:
            return best_s, False
        i = depth[0]
        u = order[i]
        if device[u] >= 0:
            used[device[u]] -= 1
            put(u, int(-1), device, loads, priced)
        d = choice[i] + 1
        while d < num_devices:
            repeated = (
                alike
                and d < priced.num_accelerators
                and used[d] == 0
                and is_repeated(d, used, priced)
            )
            if priced.allowed[u, d] and not repeated:
                break
            d += 1
        if d == num_devices:
            choice[i] = -1
            depth[0] -= 1
            continue
        num_tried += 1
        choice[i] = d
        used[d] += 1
        put(u, d, device, loads, priced)
        if d < priced.num_accelerators and loads.held_bytes[d] > priced.limit_bytes:
            continue
        value_s = sample_s(loads, priced.overlap)
        if value_s < best_s * (1.0 - 1e-10):
            if i + 1 == num:
                # Sums that came and went are true to their last digits only.
                best_s = sample_s(loads_with(device, priced), priced.overlap)
                best[:] = device
            else:
                depth[0] += 1
    return best_s, True
