"""What a latency evaluation reads: units, and the nodes whose times a CPU adds up one by one."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.contract import Units, call_units
from placement.splits.model.instance import SplitInstance, csr


class TimedNodes(NamedTuple):
    """Nodes (N) in topological order: `cpu_s` and `unit_of` (N,) are seconds on a CPU and unit.

    CSR rows: `succ` and `pred` of a node, `in_unit` the nodes of a unit.
    """

    cpu_s: Floats
    unit_of: Ints
    succ_ptr: Ints
    succ: Ints
    pred_ptr: Ints
    pred: Ints
    node_ptr: Ints
    in_unit: Ints


@dataclass(frozen=True, eq=False)
class Timing:
    """Units (U) that are on a CPU or in one call, and their timed nodes."""

    units: Units
    nodes: TimedNodes

    @property
    def num_nodes(self) -> int:
        return len(self.nodes.cpu_s)


def timing_of(instance: SplitInstance, units: Units | None = None) -> Timing:
    """The timing of an instance for units of calls (by default `call_units`).

    Nodes of one unit become one timed node where that never changes a finish time: a node that
    follows its only predecessor at once, or takes no time and precedes its only successor.
    """
    units = call_units(instance) if units is None else units
    unit_of = units.unit_of_class[instance.class_of].tolist()
    cpu = np.where(np.isfinite(instance.cpu_s), instance.cpu_s, 0.0).tolist()
    before, after = _neighbours(instance)
    alive = [True] * len(unit_of)
    changed = True
    while changed:
        changed = False
        for n in range(len(unit_of)):
            into = _joins(n, unit_of, cpu, before, after) if alive[n] else -1
            if into >= 0:
                cpu[into] += cpu[n]
                _join(n, into, before, after)
                alive[n] = False
                changed = True
    kept = [n for n in range(len(unit_of)) if alive[n]]
    order = _order(kept, before, after)
    number = {n: i for i, n in enumerate(order)}
    rows: list[list[int]] = [[] for _ in range(units.num_units)]
    for n in order:
        rows[unit_of[n]].append(number[n])
    nodes = TimedNodes(
        np.array([cpu[n] for n in order], dtype=np.float64),
        np.array([unit_of[n] for n in order], dtype=np.int64),
        *csr([sorted(number[v] for v in after[n]) for n in order]),
        *csr([sorted(number[v] for v in before[n]) for n in order]),
        *csr(rows),
    )
    return Timing(units, nodes)


def _neighbours(instance: SplitInstance) -> tuple[list[set[int]], list[set[int]]]:
    before: list[set[int]] = [set() for _ in range(instance.num_nodes)]
    after: list[set[int]] = [set() for _ in range(instance.num_nodes)]
    for net in range(len(instance.net_cost_s)):
        start, end = instance.net_ptr[net], instance.net_ptr[net + 1]
        u, *readers = instance.net_nodes[start:end].tolist()
        after[u].update(readers)
        for v in readers:
            before[v].add(u)
    return before, after


def _joins(
    n: int, unit_of: list[int], cpu: list[float], before: list[set[int]], after: list[set[int]]
) -> int:
    """The node that n may become part of, -1 if there is none."""
    if len(before[n]) == 1:
        (p,) = before[n]
        if unit_of[p] == unit_of[n] and (cpu[n] == 0.0 or len(after[p]) == 1):
            return p
    if len(after[n]) == 1 and cpu[n] == 0.0:
        (s,) = after[n]
        if unit_of[s] == unit_of[n]:
            return s
    return -1


def _join(n: int, into: int, before: list[set[int]], after: list[set[int]]) -> None:
    for near, far in ((before, after), (after, before)):
        for other in sorted(near[n]):
            far[other].discard(n)
            if other != into:
                far[other].add(into)
                near[into].add(other)


def _order(kept: list[int], before: list[set[int]], after: list[set[int]]) -> list[int]:
    """Topological order of the timed nodes (a join may turn the order of two neighbours)."""
    waiting = {n: len(before[n]) for n in kept}
    order = [n for n in kept if not waiting[n]]
    for n in order:
        for v in sorted(after[n]):
            waiting[v] -= 1
            if not waiting[v]:
                order.append(v)
    assert len(order) == len(kept), "timed nodes have a cycle"
    return order
