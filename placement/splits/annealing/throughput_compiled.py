"""Compiled annealing of splits for throughput, with incremental counts of nets on devices."""

import numpy as np

from placement.compiled.jit import jit
from placement.compiled.random import below, seeded, uniform
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.instance import Bools

# The units of nets with more of them are not moved together.
WIDEST_NET = 32


@jit
def loads_of(
    device: Ints,
    acc_s: Floats,
    cpu_s: Floats,
    size_bytes: Floats,
    net_ptr: Ints,
    net_units: Ints,
    net_cost_s: Floats,
    num_accelerators: int,
    num_devices: int,
) -> tuple[Floats, Floats, Ints]:
    """Load and bytes of each device (D,), and how many units of each net it holds (T, D)."""
    load, held_bytes = np.zeros(num_devices), np.zeros(num_devices)
    held = np.zeros((len(net_cost_s), num_devices), np.int64)
    for u in range(len(device)):
        d = device[u]
        load[d] += acc_s[u] if d < num_accelerators else cpu_s[u]
        held_bytes[d] += size_bytes[u]
    for net in range(len(net_cost_s)):
        for p in range(net_ptr[net], net_ptr[net + 1]):
            held[net, device[net_units[p]]] += 1
        for d in range(num_accelerators):
            if 0 < held[net, d] < net_ptr[net + 1] - net_ptr[net]:
                load[d] += net_cost_s[net]
    return load, held_bytes, held


@jit
def shift(
    u: int,
    to: int,
    device: Ints,
    load: Floats,
    held_bytes: Floats,
    held: Ints,
    acc_s: Floats,
    cpu_s: Floats,
    size_bytes: Floats,
    unit_ptr: Ints,
    unit_nets: Ints,
    net_ptr: Ints,
    net_cost_s: Floats,
    num_accelerators: int,
) -> None:
    """Put unit u on device `to` and keep the devices' sums true."""
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


@jit
def propose(
    group: Ints,
    target: Ints,
    device: Ints,
    allowed: Bools,
    net_ptr: Ints,
    net_units: Ints,
    unit_ptr: Ints,
    unit_nets: Ints,
    net_cost_s: Floats,
    marked: Ints,
    chance: Ints,
) -> int:
    """Units to move and their new devices, by chance; returns how many units there are.

    One unit to the device of a neighbour or any device, two units swapped, the units of one device
    in an interval of the order, all units of a net, or what hangs together by nets that cost no
    less than one taken by chance.
    """
    num_units, num_devices = allowed.shape
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
            size = gather(
                group, most, dear_s, alike, device, net_ptr, net_units, unit_ptr, unit_nets,
                net_cost_s, marked,
            )  # fmt: skip
    target[:size] = to
    return size


@jit
def gather(
    group: Ints,
    most: int,
    dear_s: float,
    alike: bool,
    device: Ints,
    net_ptr: Ints,
    net_units: Ints,
    unit_ptr: Ints,
    unit_nets: Ints,
    net_cost_s: Floats,
    marked: Ints,
) -> int:
    """List what hangs together with the first unit of `group`; returns how many units there are.

    Units hang together by nets of at least `dear_s`, until there are `most` or a few more; with
    `alike` they are on one device. `marked` (U,) is zero before and after.
    """
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
    allowed: Bools,
    num_accelerators: int,
    limit_bytes: float,
    acc_s: Floats,
    cpu_s: Floats,
    size_bytes: Floats,
    net_ptr: Ints,
    net_units: Ints,
    net_cost_s: Floats,
    unit_ptr: Ints,
    unit_nets: Ints,
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
    num_units, num_devices = allowed.shape
    load, held_bytes, held = loads_of(
        device, acc_s, cpu_s, size_bytes, net_ptr, net_units, net_cost_s, num_accelerators,
        num_devices,
    )  # fmt: skip
    now = norm_of(load, scale_s, power)
    group, target = np.zeros(num_units + 64, np.int64), np.zeros(num_units + 64, np.int64)
    marked = np.zeros(num_units, np.int64)
    for _ in range(iterations):
        size = propose(
            group, target, device, allowed, net_ptr, net_units, unit_ptr, unit_nets, net_cost_s,
            marked, chance,
        )  # fmt: skip
        good = size > 0
        for i in range(size):
            good = good and allowed[group[i], target[i]]
        if not good:
            continue
        over = 0.0
        for i in range(size):
            u, to = group[i], target[i]
            target[i] = device[u]
            shift(
                u, to, device, load, held_bytes, held, acc_s, cpu_s, size_bytes, unit_ptr,
                unit_nets, net_ptr, net_cost_s, num_accelerators,
            )  # fmt: skip
        for d in range(num_accelerators):
            over = max(over, held_bytes[d] - limit_bytes)
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
                shift(
                    group[i], target[i], device, load, held_bytes, held, acc_s, cpu_s, size_bytes,
                    unit_ptr, unit_nets, net_ptr, net_cost_s, num_accelerators,
                )  # fmt: skip
    return best_s
