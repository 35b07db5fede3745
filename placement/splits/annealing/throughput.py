"""Throughput without contiguity: annealing of units over devices, from cold and warm starts.

The cost model is that of Tarnawski et al., NeurIPS 2020. The objective is a p-norm of the loads,
whose power rises while the temperature falls (Kirkpatrick et al., "Optimization by simulated
annealing", Science 1983): a maximum alone would not tell whether the other devices got better.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.graph import Ints
from placement.splits.annealing.search import Budget, Chain, Tell, Work, run_chains, silent
from placement.splits.bounds.loads import throughput_bound_s
from placement.splits.model.contract import Units

STEPS = 20_000
# The share of the budget for the first cooling; the rest cools again, from the best and less hot.
FIRST, AGAIN = 0.7, 0.1
HOT, COLD = 2e-2, 1e-5
POWERS = (6.0, 60.0)
TINY_S = 1e-30


@dataclass(frozen=True, eq=False)
class Split:
    """Device of each unit (U,) and the largest load."""

    device_of_unit: Ints
    load_s: float


def best_split(
    units: Units,
    warm: Ints | None,
    *,
    budget: Budget,
    num_chains: int = 2,
    seed: int = 0,
    bound_s: float = 0.0,
    tell: Tell = silent,
) -> Split | None:
    """The best split found, None if no start keeps within memory.

    Every other chain starts from `warm` (devices of units), if given, the others from a greedy one.
    The search ends where it meets `bound_s`, which no load is below, or what is plain to see.
    """
    cold = greedy_start(units)
    starts = [start for start in (cold, warm) if start is not None]
    if not starts:
        return None
    chains = []
    for i in range(num_chains):
        start = starts[i % len(starts)]
        chains.append(Chain(max_load_s(units, start), start.copy()))
    works = [_work(units, c, 1_000_003 * (seed * num_chains + i)) for i, c in enumerate(chains)]
    least_s = max(bound_s, throughput_bound_s(units))
    best = run_chains(chains, works, budget, tell, least_s)
    return Split(best.best, max_load_s(units, best.best))


def max_load_s(units: Units, device_of_unit: Ints) -> float:
    """The largest load of a split, or the sum of one of each phase, summed afresh."""
    from placement.splits.annealing.throughput_compiled import loads_of
    from placement.splits.model.priced_compiled import loads_with, sample_s

    if not units.instance.rules.is_plain:
        loads = loads_with(device_of_unit, units.priced)
        return float(sample_s(loads, units.instance.rules.overlap))
    return float(loads_of(device_of_unit, units.arrays).load.max(initial=0.0))


def greedy_start(units: Units) -> Ints | None:
    """Units by falling work (by size if memory fails so), each where the load stays least.

    None if a unit fits no device either way.
    """
    by_work = np.lexsort((-units.size_bytes, -np.where(units.on_acc, units.acc_s, np.inf)))
    start = _greedy(units, by_work)
    return _greedy(units, np.lexsort((-units.acc_s, -units.size_bytes))) if start is None else start


def _greedy(units: Units, order: Ints) -> Ints | None:
    instance = units.instance
    allowed = units.allowed()
    is_acc = np.arange(instance.num_devices) < instance.num_accelerators
    room = np.where(is_acc, instance.limit_bytes, np.inf)
    load = np.zeros(instance.num_devices)
    device = np.zeros(units.num_units, dtype=np.int64)
    for u in order.tolist():
        seconds = np.where(is_acc, units.acc_s[u], units.cpu_s[u])
        after = np.where(allowed[u] & (units.size_bytes[u] <= room), load + seconds, np.inf)
        d = int(after.argmin())
        if not np.isfinite(after[d]):
            return None
        device[u] = d
        load[d] = after[d]
        room[d] -= units.size_bytes[u]
    return device


def _work(units: Units, chain: Chain, seed: int) -> Work:
    """A chain's annealing: falling temperature and rising power, twice."""
    from placement.splits.annealing.priced_compiled import anneal_priced
    from placement.splits.annealing.throughput_compiled import anneal

    device = chain.best.copy()
    again = False
    is_plain = units.instance.rules.is_plain

    def run(power: float, temperature: float, iterations: int, seed: int) -> float:
        how = max(chain.best_s, TINY_S), power, temperature, iterations, seed
        if is_plain:
            return anneal(device, chain.best, chain.best_s, units.arrays, *how)
        arrays, priced = units.arrays, units.priced
        return anneal_priced(device, chain.best, chain.best_s, arrays, priced, *how)

    def step(share: float, number: int) -> int:
        nonlocal again
        if share >= FIRST and not again:
            again = True
            device[:] = chain.best
        within = (share - FIRST) / (1.0 - FIRST) if again else share / FIRST
        hot = HOT * (AGAIN if again else 1.0)
        power = POWERS[0] + (POWERS[1] - POWERS[0]) * within
        chain.best_s = run(power, hot * (COLD / hot) ** within, STEPS, seed + number)
        return STEPS

    # Compiled before the clock starts.
    run(POWERS[0], 1.0, 0, 0)
    return step
