"""Latency by subgraph calls: annealing of units over calls, from linearised starts.

The objective is that of Tarnawski et al., NeurIPS 2020: an accelerator runs up to q calls, each
starts when all its inputs are there and ends with all its outputs; CPU nodes run by themselves.
Every step evaluates the whole sample; calls that would wait for each other are rejected.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

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
from placement.splits.bounds.chain import latency_bound_s
from placement.splits.exact.linear import latency_parts
from placement.splits.model.contract import Units, contiguous_units
from placement.splits.model.instance import Bools, SplitInstance, csr
from placement.splits.model.timing import Timing, timing_of

NUM_ORDERS = 12
STEPS = 4000
CYCLES = 4
HOT, COLD = 3e-2, 1e-4
TINY_S = 1e-30


@dataclass(frozen=True, eq=False)
class Calls:
    """A split by calls: slot of each class (C,), -1 on a CPU, and the seconds of one sample."""

    slot_of_class: Ints
    latency_s: float


class CallSearch:
    """An instance with q calls per accelerator, ready to evaluate slots of units."""

    def __init__(self, instance: SplitInstance, calls_each: int) -> None:
        self.instance = instance
        self.calls_each = calls_each
        self.timing = timing_of(instance)
        self.num_slots = instance.num_accelerators * calls_each
        self.unit_rows = _unit_rows(self.timing)

    @property
    def units(self) -> Units:
        return self.timing.units

    def value_s(self, slot: Ints) -> float:
        """Seconds of one sample, infinite for calls that wait for each other or lack memory."""
        from placement.splits.annealing.sample_compiled import sample_s, slots_of

        nodes = self.timing.nodes
        slots = slots_of(slot, self.units.arrays, nodes, self.num_slots)
        by_accelerator = slots.held_bytes.reshape(-1, self.calls_each).sum(axis=1)
        if (by_accelerator > self.instance.limit_bytes).any():
            return np.inf
        size = self.timing.num_nodes + self.num_slots
        return sample_s(
            slot,
            slots.call_s,
            slots.nodes_in,
            self.calls_each,
            nodes.cpu_s,
            nodes,
            np.zeros((5, size), dtype=np.int64),
            np.zeros(size),
        )

    def allowed(self) -> Bools:
        """Whether a unit may be on an accelerator or, last column, on a CPU, (U, A + 1)."""
        allowed, k = self.units.allowed(), self.instance.num_accelerators
        on_cpu = np.asarray(allowed[:, k:].any(axis=1))
        return np.concatenate([allowed[:, :k], on_cpu[:, None]], axis=1)


class Cycles(Annealing[int]):
    """Cycles of falling temperature, each from the best so far; rounds are their numbers."""

    def __init__(self, search: CallSearch) -> None:
        from placement.splits.annealing.latency_compiled import CallArrays

        units, nodes = search.units.arrays, search.timing.nodes
        self._search = search
        self._calls = CallArrays(
            units, nodes, *search.unit_rows, search.allowed(), search.calls_each
        )

    def step(self, chain: Chain[int], share: float) -> int:
        at = share * CYCLES
        if int(at) > chain.round:
            chain.round = int(at)
            chain.now[:] = chain.best
        hot = HOT * 0.5**chain.round
        temperature_s = max(chain.best_s, TINY_S) * hot * (COLD / hot) ** (at - int(at))
        chain.best_s = self.run(chain, temperature_s, STEPS)
        chain.seed += 1
        return STEPS

    def run(self, chain: Chain[int], temperature_s: float, iterations: int) -> float:
        """Steps at one temperature; the seconds of the best sample."""
        from placement.splits.annealing.latency_compiled import anneal

        state = chain.now, chain.best, chain.best_s
        return anneal(*state, self._calls, temperature_s, iterations, chain.seed)

    def going(self, chain: Chain[int], leg: Leg) -> Call:
        search = self._search
        return Call(gone, (search.instance,), (search.calls_each, chain, leg))


@travels
def gone(
    instance: SplitInstance, calls_each: int, chain: Chain[int], leg: Leg, seconds: float
) -> Chain[int]:
    """A chain after a leg."""
    return _kept(instance, calls_each).go(chain, leg, seconds)


@lru_cache(maxsize=2)
def _kept(instance: SplitInstance, calls_each: int) -> Cycles:
    return Cycles(CallSearch(instance, calls_each))


def best_calls(
    instance: SplitInstance,
    *,
    calls_each: int,
    budget: Budget,
    num_chains: int = 2,
    seed: int = 0,
    warm: Ints | None = None,
    tell: Tell = silent,
    executor: Executor = HERE,
) -> Calls | None:
    """The best split found with at most `calls_each` calls per accelerator, None if none was.

    `warm` gives slots of classes to start from, besides linearised starts and everything on CPUs.
    Ends early where the value meets a proven bound.
    """
    search = CallSearch(instance, calls_each)
    starts = list(_starts(search, warm, NUM_ORDERS, seed))
    if not starts:
        return None
    starts.sort(key=lambda start: start.best_s)
    picked = [starts[i % min(len(starts), 3)] for i in range(num_chains)]
    chains = [
        Chain(s.best_s, s.best.copy(), s.best.copy(), 0, 1_000_003 * (seed * num_chains + i))
        for i, s in enumerate(picked)
    ]
    annealing = Cycles(search)
    # Compiled before the clock starts.
    annealing.run(chains[0], 1.0, 0)
    bound_s = latency_bound_s(instance, calls_each, starts[0].best_s)
    best = run_chains(chains, annealing, budget, tell, bound_s, executor)
    value_s = search.value_s(best.best)
    return Calls(best.best[search.units.unit_of_class], value_s)


def in_calls(slot_of_class: Ints, calls_each: int) -> Ints:
    """Slots of a split with one call per accelerator where there may be so many."""
    return np.where(slot_of_class >= 0, slot_of_class * calls_each, -1)


def best_start(instance: SplitInstance, *, num_orders: int, seed: int = 0) -> Calls | None:
    """The best of the linearised splits and of everything on CPUs, with one call each."""
    search = CallSearch(instance, 1)
    starts = list(_starts(search, None, num_orders, seed))
    if not starts:
        return None
    best = min(starts, key=lambda start: start.best_s)
    return Calls(best.best[search.units.unit_of_class], best.best_s)


def _starts(
    search: CallSearch, warm: Ints | None, num_orders: int, seed: int
) -> Iterator[Chain[int]]:
    units, q = search.units, search.calls_each
    everywhere = np.full(units.num_units, -1, dtype=np.int64)
    candidates = [everywhere] if units.on_cpu.all() else []
    if warm is not None:
        candidates.append(_by_unit(units, warm))
    for slot_of_class in linear_starts(search.instance, num_orders, seed):
        slot = _by_unit(units, slot_of_class)
        candidates.append(in_calls(slot, q))
    for slot in candidates:
        value_s = search.value_s(slot)
        if np.isfinite(value_s):
            yield Chain(value_s, slot, slot, 0)


def _by_unit(units: Units, of_class: Ints) -> Ints:
    slot = np.zeros(units.num_units, dtype=np.int64)
    slot[units.unit_of_class] = of_class
    return slot


def linear_starts(instance: SplitInstance, num_orders: int, seed: int) -> Iterator[Ints]:
    """Slots of classes (one call per accelerator) from linear orders of the fused graph."""
    fused = contiguous_units(replace(instance, backward=np.zeros_like(instance.backward)))
    timing = timing_of(instance, fused)
    for device_of_unit in latency_parts(timing, num_orders, seed):
        device = device_of_unit[fused.unit_of_class]
        yield np.where(device < instance.num_accelerators, device, -1)


def _unit_rows(timing: Timing) -> tuple[Ints, Ints, Ints, Ints]:
    """Units after and before each unit, by timed nodes, as two CSR pairs."""
    num, nodes = timing.units.num_units, timing.nodes
    after: list[set[int]] = [set() for _ in range(num)]
    before: list[set[int]] = [set() for _ in range(num)]
    for n in range(timing.num_nodes):
        u = int(nodes.unit_of[n])
        for v in nodes.unit_of[nodes.succ[nodes.succ_ptr[n] : nodes.succ_ptr[n + 1]]].tolist():
            if u != v:
                after[u].add(v)
                before[v].add(u)
    return *csr([sorted(a) for a in after]), *csr([sorted(b) for b in before])
