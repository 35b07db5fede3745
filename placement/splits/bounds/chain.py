"""Bound on the latency of splits by subgraph calls: the cheapest chain of ideals along a path.

Order the calls and CPU nodes of any split so that each follows those it waits for: the nodes up to
any point are an ideal (downward-closed set), and a call is the difference of two. What meets a
given path of the graph runs one after another, so its times add up, each call's exactly: compute,
and the values that cross. All else is taken to be free. The least sum over all chains of ideals
bounds every split from below; for graphs that are nearly a path it is nearly exact.
"""

from dataclasses import replace

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.bounds.latency import interval_bound_s, longest_paths
from placement.splits.exact.ideals import TooManyIdeals, all_ideals
from placement.splits.model.absorb import without_room_at_ends
from placement.splits.model.contract import Units
from placement.splits.model.instance import SplitInstance, csr
from placement.splits.model.timing import Timing, timing_of

MAX_IDEALS = 12_000


def latency_bound_s(instance: SplitInstance, calls_each: int, upper_s: float = np.inf) -> float:
    """Seconds that no split with `calls_each` calls per accelerator can be below.

    Over ideals, or over intervals of paths where ideals are too many.
    `upper_s` is the latency of a known split: a bound that reaches it is not made any larger.
    """
    relaxed = replace(instance, size_bytes=without_room_at_ends(instance))
    try:
        chains = _Chains(timing_of(relaxed))
    except TooManyIdeals:
        return min(interval_bound_s(instance, calls_each), upper_s)
    bound_s = 0.0
    num_calls = instance.num_accelerators * calls_each
    for path in longest_paths(chains.timing):
        bound_s = max(bound_s, chains.bound_s(path, num_calls, upper_s))
        if bound_s >= upper_s:
            return upper_s
    return bound_s


class _Chains:
    """The ideals of the timed nodes, and sums over them; a unit counts at its first node."""

    def __init__(self, timing: Timing) -> None:
        from placement.splits.exact.ideals_compiled import crossing_nets, sums_of

        self.timing, units = timing, timing.units
        rows = all_ideals(timing.nodes.succ_ptr, timing.nodes.succ, MAX_IDEALS)
        work_s = sums_of(rows, self._at_first(np.where(units.on_acc, units.acc_s, 0.0)))
        num_inside = sums_of(rows, np.ones(timing.num_nodes))
        order = np.lexsort((num_inside, work_s))
        self.rows = np.ascontiguousarray(rows[order])
        self.work_s, self.num_inside = work_s[order], num_inside[order].astype(np.int64)
        self.crossings = crossing_nets(self.rows, *_whole_nets(timing))

    def _at_first(self, of_unit: Floats) -> Floats:
        """Values of units at their first timed nodes, zero at the others."""
        values = np.zeros(self.timing.num_nodes)
        values[self.timing.nodes.in_unit[self.timing.nodes.node_ptr[:-1]]] = of_unit
        return values

    def bound_s(self, path: list[int], num_calls: int, upper_s: float) -> float:
        """The cheapest chain along one path, at most `upper_s`."""
        from placement.splits.bounds.chain_compiled import PathIdeals, cheapest_chain
        from placement.splits.exact.ideals_compiled import sums_of

        nodes, units, rows = self.timing.nodes, self.timing.units, self.rows
        on_path = np.zeros(self.timing.num_nodes)
        on_path[path] = 1.0
        ideals = PathIdeals(
            rows,
            self.num_inside,
            sums_of(rows, on_path).astype(np.int64),
            self.work_s,
            sums_of(rows, on_path * nodes.cpu_s),
            sums_of(rows, self._at_first(units.size_bytes)),
            sums_of(rows, self._at_first((~units.on_acc).astype(np.float64))).astype(np.int64),
            sums_of(rows, (~units.on_cpu)[nodes.unit_of].astype(np.float64)).astype(np.int64),
        )
        limit_bytes = units.instance.limit_bytes
        least = cheapest_chain(ideals, self.crossings, num_calls, limit_bytes, upper_s)
        return min(float(least[-1].min()), upper_s)


def _whole_nets(timing: Timing) -> tuple[Ints, Ints, Floats]:
    """Nets over timed nodes: each unit at its first node, and dear ones that keep units whole."""
    units: Units = timing.units
    first = timing.nodes.in_unit[timing.nodes.node_ptr[:-1]]
    pins = np.split(first[units.net_units], units.net_ptr[1:-1])
    rows = [sorted(p.tolist()) for p in pins if len(p)]
    costs = units.net_cost_s.tolist()
    dear = 2.0 * (float(units.acc_s[units.on_acc].sum()) + sum(costs)) + 1.0
    for members in np.split(timing.nodes.in_unit, timing.nodes.node_ptr[1:-1]):
        if len(members) > 1:
            rows.append(members.tolist())
            costs.append(dear)
    return *csr(rows), np.array(costs, dtype=np.float64)
