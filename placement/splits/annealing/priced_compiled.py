"""Compiled annealing of splits for throughput under any rules, with the moves of the plain one."""

import numpy as np

from placement.compiled.jit import jit
from placement.compiled.random import seeded, uniform
from placement.core.graph import Ints
from placement.splits.annealing.throughput_compiled import norm_of, propose
from placement.splits.model.contract import UnitArrays
from placement.splits.model.priced import Priced
from placement.splits.model.priced_compiled import PhaseLoads, load_s, loads_with, put, sample_s


@jit
def energy(loads: PhaseLoads, overlap: bool, scale_s: float, power: float) -> float:
    """The sum over phases of the p-norm of the loads over `scale_s`."""
    num_devices = loads.work_s.shape[1]
    load = np.zeros(num_devices)
    total = 0.0
    for phase in range(2):
        for d in range(num_devices):
            # Sums that come and go leave less than nothing at times.
            load[d] = max(0.0, load_s(phase, d, loads, overlap))
        if load.max() > 0.0:
            total += norm_of(load, scale_s, power)
    return total


@jit
def anneal_priced(
    device: Ints,
    best_device: Ints,
    best_s: float,
    units: UnitArrays,
    priced: Priced,
    scale_s: float,
    power: float,
    temperature: float,
    iterations: int,
    seed: int,
) -> float:
    """Metropolis steps at one power and temperature; improves `best_device`, returns its load.

    `device` (U,) is the state and stays within memory if it was; `temperature` is relative to
    `scale_s`.
    """
    chance = seeded(seed)
    allowed, overlap = priced.allowed, priced.overlap
    num_units = len(device)
    loads = loads_with(device, priced)
    now = energy(loads, overlap, scale_s, power)
    group, target = np.zeros(num_units + 64, np.int64), np.zeros(num_units + 64, np.int64)
    marked = np.zeros(num_units, np.int64)
    for _ in range(iterations):
        size = propose(group, target, device, units, marked, chance)
        good = size > 0
        for i in range(size):
            good = good and allowed[group[i], target[i]]
        if not good:
            continue
        over = 0.0
        for i in range(size):
            u, to = group[i], target[i]
            target[i] = device[u]
            put(u, to, device, loads, priced)
        for d in range(priced.num_accelerators):
            over = max(over, loads.held_bytes[d] - priced.limit_bytes)
        then = energy(loads, overlap, scale_s, power) if over <= 0.0 else np.inf
        if then <= now or uniform(chance) < np.exp((now - then) / temperature):
            now = then
            worst = sample_s(loads, overlap)
            if worst < best_s * (1.0 - 1e-12):
                best_s = worst
                best_device[:] = device
        else:
            for i in range(size - 1, -1, -1):
                put(group[i], target[i], device, loads, priced)
    return best_s
