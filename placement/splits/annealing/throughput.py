"""Throughput without contiguity: annealing of units over devices, from cold and warm starts.

The cost model is that of Tarnawski et al., NeurIPS 2020. The objective is a p-norm of the loads,
whose power rises while the temperature falls (Kirkpatrick et al., "Optimization by simulated
annealing", Science 1983): a maximum alone would not tell whether the other devices got better.
What it comes to is improved two devices at a time: a sweep along a row splits what they hold in the
best way there is (the large moves of Kernighan and Lin, "An efficient heuristic procedure for
partitioning graphs", 1970, made exact). From where no two devices can be split better, a short
annealing leads away and two at a time lead back (iterated local search).
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from threading import Lock

import numpy as np

from placement.core.graph import Ints
from placement.splits.annealing.search import Budget, Chain, Tell, Work, run_chains, silent
from placement.splits.bounds.loads import throughput_bound_s
from placement.splits.model.contract import Units

STEPS = 20_000
# The share of the budget for the first cooling. The rest cools again and again for so many steps,
# by turns from so hot.
FIRST, AGAIN = 0.4, 100_000
HOT, COLD = 2e-2, 1e-5
HOT_AGAIN = (2e-3, 1e-2)
POWERS = (6.0, 60.0)
TINY_S = 1e-30
# Two devices are split anew for one power after the other, with loads told apart in so many steps,
# up to so much above the largest load. It counts as so many steps of annealing.
PAIR_POWERS, PAIR_LOADS, PAIR_ROOM, PAIR_STEPS = (8.0, 20.0, 60.0), 1000, 1.02, 10_000
# With more units than these two devices hold too many.
MOST_UNITS = 3_000


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
    row = _Row(units)
    works = [
        _work(units, row, c, 1_000_003 * (seed * num_chains + i)) for i, c in enumerate(chains)
    ]
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


class _Row:
    """Units in an order that few nets cross, found when it is first asked for."""

    def __init__(self, units: Units) -> None:
        self._units, self._lock = units, Lock()

    @property
    def order(self) -> Ints:
        with self._lock:
            return self._order

    @cached_property
    def _order(self) -> Ints:
        from placement.splits.bounds.row import narrow_order

        return narrow_order(self._units)


def _work(units: Units, row: _Row, chain: Chain, seed: int) -> Work:
    """A chain's annealing, which goes on wherever it was for the share of the budget."""
    search = _Annealing(units, row, chain, seed)
    # Compiled before the clock starts.
    search.compile()
    rounds = search.rounds()
    next(rounds)

    def step(share: float, number: int) -> int:
        return rounds.send(share)

    return step


class _Annealing:
    """One chain: the state it is in, and the best split that it has seen."""

    def __init__(self, units: Units, row: _Row, chain: Chain, seed: int) -> None:
        self.units, self.row, self.chain, self.seed = units, row, chain, seed
        self.device = chain.best.copy()
        self.is_plain = units.instance.rules.is_plain
        self.in_pairs = self.is_plain and units.num_units <= MOST_UNITS

    def rounds(self) -> Generator[int, float, None]:
        """Rounds without end; yields steps, is sent the share of the budget that is used up.

        Temperatures fall and powers rise, by the budget first and by steps then. A state is left
        for one that is no worse.
        """
        share = yield 0
        while share < FIRST:
            self.cool(share / FIRST, HOT)
            share = yield STEPS
        self.device[:] = self.chain.best
        yield from self.split_pairs()
        left = self.device.copy(), self.load_s()
        number = 0
        while True:
            hot = HOT_AGAIN[number % len(HOT_AGAIN)]
            for at in range(0, AGAIN, STEPS):
                self.cool(at / AGAIN, hot)
                yield STEPS
            yield from self.split_pairs()
            load_s = self.load_s()
            if load_s <= left[1]:
                left = self.device.copy(), load_s
            self.device[:] = left[0]
            number += 1

    def cool(self, within: float, hot: float) -> None:
        """Some steps at a share of the way from hot to cold."""
        power = POWERS[0] + (POWERS[1] - POWERS[0]) * within
        self.seed += 1
        self._anneal(power, hot * (COLD / hot) ** within, STEPS)

    def split_pairs(self) -> Generator[int, float, None]:
        """Split two devices anew until that helps no two of them."""
        from placement.splits.annealing.pairs_compiled import split_again

        if not self.in_pairs:
            return
        instance = self.units.instance
        num_accelerators = instance.num_accelerators
        pairs = [p for p in combinations(range(instance.num_devices), 2) if p[0] < num_accelerators]
        for power in PAIR_POWERS:
            scale_s = max(self.load_s(), TINY_S)
            how = PAIR_ROOM * scale_s, scale_s, power, PAIR_LOADS
            stale = set(pairs)
            while stale:
                for a, b in (p for p in pairs if p in stale):
                    stale.discard((a, b))
                    row, arrays = self.row.order, self.units.arrays
                    if split_again(a, b, self.device, row, arrays, *how):
                        stale.update(p for p in pairs if p != (a, b) and {*p} & {a, b})
                        self._tell()
                    yield PAIR_STEPS

    def load_s(self) -> float:
        return max_load_s(self.units, self.device)

    def _tell(self) -> None:
        load_s, chain = self.load_s(), self.chain
        if load_s < chain.best_s * (1.0 - 1e-12):
            chain.best[:], chain.best_s = self.device, load_s

    def _anneal(self, power: float, temperature: float, iterations: int) -> None:
        from placement.splits.annealing.priced_compiled import anneal_priced
        from placement.splits.annealing.throughput_compiled import anneal

        units, chain = self.units, self.chain
        how = max(chain.best_s, TINY_S), power, temperature, iterations, self.seed
        device, best, best_s, arrays = self.device, chain.best, chain.best_s, units.arrays
        if self.is_plain:
            chain.best_s = anneal(device, best, best_s, arrays, *how)
        else:
            chain.best_s = anneal_priced(device, best, best_s, arrays, units.priced, *how)

    def compile(self) -> None:
        """Run what is compiled once, to no effect."""
        from placement.splits.annealing.pairs_compiled import split_again

        self._anneal(POWERS[0], 1.0, 0)
        if self.in_pairs:
            nothing = np.zeros(0, dtype=np.int64)
            split_again(0, 0, self.device, nothing, self.units.arrays, 1.0, 1.0, 1.0, 1)
