"""Exact contiguous split for throughput: dynamic programming over ideals, below a threshold.

Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020:
the parts of a contiguous split are the differences of a chain of ideals (downward-closed sets).
Their program tries all pairs of ideals. Here no part may exceed a threshold, which leaves few
pairs; it starts a little above a lower bound and rises until there is a chain. The least maximal
load below the first threshold that has one is the optimum.
"""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.bounds.loads import plain_bound_s
from placement.splits.exact.clusters import best_in_clusters
from placement.splits.exact.phases import best_in_phases
from placement.splits.exact.table import Chain, IdealTable, Link
from placement.splits.model.contract import Units
from placement.splits.model.instance import Bools, csr
from placement.splits.model.placements import Part, devices_of_parts

FIRST_SLACK = 0.005
MOST_WORDS = 4_000_000
# The slack counts from this share of all work where the bound is less, even zero.
TINY = 1e-3


class TooManyIdeals(ValueError):
    """The graph is too wide for the exact method."""


def best_chain(units: Units, *, max_ideals: int, most_replicas: int = 1) -> Chain | None:
    """The optimal contiguous split, None if no split keeps all limits.

    Up to `most_replicas` accelerators may share a part, but not where there are clusters. Raises
    TooManyIdeals beyond `max_ideals`.
    """
    rules = units.instance.rules
    table = _table(units, max_ideals, most_replicas)
    found = _least_load(table)
    if found is None or (rules.has_clusters and most_replicas > 1):
        return None
    if rules.has_clusters:
        # Their stages balance if some of their transfers are slow, or all.
        factors = rules.slow_link_factor**0.5, rules.slow_link_factor
        others = [_least_load(table.slower(factor)) for factor in factors]
        return best_in_clusters(table, found, [chain for chain in others if chain is not None])
    return best_in_phases(table, found) if rules.gpipe else found


def _least_load(table: IdealTable) -> Chain | None:
    """The chain with the least largest load as a plain sum over phases, within one cluster."""
    bound_s = plain_bound_s(table.units, table.most_replicas)
    slack = FIRST_SLACK
    while True:
        cap_s = min(bound_s + slack * max(bound_s, TINY * table.most_s), table.most_s)
        best = table.best(cap_s)
        if np.isfinite(best[-1]).any():
            return _traced(table, best)
        if cap_s >= table.most_s:
            return None
        slack *= 2.0


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
    links: list[Link] = []
    while j > 0:
        i, replicas = _step_back(table, best, j, a, c, value)
        held = np.flatnonzero(table.bits(np.array([j]))[0] & ~table.bits(np.array([i]))[0])
        parts.append(Part(replicas == 0, held, max(1, replicas)))
        links.append(Link(held, best[j].copy(), (a, c)))
        a, c, j = a - replicas, c - (replicas == 0), i
    devices = devices_of_parts(table.units, parts[::-1])
    found = tuple(reversed(links))
    return Chain(*devices, float(end.min()), links=found, num_ideals=len(best))


def _step_back(
    table: IdealTable, best: Floats, j: int, a: int, c: int, value: float
) -> tuple[int, int]:
    """The ideal before j in a chain of loads up to `value`, and its accelerators (0: on a CPU)."""
    for replicas in (*range(1, min(a, table.most_replicas) + 1), 0):
        if replicas == 0 and c == 0:
            continue
        reached = np.flatnonzero(best[:j, a - replicas, c - (replicas == 0)] <= value)
        found = np.flatnonzero(table.loads_s(reached, j, replicas) <= value)
        if len(found):
            return int(reached[found[0]]), replicas
    raise AssertionError("a chain leads to no ideal before its last")
