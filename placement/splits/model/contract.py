"""Units of a split: colour classes, fused where every answer of interest keeps them together.

For contiguous splits (Tarnawski et al., NeurIPS 2020, appendix on training graphs) classes on a
forward cycle are one unit, and a class with backward nodes only takes part through mirrored edges.
Units without work join a neighbour where that can never cost anything.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints, topological_order
from placement.splits.model.absorb import absorbed
from placement.splits.model.instance import Bools, SplitInstance, csr, sums_by
from placement.splits.model.priced import Priced, priced

Edge = tuple[int, int]


class UnitArrays(NamedTuple):
    """What compiled code reads of units (U), nets (T) and devices, see Units and SplitInstance.

    `allowed` (U, D) is that of `Units.allowed`, `unit_nets` are the nets of each unit as CSR rows.
    """

    acc_s: Floats
    cpu_s: Floats
    size_bytes: Floats
    on_acc: Bools
    on_cpu: Bools
    pinned: Ints
    allowed: Bools
    net_ptr: Ints
    net_units: Ints
    net_cost_s: Floats
    unit_ptr: Ints
    unit_nets: Ints
    num_accelerators: int
    num_cpus: int
    limit_bytes: float


@dataclass(frozen=True, eq=False)
class Units:
    """Units (U) that move whole, in topological order of the forward edges where there are any.

    `acc_s`, `cpu_s`, `size_bytes` (U,) are sums; `on_acc` and `on_cpu` tell the kinds of device
    that may hold a unit, `pinned` the one device it must have (-1: any). Nets as in SplitInstance,
    each with two different units at least, a positive cost and pins of its own, sorted. Forward
    edges are CSR rows of successors. `unit_of_class` (C,) leads back to the instance.
    """

    instance: SplitInstance
    unit_of_class: Ints
    acc_s: Floats
    cpu_s: Floats
    size_bytes: Floats
    on_acc: Bools
    on_cpu: Bools
    pinned: Ints
    net_ptr: Ints
    net_units: Ints
    net_cost_s: Floats
    succ_ptr: Ints
    succ: Ints

    @property
    def num_units(self) -> int:
        return len(self.acc_s)

    @cached_property
    def arrays(self) -> UnitArrays:
        rows: list[list[int]] = [[] for _ in range(self.num_units)]
        for net in range(len(self.net_cost_s)):
            for u in self.net_units[self.net_ptr[net] : self.net_ptr[net + 1]].tolist():
                rows[u].append(net)
        return UnitArrays(
            self.acc_s,
            self.cpu_s,
            self.size_bytes,
            self.on_acc,
            self.on_cpu,
            self.pinned,
            self.allowed(),
            self.net_ptr,
            self.net_units,
            self.net_cost_s,
            *csr(rows),
            self.instance.num_accelerators,
            self.instance.num_cpus,
            float(self.instance.limit_bytes),
        )

    @cached_property
    def priced(self) -> Priced:
        """The same for loads under any rules."""
        return priced(self.instance, self.unit_of_class, self.size_bytes, self.allowed())

    def allowed(self) -> Bools:
        """Whether a device may hold a unit, (U, D); accelerators first."""
        instance = self.instance
        kinds = np.repeat(
            np.stack([self.on_acc, self.on_cpu], axis=1),
            [instance.num_accelerators, instance.num_cpus],
            axis=1,
        )
        free = (self.pinned < 0)[:, None]
        allowed: Bools = kinds & (free | (self.pinned[:, None] == np.arange(instance.num_devices)))
        return allowed

    def device_of_class(self, device_of_unit: Ints) -> Ints:
        return device_of_unit[self.unit_of_class]


def class_units(instance: SplitInstance) -> Units:
    """Units of splits that need not be contiguous: the classes, but for those without work."""
    return _built(instance, absorbed(instance, list(range(instance.num_classes)), None), [])


def contiguous_units(instance: SplitInstance) -> Units:
    """Units of contiguous splits: forward cycles and classes pinned to one device fused."""
    edges = forward_edges(instance)
    by_pin: dict[int, int] = {}
    start = list(range(instance.num_classes))
    for c in range(instance.num_classes):
        devices = np.flatnonzero(instance.allowed[c])
        if len(devices) == 1 and instance.num_devices > 1:
            start[c] = by_pin.setdefault(int(devices[0]), c)
    fused = _fused(start, edges)
    return _built(instance, absorbed(instance, fused, edges), edges)


def forward_edges(instance: SplitInstance) -> list[Edge]:
    """Edges between classes that contiguity speaks of, each once and sorted.

    The forward part counts. A class of backward nodes only stands in for the forward nodes that
    it would have: every backward edge u -> v at such a class runs from v's class to u's.
    """
    class_of, backward = instance.class_of.tolist(), instance.backward.tolist()
    has_forward = [False] * instance.num_classes
    for node, c in enumerate(class_of):
        has_forward[c] = has_forward[c] or not backward[node]
    edges = set()
    for net in range(len(instance.net_cost_s)):
        u, *readers = instance.net_nodes[instance.net_ptr[net] : instance.net_ptr[net + 1]].tolist()
        for v in readers:
            a, b = class_of[u], class_of[v]
            if not backward[u] and not backward[v]:
                edges.add((a, b))
            elif backward[u] and backward[v] and not (has_forward[a] and has_forward[b]):
                edges.add((b, a))
    return sorted((a, b) for a, b in edges if a != b)


def _fused(start: list[int], edges: list[Edge]) -> list[int]:
    """Representative of each class once the cycles of the fused graph are fused too."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph((start[a], start[b]) for a, b in edges)
    graph.add_nodes_from(start)
    cycles = enumerate(nx.strongly_connected_components(graph))
    cycle_of = {c: number for number, members in cycles for c in members}
    first: dict[int, int] = {}
    return [first.setdefault(cycle_of[c], c) for c in start]


