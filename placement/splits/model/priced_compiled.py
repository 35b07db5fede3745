"""Compiled loads under all rules, kept true while units get devices, move, and lose them again.

A unit without a device (-1) costs nothing yet: a load is then what is certain of it, and only grows
while units get devices.
"""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.priced import Priced


class PhaseLoads(NamedTuple):
    """Seconds of compute and of transfers by phase and device (2, D), bytes by device (D,), and
    how many units of each net a device holds (T, D)."""

    work_s: Floats
    moves_s: Floats
    held_bytes: Floats
    held: Ints


@jit
def no_loads(priced: Priced) -> PhaseLoads:
    """Those of no unit at all."""
    num_devices = priced.allowed.shape[1]
    return PhaseLoads(
        np.zeros((2, num_devices)),
        np.zeros((2, num_devices)),
        np.zeros(num_devices),
        np.zeros((len(priced.net_cost_s), num_devices), np.int64),
    )


@jit
def charge(net: int, sign: float, device: Ints, loads: PhaseLoads, priced: Priced) -> None:
    """Add, or take back, what accelerators pay for a net.

    It is paid by whoever holds some of its units while others are elsewhere. It takes longer from
    the maker's cluster into another one, and for the maker if it goes to any other cluster.
    """
    held, cluster_of = loads.held, priced.cluster_of
    maker = device[priced.net_units[priced.net_ptr[net]]]
    phase, decided, first, last = priced.net_phase[net], 0, np.int64(1 << 40), np.int64(-1)
    for d in range(held.shape[1]):
        if held[net, d] > 0:
            decided += held[net, d]
            if cluster_of[d] >= 0:
                first, last = min(first, cluster_of[d]), max(last, cluster_of[d])
    for d in range(priced.num_accelerators):
        if 0 < held[net, d] < decided:
            if d == maker:
                far = first < last
            else:
                far = maker >= 0 and 0 <= cluster_of[maker] != cluster_of[d]
            factor = priced.slow_link_factor if far else 1.0
            loads.moves_s[phase, d] += sign * factor * priced.net_cost_s[net]


@jit
def put(u: int, to: int, device: Ints, loads: PhaseLoads, priced: Priced) -> None:
    """Give unit u another device, or none (-1), and keep the loads true."""
    unit_ptr, unit_nets, work_s = priced.unit_ptr, priced.unit_nets, priced.work_s
    for p in range(unit_ptr[u], unit_ptr[u + 1]):
        charge(unit_nets[p], -1.0, device, loads, priced)
    old = device[u]
    for d, sign in ((old, -1), (to, 1)):
        if d >= 0:
            kind = 0 if d < priced.num_accelerators else 1
            for phase in range(2):
                loads.work_s[phase, d] += sign * work_s[kind, phase, u]
            loads.held_bytes[d] += sign * priced.size_bytes[u]
            for p in range(unit_ptr[u], unit_ptr[u + 1]):
                loads.held[unit_nets[p], d] += sign
    device[u] = to
    for p in range(unit_ptr[u], unit_ptr[u + 1]):
        charge(unit_nets[p], 1.0, device, loads, priced)


@jit
def loads_with(device: Ints, priced: Priced) -> PhaseLoads:
    """The loads of units (U,) on devices, -1 for none, summed afresh."""
    loads = no_loads(priced)
    for u in range(len(device)):
        d = device[u]
        if d >= 0:
            kind = 0 if d < priced.num_accelerators else 1
            for phase in range(2):
                loads.work_s[phase, d] += priced.work_s[kind, phase, u]
            loads.held_bytes[d] += priced.size_bytes[u]
            for p in range(priced.unit_ptr[u], priced.unit_ptr[u + 1]):
                loads.held[priced.unit_nets[p], d] += 1
    for net in range(len(priced.net_cost_s)):
        charge(net, 1.0, device, loads, priced)
    return loads


@jit
def load_s(phase: int, d: int, loads: PhaseLoads, overlap: bool) -> float:
    """Seconds of one phase on one device."""
    work_s, moves_s = loads.work_s[phase, d], loads.moves_s[phase, d]
    return float(max(work_s, moves_s) if overlap else work_s + moves_s)


@jit
def sample_s(loads: PhaseLoads, overlap: bool) -> float:
    """The sum over phases of the largest load."""
    total = 0.0
    for phase in range(2):
        most = 0.0
        for d in range(loads.work_s.shape[1]):
            most = max(most, load_s(phase, d, loads, overlap))
        total += most
    return total


@jit
def samples_s(placements: Ints, priced: Priced, values_s: Floats) -> None:
    """The time between samples of each placement (N, U); memory is not looked at."""
    for n in range(len(placements)):
        values_s[n] = sample_s(loads_with(placements[n], priced), priced.overlap)


@jit
def is_repeated(d: int, used: Ints, priced: Priced) -> bool:
    """Whether an unused accelerator is like an earlier one: in its cluster, or one as empty."""
    cluster_of, num = priced.cluster_of, priced.num_accelerators
    for e in range(d):
        if used[e] > 0:
            continue
        if cluster_of[e] == cluster_of[d]:
            return True
        size, in_use = 0, 0
        for other in range(num):
            size += (cluster_of[other] == cluster_of[d]) - (cluster_of[other] == cluster_of[e])
            if cluster_of[other] == cluster_of[d] or cluster_of[other] == cluster_of[e]:
                in_use += used[other]
        if size == 0 and in_use == 0:
            return True
    return False
