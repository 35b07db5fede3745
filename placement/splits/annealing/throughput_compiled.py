"""Compiled annealing of splits for throughput, with incremental counts of nets on devices."""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import inlined, jit
from placement.compiled.random import below, seeded, uniform
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.contract import UnitArrays
from placement.splits.model.nets_compiled import count_nets

# The units of nets with more of them are not moved together.
WIDEST_NET = 32


class Loads(NamedTuple):
    """Load and bytes of each device (D,), and how many units of each net it holds (T, D)."""

    load: Floats
    held_bytes: Floats
    held: Ints


@jit
def loads_of(device: Ints, units: UnitArrays) -> Loads:
    """The devices' sums for the device of each unit (U,)."""
    acc_s, cpu_s, size_bytes = units.acc_s, units.cpu_s, units.size_bytes
    num_accelerators, num_devices = units.num_accelerators, units.allowed.shape[1]
    load, held_bytes = np.zeros(num_devices), np.zeros(num_devices)
    for u in range(len(device)):
        d = device[u]
        load[d] += acc_s[u] if d < num_accelerators else cpu_s[u]
        held_bytes[d] += size_bytes[u]
    held = count_nets(device, num_devices, num_accelerators, units, load)
    return Loads(load, held_bytes, held)


@inlined
def shift(u: int, to: int, device: Ints, loads: Loads, units: UnitArrays) -> None:
    """Put unit u on device `to` and keep the devices' sums true."""
    load, held_bytes, held = loads
    acc_s, cpu_s, size_bytes = units.acc_s, units.cpu_s, units.size_bytes
    unit_ptr, unit_nets, net_ptr = units.unit_ptr, units.unit_nets, units.net_ptr
    net_cost_s, num_accelerators = units.net_cost_s, units.num_accelerators
    old = device[u]
    device[u] = to
    held_bytes[old] -= size_bytes[u]
    held_bytes[to] += size_bytes[u]
    load[old] -= acc_s[u] if old < num_accelerators else cpu_s[u]
    load[to] += acc_s[u] if to < num_accelerators else cpu_s[u]
    for p in range(unit_ptr[u], unit_ptr[u + 1]):
        net = unit_nets[p]
        pins = net_ptr[net + 1] - net_ptr[net]
        if old < num_accelerators:
            if held[net, old] == 1:
                load[old] -= net_cost_s[net]
            elif held[net, old] == pins:
                load[old] += net_cost_s[net]
        held[net, old] -= 1
        held[net, to] += 1
        if to < num_accelerators:
            if held[net, to] == 1:
                load[to] += net_cost_s[net]
            elif held[net, to] == pins:
                load[to] -= net_cost_s[net]


@jit
def norm_of(load: Floats, scale_s: float, power: float) -> float:
    """The p-norm of the loads over `scale_s`: smooth, and near their maximum for large powers."""
    total = 0.0
    for d in range(len(load)):
        if load[d] > 0.0:
            total += (load[d] / scale_s) ** power
    return float(total ** (1.0 / power))


@inlined
def propose(
    group: Ints,
    target: Ints,
    device: Ints,
    units: UnitArrays,
    marked: Ints,
    chance: Ints,
) -> int:
    """Units to move and their new devices, by chance; returns how many units there are.

    One unit to the device of a neighbour or any device, two units swapped, the units of one device
    in an interval of the order, all units of a net, or what hangs together by nets that cost no
    less than one taken by chance.
    """
    net_ptr, net_units, net_cost_s = units.net_ptr, units.net_units, units.net_cost_s
    unit_ptr, unit_nets = units.unit_ptr, units.unit_nets
    num_units, num_devices = units.allowed.shape
    u = below(num_units, chance)
    kind = below(24, chance)
    at = unit_ptr[u] + below(max(1, unit_ptr[u + 1] - unit_ptr[u]), chance)
    net = unit_nets[at] if at < unit_ptr[u + 1] else -1
    to = below(num_devices, chance)
    if net >= 0 and kind % 2 == 0:
        pins = net_ptr[net + 1] - net_ptr[net]
        to = device[net_units[net_ptr[net] + below(pins, chance)]]
    if kind < 6:
        group[0], target[0] = u, to
        return 1 if to != device[u] else 0
    if kind < 10:
        v = below(num_units, chance)
        if device[u] == device[v]:
            return 0
        group[0], target[0] = u, device[v]
        group[1], target[1] = v, device[u]
        return 2
    size = 0
    if kind < 14 and to != device[u]:
        length = 2 << below(6, chance)
        for v in range(u, min(num_units, u + 1 + below(length, chance))):
            if device[v] == device[u]:
                group[size] = v
                size += 1
    elif 14 <= kind < 16 and net >= 0 and net_ptr[net + 1] - net_ptr[net] <= WIDEST_NET:
        for p in range(net_ptr[net], net_ptr[net + 1]):
            if device[net_units[p]] != to:
                group[size] = net_units[p]
                size += 1
    elif kind >= 16:
        dear_s = net_cost_s[below(len(net_cost_s), chance)] if len(net_cost_s) else 0.0
        most = 2 << below(7, chance)
        alike = kind < 22
        if not alike or to != device[u]:
            group[0] = u
            size = gather(group, most, dear_s, alike, device, units, marked)
    target[:size] = to
    return size


@jit
def gather(
    group: Ints,
    most: int,
    dear_s: float,
    alike: bool,
    device: Ints,
    units: UnitArrays,
    marked: Ints,
) -> int:
    """List what hangs together with the first unit of `group`; returns how many units there are.

    Units hang together by nets of at least `dear_s`, until there are `most` or a few more; with
    `alike` they are on one device. `marked` (U,) is zero before and after.
    """
    net_ptr, net_units, net_cost_s = units.net_ptr, units.net_units, units.net_cost_s
    unit_ptr, unit_nets = units.unit_ptr, units.unit_nets
    u = group[0]
    marked[u] = 1
    size, at = 1, 0
    while at < size and size < most:
        v = group[at]
        at += 1
        for q in range(unit_ptr[v], unit_ptr[v + 1]):
            net = unit_nets[q]
            if net_cost_s[net] >= dear_s and net_ptr[net + 1] - net_ptr[net] <= WIDEST_NET:
                for p in range(net_ptr[net], net_ptr[net + 1]):
                    w = net_units[p]
                    if marked[w] == 0 and not (alike and device[w] != device[u]):
                        marked[w] = 1
                        group[size] = w
                        size += 1
    for i in range(size):
        marked[group[i]] = 0
    return size


@jit
def anneal(
    device: Ints,
    best_device: Ints,
    best_s: float,
    units: UnitArrays,
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
    allowed = units.allowed
    num_units, num_devices = allowed.shape
    loads = loads_of(device, units)
    load = loads.load
    now = norm_of(load, scale_s, power)
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
            shift(u, to, device, loads, units)
        for d in range(units.num_accelerators):
            over = max(over, loads.held_bytes[d] - units.limit_bytes)
        then = norm_of(load, scale_s, power) if over <= 0.0 else np.inf
        if then <= now or uniform(chance) < np.exp((now - then) / temperature):
            now = then
            worst = 0.0
            for d in range(num_devices):
                worst = max(worst, load[d])
            if worst < best_s * (1.0 - 1e-12):
                best_s = worst
                best_device[:] = device
        else:
            for i in range(size - 1, -1, -1):
                shift(group[i], target[i], device, loads, units)
    return best_s