def _built(instance: SplitInstance, first: list[int], edges: list[Edge]) -> Units:
    """The units, given a representative class for every class."""
    rank = _topological(first, edges)
    unit_of_class = np.array([rank[f] for f in first], dtype=np.int64)
    num_units = len(rank)
    after = sorted({(rank[first[a]], rank[first[b]]) for a, b in edges if first[a] != first[b]})
    succ_ptr, succ = csr([[b for _, b in group] for group in _rows(after, num_units)])
    net_ptr, net_units, net_cost_s = _nets(instance, unit_of_class)
    allowed = np.ones((num_units, instance.num_devices), dtype=np.bool_)
    np.logical_and.at(allowed, unit_of_class, instance.allowed)
    size_bytes = sums_by(unit_of_class, instance.class_sums(instance.size_bytes), num_units)
    return Units(
        instance=instance,
        unit_of_class=unit_of_class,
        acc_s=sums_by(unit_of_class, instance.class_sums(instance.acc_s), num_units),
        cpu_s=sums_by(unit_of_class, instance.class_sums(instance.cpu_s), num_units),
        size_bytes=size_bytes,
        on_acc=allowed[:, : instance.num_accelerators].any(axis=1)
        & (size_bytes <= instance.limit_bytes),
        on_cpu=np.asarray(allowed[:, instance.num_accelerators :].any(axis=1)),
        pinned=np.where(
            (allowed.sum(axis=1) == 1) & (instance.num_devices > 1), allowed.argmax(axis=1), -1
        ),
        net_ptr=net_ptr,
        net_units=net_units,
        net_cost_s=net_cost_s,
        succ_ptr=succ_ptr,
        succ=succ,
    )


def _rows(pairs: list[Edge], num_rows: int) -> list[list[Edge]]:
    rows: list[list[Edge]] = [[] for _ in range(num_rows)]
    for pair in pairs:
        rows[pair[0]].append(pair)
    return rows


def _topological(first: list[int], edges: list[Edge]) -> dict[int, int]:
    """Position of each representative in topological order, the smallest available first."""
    members = sorted(set(first))
    number = {f: i for i, f in enumerate(members)}
    after: list[list[int]] = [[] for _ in members]
    for a, b in sorted({(first[a], first[b]) for a, b in edges if first[a] != first[b]}):
        after[number[a]].append(number[b])
    order = topological_order(len(members), after)
    assert order is not None, "fused units have a cycle"
    return {members[i]: position for position, i in enumerate(order)}


def _nets(instance: SplitInstance, unit_of_class: Ints) -> tuple[Ints, Ints, Floats]:
    """Nets between units; nets over the same units are one, in order of first appearance."""
    unit_of_node = unit_of_class[instance.class_of]
    cost_of: dict[tuple[int, ...], float] = {}
    for net, cost in enumerate(instance.net_cost_s.tolist()):
        nodes = instance.net_nodes[instance.net_ptr[net] : instance.net_ptr[net + 1]]
        pins = tuple(np.unique(unit_of_node[nodes]).tolist())
        if len(pins) > 1 and cost > 0:
            cost_of[pins] = cost_of.get(pins, 0.0) + cost
    ptr, flat = csr(list(cost_of))
    return ptr, flat, np.array(list(cost_of.values()), dtype=np.float64)


def call_units(instance: SplitInstance) -> Units:
    """Units of subgraph calls: every edge orders them, none is fused.

    A class on a cycle may still be on a CPU, where its nodes run one by one. Units without work
    join others only where there is no such cycle.
    """
    every_edge = replace(instance, backward=np.zeros_like(instance.backward))
    edges = forward_edges(every_edge)
    alone = list(range(instance.num_classes))
    if _fused(alone, edges) != alone:
        return _built(instance, alone, [])
    return _built(instance, absorbed(every_edge, alone, edges), edges)
