"""Exact contiguous split for throughput: dynamic programming over ideals, below a threshold.

Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020:
the parts of a contiguous split are the differences of a chain of ideals (downward-closed sets).
Their program tries all pairs of ideals. Here no part may exceed a threshold, which leaves few
pairs; it starts a little above a lower bound and rises until there is a chain. The least maximal
load below the first threshold that has one is the optimum.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.bounds.loads import offload_s, throughput_bound_s
from placement.splits.model.contract import Units
from placement.splits.model.instance import Bools, csr
from placement.splits.model.placements import Part, devices_of_parts

if TYPE_CHECKING:
    from placement.splits.exact.chains_compiled import Ideals
    from placement.splits.exact.ideals_compiled import Crossings

FIRST_SLACK = 0.005
MOST_WORDS = 4_000_000
# The slack counts from this share of all work where the bound is less, even zero.
TINY = 1e-3


@dataclass(frozen=True, eq=False)
class Chain:
    """The parts of a contiguous split: device of each unit (U,) and the largest load.

    `replicas` (D,) are the accelerators that share the part of each device, counting itself.
    """

    device_of_unit: Ints
    replicas: Ints
    load_s: float


class TooManyIdeals(ValueError):
    """The graph is too wide for the exact method."""


def best_chain(
    units: Units, *, max_ideals: int, upper_s: float = np.inf, most_replicas: int = 1
) -> Chain | None:
    """The optimal contiguous split, None if no split keeps all limits.

    `upper_s` is the load of a known split, if any. Up to `most_replicas` accelerators may share a
    part. Raises TooManyIdeals beyond `max_ideals`.
    """
    table = _table(units, max_ideals, most_replicas)
    bound_s = throughput_bound_s(units, most_replicas)
    everything_s = table.most_s
    slack = FIRST_SLACK
    while True:
        cap_s = min(bound_s + slack * max(bound_s, TINY * everything_s), upper_s, everything_s)
        best = table.best(cap_s)
        if np.isfinite(best[-1]).any() or cap_s >= min(upper_s, everything_s):
            break
        slack *= 2.0
    if not np.isfinite(best[-1]).any():
        return None
    return _traced(table, best)


@dataclass(frozen=True, eq=False)
class IdealTable:
    """All ideals (M) by rising accelerator work, then size, and what the recurrence reads of them.

    `ideals` and `crossings` are what the compiled recurrence takes, see `chains_compiled`.
    """

    units: Units
    ideals: "Ideals"
    crossings: "Crossings"
    most_replicas: int

    @property
    def most_s(self) -> float:
        """No load of any part is larger."""
        cost = float(self.units.net_cost_s.sum())
        return max(float(self.ideals.acc_s[-1]) + cost, float(self.ideals.cpu_s[-1])) * (1.0 + 1e-9)

    def best(self, cap_s: float) -> Floats:
        """Least maximal load by (ideal, accelerators, CPUs) over chains of loads up to `cap_s`."""
        from placement.splits.exact.chains_compiled import Limits, chains

        instance = self.units.instance
        limits = Limits(cap_s, instance.limit_bytes, self.most_replicas, instance.overlap)
        away_s = [offload_s(self.units, c * cap_s) for c in range(instance.num_cpus + 1)]
        return chains(
            self.ideals, self.crossings, limits, np.array(away_s), instance.num_accelerators
        )

    def bits(self, which: Ints) -> Bools:
        """Units inside each of some ideals, (len(which), U)."""
        from placement.splits.exact.ideals_compiled import WORD

        u = np.arange(self.units.num_units)
        return (self.ideals.rows[which][:, u // WORD] >> (u % WORD) & 1).astype(np.bool_)

    def loads_s(self, before: Ints, j: int) -> tuple[Floats, Floats]:
        """Load of the parts between some ideals and ideal j, on an accelerator and on a CPU.

        Infinite where a part is not allowed.
        """
        units, ideals = self.units, self.ideals
        inside = ~(ideals.rows[before] & ~ideals.rows[j]).any(axis=1)
        inside &= ideals.pins[j] <= ideals.pins[before] + 1
        part = self.bits(np.array([j])) & ~self.bits(before)
        net_of_pin = np.repeat(np.arange(len(units.net_cost_s)), np.diff(units.net_ptr))
        held = np.zeros((len(before), len(units.net_cost_s)), dtype=np.int64)
        np.add.at(held.T, net_of_pin, part[:, units.net_units].T)
        cut = (held > 0) & (held < np.diff(units.net_ptr))
        acc_ok = inside & ~(part & ~units.on_acc).any(axis=1)
        acc_ok &= part @ units.size_bytes <= units.instance.limit_bytes
        cpu_ok = inside & ~(part & ~units.on_cpu).any(axis=1)
        moved_s = cut @ units.net_cost_s
        acc_s = ideals.acc_s[j] - ideals.acc_s[before]
        acc_s = np.maximum(acc_s, moved_s) if units.instance.overlap else acc_s + moved_s
        cpu_s = ideals.cpu_s[j] - ideals.cpu_s[before]
        return np.where(acc_ok, acc_s, np.inf), np.where(cpu_ok, cpu_s, np.inf)


def all_ideals(succ_ptr: Ints, succ: Ints, most: int) -> Ints:
    """All ideals of a graph as rows of words; raises TooManyIdeals beyond `most`.

    Where rows are long, fewer are allowed: MOST_WORDS in all.
    """
    from placement.splits.exact.ideals_compiled import WORD, enumerate_ideals

    num = len(succ_ptr) - 1
    most = min(most, MOST_WORDS // (num // WORD + 1))
    before: list[list[int]] = [[] for _ in range(num)]
    for u in range(num):
        for v in succ[succ_ptr[u] : succ_ptr[u + 1]]:
            before[v].append(u)
    keys = np.random.default_rng(0).integers(1, 2**62, num)
    rows, count = enumerate_ideals(*csr(before), keys, most)
    if count > most:
        raise TooManyIdeals(f"The graph has more than {most} downward-closed sets.")
    return rows


def _table(units: Units, max_ideals: int, most_replicas: int) -> IdealTable:
    from placement.splits.exact.chains_compiled import Ideals
    from placement.splits.exact.ideals_compiled import crossing_nets, sums_of

    rows = all_ideals(units.succ_ptr, units.succ, max_ideals)
    work = np.where(units.on_acc, units.acc_s, 0.0)
    ones = np.ones(units.num_units)
    acc_s, num_inside = sums_of(rows, work), sums_of(rows, ones)
    order = np.lexsort((num_inside, acc_s))
    rows = np.ascontiguousarray(rows[order])
    cpu_s = sums_of(rows, np.where(units.on_cpu, units.cpu_s, 0.0))
    ideals = Ideals(
        rows=rows,
        acc_s=acc_s[order],
        cpu_s=cpu_s,
        size_bytes=sums_of(rows, units.size_bytes),
        no_acc=_counts(rows, ~units.on_acc),
        no_cpu=_counts(rows, ~units.on_cpu),
        pins=_counts(rows, units.pinned >= 0),
        by_cpu=np.argsort(cpu_s, kind="stable"),
    )
    crossings = crossing_nets(rows, units.net_ptr, units.net_units, units.net_cost_s)
    return IdealTable(units, ideals, crossings, most_replicas)


def _counts(rows: Ints, which: Bools) -> Ints:
    """How many of some units each ideal holds."""
    from placement.splits.exact.ideals_compiled import sums_of

    return sums_of(rows, which.astype(np.float64)).astype(np.int64)


def _traced(table: IdealTable, best: Floats) -> Chain:
    """The chain of least maximal load, traced back."""
    end = best[-1]
    a, c = (int(x) for x in np.unravel_index(int(end.argmin()), end.shape))
    value = float(end[a, c]) * (1.0 + 1e-9)
    j = len(best) - 1
    parts: list[Part] = []
    while j > 0:
        i, replicas = _step_back(table, best, j, a, c, value)
        held = np.flatnonzero(table.bits(np.array([j]))[0] & ~table.bits(np.array([i]))[0])
        parts.append(Part(replicas == 0, held, max(1, replicas)))
        a, c, j = a - replicas, c - (replicas == 0), i
    return Chain(*devices_of_parts(table.units, parts[::-1]), float(end.min()))


def _step_back(
    table: IdealTable, best: Floats, j: int, a: int, c: int, value: float
) -> tuple[int, int]:
    """The ideal before j in a chain of loads up to `value`, and its accelerators (0: on a CPU)."""
    for replicas in (*range(1, min(a, table.most_replicas) + 1), 0):
        if replicas == 0 and c == 0:
            continue
        before = best[:j, a - replicas, c - (replicas == 0)]
        reached = np.flatnonzero(before <= value)
        if replicas > 1:
            reached = reached[table.ideals.pins[reached] == table.ideals.pins[j]]
        loads_s = table.loads_s(reached, j)[replicas == 0]
        found = np.flatnonzero(loads_s <= value * max(1, replicas))
        if len(found):
            return int(reached[found[0]]), replicas
    raise AssertionError("a chain leads to no ideal before its last")
