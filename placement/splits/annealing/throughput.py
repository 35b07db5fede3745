"""Throughput without contiguity: annealing of units over devices, from cold and warm starts.

The cost model is that of Tarnawski et al., NeurIPS 2020. The objective is a p-norm of the loads,
whose power rises while the temperature falls (Kirkpatrick et al., "Optimization by simulated
annealing", Science 1983): a maximum alone would not tell whether the other devices got better.
What it comes to is improved two devices at a time: a sweep along a row splits what they hold in the
best way there is (the large moves of Kernighan and Lin, "An efficient heuristic procedure for
partitioning graphs", 1970, made exact). From where no two devices can be split better, a short
annealing leads away and two at a time lead back (iterated local search).
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from threading import Lock

import numpy as np

from placement.core.graph import Ints
from placement.parallel.calls import Call, travels
from placement.parallel.executor import HERE, Executor
from placement.splits.annealing.search import (
    Annealing,
    Budget,
    Chain,
    Leg,
    Tell,
    run_chains,
    silent,
)
from placement.splits.bounds.loads import throughput_bound_s
from placement.splits.model.contract import Units
from placement.splits.model.instance import Bools

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
    executor: Executor = HERE,
) -> Split | None:
    """The best split found, None if no start keeps within memory.

    Every other chain starts from `warm` (devices of units), if given, the others from a greedy one.
    The search ends where it meets `bound_s`, which no load is below, or what is plain to see.
    """
    cold = greedy_start(units)
    starts = [start for start in (cold, warm) if start is not None]
    if not starts:
        return None
    annealing = Rounds(units)
    chains = [
        annealing.chain(starts[i % len(starts)], 1_000_003 * (seed * num_chains + i))
        for i in range(num_chains)
    ]
    # Compiled before the clock starts.
    annealing.compile(chains[0])
    least_s = max(bound_s, throughput_bound_s(units))
    best = run_chains(chains, annealing, budget, tell, least_s, executor)
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


@dataclass(eq=False)
class Round:
    """Where a chain is in its rounds, of which each cools first and then splits pairs of devices.

    Stage 0 cools, by `cooled` steps so far. Each later one has a power for pairs, and loads over
    `scale_s`: those that are `stale` (P,) are still to be split anew, the one from number `pair` on
    first. What the round came to is left for `left` (U,), where it began, if the load is larger
    than that one's: anything is better than where the first began.
    """

    left: Ints
    stale: Bools
    left_s: float = math.inf
    number: int = 0
    cooled: int = 0
    stage: int = 0
    scale_s: float = TINY_S
    pair: int = 0


class Rounds(Annealing[Round]):
    """Rounds without end: temperatures fall and powers rise, then two devices at a time are split.

    The first falls by the share of the budget that is used up, the others by steps. A state is left
    for one that is no worse.
    """

    def __init__(self, units: Units) -> None:
        self._units, self._row = units, _Row(units)
        instance = units.instance
        self._is_plain = instance.rules.is_plain
        self._in_pairs = self._is_plain and units.num_units <= MOST_UNITS
        self._powers = PAIR_POWERS if self._in_pairs else ()
        pairs = combinations(range(instance.num_devices), 2)
        self._pairs = [pair for pair in pairs if pair[0] < instance.num_accelerators]

    def chain(self, start: Ints, seed: int) -> Chain[Round]:
        """A chain that has done nothing yet."""
        begin = Round(start.copy(), np.zeros(len(self._pairs), dtype=np.bool_))
        return Chain(max_load_s(self._units, start), start.copy(), start.copy(), begin, seed)

    def step(self, chain: Chain[Round], share: float) -> int:
        at = chain.round
        while True:
            if at.stage == 0:
                within = at.cooled / AGAIN if at.number else share / FIRST
                if within < 1.0:
                    self._cool(chain, within)
                    return STEPS
                if at.number == 0:
                    chain.now[:] = chain.best
                self._begin_stage(chain)
            elif at.stage > len(self._powers):
                self._begin_round(chain)
            elif at.stale.any():
                self._split_pair(chain)
                return PAIR_STEPS
            else:
                self._begin_stage(chain)

    def going(self, chain: Chain[Round], leg: Leg) -> Call:
        return Call(gone, (self._units,), (chain, leg))

    def compile(self, chain: Chain[Round]) -> None:
        """Run what is compiled once, to no effect."""
        from placement.splits.annealing.pairs_compiled import split_again

        self._anneal(chain, POWERS[0], 1.0, 0)
        if self._in_pairs:
            nothing = np.zeros(0, dtype=np.int64)
            split_again(0, 0, chain.now, nothing, self._units.arrays, 1.0, 1.0, 1.0, 1)

    def _cool(self, chain: Chain[Round], within: float) -> None:
        """Some steps at a share of the way from hot to cold."""
        number = chain.round.number
        hot = HOT_AGAIN[(number - 1) % len(HOT_AGAIN)] if number else HOT
        power = POWERS[0] + (POWERS[1] - POWERS[0]) * within
        chain.seed += 1
        self._anneal(chain, power, hot * (COLD / hot) ** within, STEPS)
        chain.round.cooled += STEPS

    def _begin_stage(self, chain: Chain[Round]) -> None:
        """Have all pairs split for the next power."""
        at = chain.round
        at.stage, at.pair, at.stale[:] = at.stage + 1, 0, True
        at.scale_s = max(max_load_s(self._units, chain.now), TINY_S)

    def _begin_round(self, chain: Chain[Round]) -> None:
        """Cool again, from where the round came to or from where it began."""
        at, load_s = chain.round, max_load_s(self._units, chain.now)
        if load_s <= at.left_s:
            at.left[:], at.left_s = chain.now, load_s
        chain.now[:] = at.left
        at.number, at.cooled, at.stage, at.stale[:] = at.number + 1, 0, 0, False

    def _split_pair(self, chain: Chain[Round]) -> None:
        """Split the next two devices anew; those that share one of them are then stale."""
        from placement.splits.annealing.pairs_compiled import split_again

        at, device, units = chain.round, chain.now, self._units
        stale = np.flatnonzero(at.stale)
        number = int(stale[np.searchsorted(stale, at.pair) % len(stale)])
        at.stale[number], at.pair = False, number + 1
        a, b = self._pairs[number]
        how = PAIR_ROOM * at.scale_s, at.scale_s, self._powers[at.stage - 1], PAIR_LOADS
        if split_again(a, b, device, self._row.order, units.arrays, *how):
            at.stale |= [len({a, b, *other}) == 3 for other in self._pairs]
            load_s = max_load_s(units, device)
            if load_s < chain.best_s * (1.0 - 1e-12):
                chain.best[:], chain.best_s = device, load_s

    def _anneal(
        self, chain: Chain[Round], power: float, temperature: float, iterations: int
    ) -> None:
        """Steps at one power and temperature."""
        from placement.splits.annealing.priced_compiled import anneal_priced
        from placement.splits.annealing.throughput_compiled import anneal

        units, device = self._units, chain.now
        how = max(chain.best_s, TINY_S), power, temperature, iterations, chain.seed
        best, best_s, arrays = chain.best, chain.best_s, units.arrays
        if self._is_plain:
            chain.best_s = anneal(device, best, best_s, arrays, *how)
        else:
            chain.best_s = anneal_priced(device, best, best_s, arrays, units.priced, *how)


@travels
def gone(units: Units, chain: Chain[Round], leg: Leg, seconds: float) -> Chain[Round]:
    """A chain after a leg."""
    return _kept(units).go(chain, leg, seconds)


# The row of units takes a while to find, and a chain has many legs.
@lru_cache(maxsize=2)
def _kept(units: Units) -> Rounds:
    return Rounds(units)
