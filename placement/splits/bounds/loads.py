"""Bounds on the largest load of any split, contiguous or not: offloading, counting, single units.

With k alike accelerators and a threshold B, the CPUs take no more work than a fractional knapsack
of their time lets them (Dantzig, "Discrete-variable extremum problems", 1957), and k B must hold
what remains. Among the t largest units, those beyond k m - 1 that no CPU has time for put m units
on one accelerator, which costs at least the m smallest of them. No split has a largest load below
the least B that passes.
"""

import heapq
from dataclasses import replace

import numpy as np

from placement.core.costs import Floats
from placement.splits.model.contract import Units
from placement.splits.model.instance import Bools

PRECISION = 1e-9


def throughput_bound_s(units: Units, most_replicas: int = 1) -> float:
    """Seconds that the largest load of no split can be below.

    Where up to `most_replicas` accelerators may share a part, only the sums count. Where phases
    count apart, so do their bounds, whose sum may be larger than that of all work at once.
    """
    bound_s = plain_bound_s(units, most_replicas)
    if not units.instance.rules.gpipe or not np.isfinite(bound_s):
        return bound_s
    return max(bound_s, sum(phase_bounds_s(units, most_replicas)))


def plain_bound_s(units: Units, most_replicas: int = 1) -> float:
    """The same for the largest load of all phases together."""
    return _work_bound_s(units, units.acc_s, units.cpu_s, most_replicas)


def phase_bounds_s(units: Units, most_replicas: int = 1) -> tuple[float, float]:
    """Seconds that the largest forward load and the largest backward load cannot be below."""
    acc, cpu = units.priced.work_s
    forward_s, backward_s = (_work_bound_s(units, acc[p], cpu[p], most_replicas) for p in range(2))
    return forward_s, backward_s


def _work_bound_s(units: Units, acc_s: Floats, cpu_s: Floats, most_replicas: int) -> float:
    """The bound for some work of the units, by kind of device."""
    instance = units.instance
    acc = np.where(units.on_acc & (instance.num_accelerators > 0), acc_s, np.inf)
    cpu = np.where(units.on_cpu & (instance.num_cpus > 0), cpu_s, np.inf)
    acc_at_once = acc / most_replicas
    fastest = np.minimum(acc_at_once, cpu)
    low = float(fastest.max(initial=0.0))
    if not np.isfinite(low):
        return np.inf
    high = max(low, float(np.minimum(acc, cpu).sum()))
    if _fits(units, acc, cpu, low, most_replicas):
        return low
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        fits = _fits(units, acc, cpu, middle, most_replicas)
        low, high = (low, middle) if fits else (middle, high)
    return low


def plain_sums(units: Units) -> Units:
    """Units whose loads as plain sums are never above those under the instance's rules.

    The largest sum is at most what phases apart or slower links make of it; where transfers overlap
    compute they are left out.
    """
    if not units.instance.rules.overlap:
        return units
    none = np.zeros(0, dtype=np.int64)
    return replace(
        units, net_ptr=np.zeros(1, dtype=np.int64), net_units=none, net_cost_s=np.zeros(0)
    )


def part_load_s(units: Units, held: Bools, on_cpu: bool) -> float:
    """Load of one device that holds some units (U,) and no others."""
    if on_cpu:
        return float(units.cpu_s[held].sum())
    net_of_pin = np.repeat(np.arange(len(units.net_cost_s)), np.diff(units.net_ptr))
    pins = np.bincount(net_of_pin, held[units.net_units], len(units.net_cost_s))
    cut = (pins > 0) & (pins < np.diff(units.net_ptr))
    return float(units.acc_s[held].sum() + units.net_cost_s[cut].sum())


def offload_s(units: Units, budget_s: float) -> float:
    """Most accelerator work that CPUs can take in `budget_s` seconds, units being divisible."""
    both = units.on_acc & units.on_cpu
    acc, cpu = units.acc_s[both], units.cpu_s[both]
    return _knapsack(acc, cpu, budget_s)


def _knapsack(value: Floats, weight: Floats, budget: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.where(value > 0, -value / weight, 0.0), kind="stable")
    value, weight = value[order], weight[order]
    filled = np.cumsum(weight)
    whole = int(np.searchsorted(filled, budget, side="right"))
    total = float(value[:whole].sum())
    if whole < len(value) and value[whole] > 0:
        left = budget - (float(filled[whole - 1]) if whole else 0.0)
        total += float(value[whole]) * left / float(weight[whole])
    return total


def _fits(units: Units, acc: Floats, cpu: Floats, cap_s: float, most_replicas: int) -> bool:
    """Whether neither argument rules out a split whose largest load is `cap_s`."""
    instance = units.instance
    k, cpus = instance.num_accelerators, instance.num_cpus
    must = acc > cap_s * most_replicas
    budget = cpus * cap_s - float(cpu[must].sum())
    if budget < 0:
        return False
    may = ~must & (cpu <= cap_s)
    rest = float(acc[~must].sum()) - _knapsack(acc[may], cpu[may], budget)
    if rest > k * cap_s:
        return False
    return (
        k == 0
        or most_replicas > 1
        or _counts_fit(acc[~must], np.where(may, cpu, np.inf)[~must], budget, k, cap_s)
    )


def _counts_fit(acc: Floats, cpu: Floats, budget: float, k: int, cap_s: float) -> bool:
    """Whether, for every t, one accelerator can take its share of the t largest units."""
    order = np.argsort(-acc, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(acc[order])])
    offloaded: list[float] = []
    kept = 0
    for t, seconds in enumerate(cpu[order].tolist(), start=1):
        kept += 1
        if seconds <= budget or (offloaded and seconds < -offloaded[0]):
            heapq.heappush(offloaded, -seconds)
            budget -= seconds
            kept -= 1
            while budget < 0:
                budget -= heapq.heappop(offloaded)
                kept += 1
        m = -(-kept // k)
        if m > 0 and sums[t] - sums[t - m] > cap_s:
            return False
    return True
