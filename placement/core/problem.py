"""A placement problem: graph, machine, costs, constraints and objective.

A person places source ops; a machine runs kernels. The map between them is many to many, so a
problem joins them into *units*: the connected parts of the map, which move together. Placers decide
one device per unit; `kernel_devices` and `placement_of` translate between the two sides.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from placement.core.amounts import UNIT_S
from placement.core.costs import Costs
from placement.core.decoding import listed, shown
from placement.core.fingerprint import fingerprint_of
from placement.core.graph import Graph, Ints
from placement.core.machine import Machine, is_streamed
from placement.core.objective import PLAIN, CallRules, Execution, Objective
from placement.core.placement import Placement

__all__ = ["Execution", "Objective", "Problem", "own_kernels"]

MEMORY_MODELS = ("live", "sum")


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a placer may know.

    `kernels` is what runs (the graph itself where no runtime has optimised it) and `sources[k]`
    the indices of the source ops behind kernel k. `groups` lists source ops that must share a
    device, `pins` fixes (op, device) pairs, and `sequences` of (device, ops) the order of those of
    the ops that are on the device, for whoever decides. `execution` is "op" (each kernel its own
    task), "segment" (neighbouring kernels of a device run in one call) or "call" (a device off the
    host runs its kernels in one call that also moves its inputs and outputs, host kernels run one
    by one in any number; see call_costs.py). Without `link_contention` any number of tensors pass a
    link at once. `memory_model` "live" counts weights and live tensors, "sum" the plain sum of
    `param_bytes`, as problem files state sizes. `objective` is "latency" (seconds of one step) or
    "throughput" (seconds between samples of a full pipeline). `rules` say how throughput is charged
    under the execution "call". All times are in seconds; `unit` is the one that the file states and
    that its values are printed in.
    """

    graph: Graph
    machine: Machine
    costs: Costs
    kernels: Graph
    sources: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[str, ...], ...] = ()
    pins: tuple[tuple[str, str], ...] = ()
    objective: Objective = Objective.LATENCY
    execution: Execution = Execution.SEGMENT
    link_contention: bool = True
    memory_model: str = "live"
    unit: str = field(default="s", kw_only=True)
    rules: CallRules = field(default=PLAIN, kw_only=True)
    sequences: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        # Callers and files may say them as words.
        object.__setattr__(self, "objective", Objective(self.objective))
        object.__setattr__(self, "execution", Execution(self.execution))
        shape = (len(self.kernels.ops), len(self.machine.devices))
        if self.costs.compute_s.shape != shape or len(self.sources) != shape[0]:
            raise ValueError(
                f"The costs are for {self.costs.compute_s.shape[0]} kernels and"
                f" {self.costs.compute_s.shape[1]} devices, the problem has {shape[0]} and"
                f" {shape[1]}; give costs for this graph and machine."
            )
        for value, known, what in (
            (self.memory_model, MEMORY_MODELS, "memory model"),
            (self.unit, tuple(UNIT_S), "unit of time"),
        ):
            if value not in known:
                raise ValueError(
                    f"The {what} {shown(value)} is not known; use one of {listed(known)}."
                )
        for op, device in self.pins:
            if op not in self.graph.index:
                raise ValueError(
                    f"Op {shown(op)} is pinned but not in graph {shown(self.graph.name)}."
                )
            self.machine.device(device)
        ordered = [device for device, _ in self.sequences]
        for device, sequence in self.sequences:
            self.machine.device(device)
            if ordered.count(device) > 1:
                raise ValueError(f"The order on {shown(device)} is pinned twice; pin it once.")
            unknown = next((op for op in sequence if op not in self.graph.index), None)
            if unknown is not None or len(set(sequence)) < len(sequence):
                what = "twice" if unknown is None else f"op {shown(unknown)}, which is not there"
                raise ValueError(f"The order pinned on {shown(device)} names {what}; pin it anew.")
        for name in (name for group in self.groups for name in group):
            if name not in self.graph.index:
                raise ValueError(
                    f"Op {shown(name)} is in a group but not in graph {shown(self.graph.name)}."
                )
        unplaceable = np.flatnonzero(~self.allowed.any(axis=1))
        if unplaceable.size:
            ops = self.ops_of_unit[int(unplaceable[0])]
            group = ", for it and its group" if len(ops) > 1 else ""
            raise ValueError(
                f"No device may run op {shown(self.graph.ops[ops[0]].name)}"
                f" (pins and supported devices leave none{group}); remove a pin or choose another"
                " machine."
            )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that decides what a placement is worth and which ones are allowed.

        Two values, or a value and a bound, may be held against each other only if it is the same.
        """
        costs, arrays, places = self.costs, hashlib.sha256(), self.machine.places
        is_usual = bool((places.weights == np.arange(self.num_devices)).all())
        overhead = (costs.overhead,) if costs.overhead.any() else ()
        for array in (costs.compute_s, costs.call_s, costs.latency_s, costs.s_per_byte, *overhead):
            arrays.update(np.ascontiguousarray(array).tobytes())
        arrays.update(np.ascontiguousarray(costs.workspace_bytes).tobytes())
        return fingerprint_of(
            [
                [self.graph.fingerprint, self.kernels.fingerprint, self.sources],
                [[d.name, d.kind, d.memory_bytes] for d in self.machine.devices],
                [arrays.hexdigest(), costs.contention],
                [self.groups, sorted(self.pins), self.objective, self.execution],
                [self.link_contention, self.memory_model, self.rules.overlap],
                *([] if is_usual else [[each.tolist() for each in places]]),
                *self.rules.decisive,
                *([["in sequence", sorted(self.sequences)]] if self.sequences else []),
            ]
        )

    @property
    def limits_calls(self) -> bool:
        """Whether an accelerator may make only as many calls as a placement says."""
        return self.execution is Execution.CALL and self.objective is Objective.LATENCY

    @property
    def offloads(self) -> bool:
        """Whether weights may stay in host memory and stream (`costs/offload.py`)."""
        return any(device.streams_from for device in self.machine.devices)

    @property
    def is_pipelined(self) -> bool:
        """Whether segments on different devices work on different samples at the same time."""
        return self.objective is Objective.THROUGHPUT and self.execution is not Execution.CALL

    @property
    def num_devices(self) -> int:
        return len(self.machine.devices)

    @property
    def num_units(self) -> int:
        return len(self.ops_of_unit)

    @cached_property
    def _units(self) -> tuple[Ints, Ints]:
        """Unit of each source op and of each kernel; numbered by their first source op."""
        graph, num_ops = self.graph, len(self.graph.ops)
        joined = _Joined(num_ops + len(self.kernels.ops))
        for k, ops in enumerate(self.sources):
            for i in ops:
                joined.join(i, num_ops + k)
        self._join_lone(joined)
        by_colocation: dict[str, int] = {}
        for i, op in enumerate(graph.ops):
            if op.colocation_group is not None:
                joined.join(by_colocation.setdefault(op.colocation_group, i), i)
        for group in self.groups:
            for name in group[1:]:
                joined.join(graph.index[group[0]], graph.index[name])
        units = joined.numbers()
        return units[:num_ops], units[num_ops:]

    def _join_lone(self, joined: "_Joined") -> None:
        """Kernels without source and ops without kernel join their first reader, or maker."""
        num_ops = len(self.graph.ops)
        for k in reversed(range(len(self.sources))):
            if not self.sources[k]:
                neighbours = self.kernels.successors[k] or self.kernels.predecessors[k]
                if neighbours:
                    joined.join(num_ops + neighbours[0], num_ops + k)
        covered = [False] * num_ops
        for ops in self.sources:
            for i in ops:
                covered[i] = True
        lone = [i for i in range(num_ops) if not covered[i]]
        for i in reversed(lone):
            if self.graph.successors[i]:
                joined.join(self.graph.successors[i][0], i)
        for i in lone:
            if not self.graph.successors[i] and self.graph.predecessors[i]:
                joined.join(self.graph.predecessors[i][0], i)

    @property
    def unit_of_op(self) -> Ints:
        return self._units[0]

    @property
    def unit_of_kernel(self) -> Ints:
        return self._units[1]

    @cached_property
    def ops_of_unit(self) -> tuple[tuple[int, ...], ...]:
        """Source ops of each unit (empty for a runtime's own kernels that touch none)."""
        last = max(self.unit_of_op.max(initial=-1), self.unit_of_kernel.max(initial=-1))
        return _members(self.unit_of_op, int(last) + 1)

    @cached_property
    def kernels_of_unit(self) -> tuple[tuple[int, ...], ...]:
        return _members(self.unit_of_kernel, self.num_units)

    @cached_property
    def unit_s(self) -> NDArray[np.float64]:
        """Seconds of compute by (unit, device), infinite where not supported."""
        total = np.zeros((self.num_units, self.num_devices))
        np.add.at(total, self.unit_of_kernel, self.costs.compute_s)
        return total

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Whether pins and support let a unit run on a device, (units, devices)."""
        allowed = np.isfinite(self.unit_s)
        for op, device in self.pins:
            only = np.zeros(self.num_devices, dtype=np.bool_)
            only[self.machine.index[device]] = True
            allowed[self.unit_of_op[self.graph.index[op]]] &= only
        return allowed

    def kernel_devices(self, placement: Placement) -> Ints:
        """Device index of every kernel under a placement; a ValueError names what does not fit."""
        placement.require_graph(self.graph)
        device_of, index = placement.device_of, self.machine.index
        found = [index.get(device, -1) for device in map(device_of.__getitem__, self.graph.index)]
        if -1 in found:
            op = self.graph.ops[found.index(-1)].name
            remedy = "; --offload adds those that stream" if is_streamed(device_of[op]) else ""
            raise ValueError(
                f"The placement puts op {shown(op)} on {shown(device_of[op])}, but machine"
                f" {shown(self.machine.name)} has {listed(index)}{remedy}."
            )
        device_of_op = np.array(found, dtype=np.int64)
        device_of_unit = np.full(self.num_units, -1, dtype=np.int64)
        # Backwards, so that the first op of a unit has the last word.
        device_of_unit[self.unit_of_op[::-1]] = device_of_op[::-1]
        apart = np.flatnonzero(device_of_op != device_of_unit[self.unit_of_op])
        if apart.size:
            i = int(apart[0])
            first = self.ops_of_unit[int(self.unit_of_op[i])][0]
            raise ValueError(
                f"Ops {shown(self.graph.ops[first].name)} and {shown(self.graph.ops[i].name)} run"
                " as one kernel or group, but the placement gives them different devices; put both"
                " on one (--mend does)."
            )
        # Units without source ops are not the placement's to decide: any device that runs them.
        free = np.flatnonzero(device_of_unit < 0)
        device_of_unit[free] = self.allowed[free].argmax(axis=1)
        return device_of_unit[self.unit_of_kernel]

    def placement_of(
        self, device_of_unit: Sequence[int] | Ints, order: Iterable[int] = ()
    ) -> Placement:
        """The placement with each unit on a device; `order` lists kernels, first to run first."""
        names = [d.name for d in self.machine.devices]
        devices = np.asarray(device_of_unit)[self.unit_of_op].tolist()
        device_of = {op.name: names[d] for op, d in zip(self.graph.ops, devices, strict=True)}
        return Placement(
            self.graph.fingerprint, self.machine.name, device_of, self.ops_in_order(order)
        )

    def ops_in_order(self, order: Iterable[int]) -> tuple[str, ...]:
        """Source ops by the last kernel that works for them, folded ones before their readers."""
        position = [-1] * len(self.graph.ops)
        ranked = list(order)
        if not ranked:
            return ()
        for rank, kernel in enumerate(ranked):
            for i in self.sources[kernel]:
                position[i] = rank
        by_position = sorted(range(len(position)), key=lambda i: (position[i], i))
        return tuple(self.graph.ops[i].name for i in by_position)


def own_kernels(graph: Graph) -> tuple[tuple[int, ...], ...]:
    """The sources of a graph whose ops are their own kernels."""
    return tuple((i,) for i in range(len(graph.ops)))


def _members(unit_of: Ints, num_units: int) -> tuple[tuple[int, ...], ...]:
    members: list[list[int]] = [[] for _ in range(num_units)]
    for i, unit in enumerate(unit_of.tolist()):
        members[unit].append(i)
    return tuple(map(tuple, members))


class _Joined:
    """Numbers 0 to n - 1 in sets that only grow together (union-find, least number as root)."""

    def __init__(self, num: int) -> None:
        self._parent = list(range(num))

    def _root(self, i: int) -> int:
        parent = self._parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def join(self, i: int, j: int) -> None:
        i, j = self._root(i), self._root(j)
        if i < j:
            self._parent[j] = i
        else:
            self._parent[i] = j

    def numbers(self) -> Ints:
        """The set of each number, sets counted by their least number."""
        of_root: dict[int, int] = {}
        roots = map(self._root, range(len(self._parent)))
        return np.array([of_root.setdefault(r, len(of_root)) for r in roots], dtype=np.int64)
