"""Bound on the latency of splits by subgraph calls: the cheapest chain of ideals along a path.

Order the calls and CPU nodes of any split so that each follows those it waits for: the nodes up to
any point are an ideal (downward-closed set), and a call is the difference of two. What meets a
given path of the graph runs one after another, so its times add up, each call's exactly: compute,
and the values that cross. All else is taken to be free. The least sum over all chains of ideals
bounds every split from below; for graphs that are nearly a path it is nearly exact.

No split is below what its paths take on average either, whatever each path counts for. So chains
that are too cheap, because they keep what they leave off the path waiting, are met by the longest
path that they have themselves; subgradient steps find what each path should count for (Held, Wolfe
and Crowder, "Validation of subgradient optimization", Math. Prog. 1974).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

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
# Mixtures of paths that are tried, and pairs of ideals that this may take in all.
MOST_ROUNDS, ROUND_PAIRS = 60, 500_000_000
# Steps become shorter where they do not help; sums of the same times in another order differ.
SHORTER, ROUNDING = 0.8, 1e-12
TINY_S = 1e-300


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
    num_calls = instance.num_accelerators * calls_each
    paths = list(longest_paths(chains.timing))
    bounds_s = [0.0]
    for path in paths:
        bounds_s.append(chains.cheapest([path], np.ones(1), num_calls, upper_s).seconds)
        if bounds_s[-1] >= upper_s:
            return upper_s
    if np.isinf(upper_s) or not paths:
        return max(bounds_s)
    first = paths[int(np.argmax(bounds_s[1:]))]
    return max(*bounds_s, chains.mixed_bound_s(first, num_calls, upper_s))


class _Cheapest(NamedTuple):
    """The least seconds of a chain, and its parts: nodes, and seconds of a call or -1."""

    seconds: float
    parts: list[tuple[list[int], float]]


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

    def mixed_bound_s(self, path: list[int], num_calls: int, upper_s: float) -> float:
        """The best bound over mixtures of paths that chains turn out to have, at most `upper_s`."""
        paths, share = [path], np.ones(1)
        bound_s, step = 0.0, 1.0
        for _ in range(min(MOST_ROUNDS, ROUND_PAIRS // len(self.rows) ** 2)):
            found = self.cheapest(paths, share, num_calls, upper_s)
            if found.seconds >= upper_s:
                return upper_s
            if found.seconds <= bound_s:
                step *= SHORTER
            bound_s = max(bound_s, found.seconds)
            longest = self._longest_path(found.parts)
            if longest not in paths:
                paths.append(longest)
                share = np.append(share, 0.0)
            along = np.array([self._along(path, found.parts) for path in paths])
            if along.max() <= found.seconds * (1.0 + ROUNDING):
                break
            slope = along - along.mean()
            stride = step * (upper_s - found.seconds) / max(float(slope @ slope), TINY_S)
            share = _on_simplex(share + stride * slope)
        return bound_s

    def _longest_path(self, parts: list[tuple[list[int], float]]) -> list[int]:
        """The path that takes longest if each call takes its seconds once."""
        nodes = self.timing.nodes
        part_of = np.zeros(self.timing.num_nodes, dtype=np.int64)
        for number, (members, _) in enumerate(parts):
            part_of[members] = number
        enters, leaves = np.zeros(len(part_of)), np.zeros(len(part_of))
        before = np.full(len(part_of), -1, dtype=np.int64)
        for n in range(len(part_of)):
            call_s = parts[part_of[n]][1]
            for p in nodes.pred[nodes.pred_ptr[n] : nodes.pred_ptr[n + 1]].tolist():
                inside = part_of[p] == part_of[n]
                at = enters[p] if inside else leaves[p]
                if before[n] < 0 or at > enters[n]:
                    enters[n], before[n] = at, p
            leaves[n] = enters[n] + (nodes.cpu_s[n] if call_s < 0 else call_s)
        path = [int(leaves.argmax())]
        while before[path[-1]] >= 0:
            path.append(int(before[path[-1]]))
        return path[::-1]

    def _along(self, path: list[int], parts: list[tuple[list[int], float]]) -> float:
        """What the nodes and calls that meet a path take."""
        on_path = np.zeros(self.timing.num_nodes, dtype=np.bool_)
        on_path[path] = True
        cpu_s = self.timing.nodes.cpu_s
        total = 0.0
        for members, call_s in parts:
            if call_s < 0:
                total += float(cpu_s[members][on_path[members]].sum())
            elif on_path[members].any():
                total += call_s
        return total

    def cheapest(
        self, paths: list[list[int]], share: Floats, num_calls: int, upper_s: float
    ) -> _Cheapest:
        """The cheapest chain along some paths that count for shares, at most `upper_s`."""
        from placement.splits.bounds.chain_compiled import PathIdeals, cheapest_chain
        from placement.splits.exact.ideals_compiled import sums_of

        nodes, units, rows = self.timing.nodes, self.timing.units, self.rows
        on_path = np.zeros((len(paths), self.timing.num_nodes))
        for p, path in enumerate(paths):
            on_path[p, path] = 1.0
        ideals = PathIdeals(
            rows,
            self.num_inside,
            np.stack([sums_of(rows, on) for on in on_path], axis=1).astype(np.int64),
            share,
            self.work_s,
            sums_of(rows, (share @ on_path) * nodes.cpu_s),
            sums_of(rows, self._at_first(units.size_bytes)),
            sums_of(rows, self._at_first((~units.on_acc).astype(np.float64))).astype(np.int64),
            sums_of(rows, (~units.on_cpu)[nodes.unit_of].astype(np.float64)).astype(np.int64),
        )
        limit_bytes = units.instance.limit_bytes
        least, before = cheapest_chain(ideals, self.crossings, num_calls, limit_bytes, upper_s)
        calls = int(least[-1].argmin())
        seconds = float(least[-1, calls])
        if not seconds < upper_s:
            return _Cheapest(upper_s, [])
        return _Cheapest(seconds, list(self._parts(before, calls)))

    def _parts(self, before: Ints, calls: int) -> Iterator[tuple[list[int], float]]:
        """Nodes and seconds of the parts of a chain, from its end."""
        from placement.splits.exact.ideals_compiled import WORD, cut_s

        j = len(self.rows) - 1
        while j > 0:
            i, call = divmod(int(before[j, calls]), 2)
            more = self.rows[j] & ~self.rows[i]
            members = [
                n for n in range(self.timing.num_nodes) if int(more[n // WORD]) >> (n % WORD) & 1
            ]
            call_s = self.work_s[j] - self.work_s[i] + cut_s(i, j, self.crossings)
            yield members, float(call_s) if call else -1.0
            calls -= call
            j = i


def _on_simplex(values: Floats) -> Floats:
    """The nearest shares that are not negative and add up to one."""
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    shares: Floats = np.maximum(values - excess[last], 0.0)
    return shares


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
