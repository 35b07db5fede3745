"""A placement problem: graph, machine, costs, constraints and objective.

A person places source ops; a machine runs kernels. The map between them is many to many, so a
problem joins them into *units*: the connected parts of the map, which move together. Placers decide
one device per unit; `kernel_devices` and `placement_of` translate between the two sides.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Costs
from placement.core.graph import Graph, Ints
from placement.core.machine import Machine
from placement.core.placement import Placement

OBJECTIVES = ("latency", "throughput")
EXECUTIONS = ("op", "segment")
MEMORY_MODELS = ("live", "sum")


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a placer may know.

    `kernels` is what runs (the graph itself where no runtime has optimised it) and `sources[k]`
    the indices of the source ops behind kernel k. `groups` lists source ops that must share a
    device, `pins` fixes (op, device) pairs. `execution` is "op" (each kernel its own task) or
    "segment" (neighbouring kernels of a device run in one call). Without `link_contention` any
    number of tensors pass a link at once. `memory_model` "live" counts weights and live tensors,
    "sum" the plain sum of `param_bytes`, as problem files state sizes. `objective` is "latency"
    (seconds of one step) or "throughput" (seconds between samples of a full pipeline).
    """

    graph: Graph
    machine: Machine
    costs: Costs
    kernels: Graph
    sources: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[str, ...], ...] = ()
    pins: tuple[tuple[str, str], ...] = ()
    objective: str = "latency"
    execution: str = "segment"
    link_contention: bool = True
    memory_model: str = "live"
    unit: str = field(default="s", kw_only=True)

    def __post_init__(self) -> None:
        shape = (len(self.kernels.ops), len(self.machine.devices))
        if self.costs.compute_s.shape != shape or len(self.sources) != shape[0]:
            raise ValueError(
                f"The costs are for {self.costs.compute_s.shape[0]} kernels and"
                f" {self.costs.compute_s.shape[1]} devices, the problem has {shape[0]} and"
                f" {shape[1]}; give costs for this graph and machine."
            )
        for value, known, what in (
            (self.objective, OBJECTIVES, "objective"),
            (self.execution, EXECUTIONS, "execution"),
            (self.memory_model, MEMORY_MODELS, "memory model"),
        ):
            if value not in known:
                raise ValueError(
                    f"The {what} {value!r} is not known; use one of {', '.join(known)}."
                )
        for op, device in self.pins:
            if op not in self.graph.index:
                raise ValueError(f"Op {op!r} is pinned but not in graph {self.graph.name!r}.")
            self.machine.device(device)
        for name in (name for group in self.groups for name in group):
            if name not in self.graph.index:
                raise ValueError(f"Op {name!r} is in a group but not in graph {self.graph.name!r}.")
        unplaceable = np.flatnonzero(~self.allowed.any(axis=1))
        if unplaceable.size:
            ops = self.ops_of_unit[int(unplaceable[0])]
            group = ", for it and its group" if len(ops) > 1 else ""
            raise ValueError(
                f"No device may run op {self.graph.ops[ops[0]].name!r}"
                f" (pins and supported devices leave none{group}); remove a pin or choose another"
                " machine."
            )

    @property
    def num_devices(self) -> int:
        return len(self.machine.devices)

    @property
    def num_units(self) -> int:
        return len(self.ops_of_unit)

    @cached_property
    def _units(self) -> tuple[Ints, Ints]:
        """Unit of each source op and of each kernel; numbered by their first source op."""
        num_ops = len(self.graph.ops)
        parent = list(range(num_ops + len(self.kernels.ops)))

        def root(i: int) -> int:
            while parent[i] != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            return i

        def join(i: int, j: int) -> None:
            low, high = sorted((root(i), root(j)))
            parent[high] = low

        covered = [False] * num_ops
        for k, ops in enumerate(self.sources):
            for i in ops:
                join(i, num_ops + k)
                covered[i] = True
        for k in reversed(range(len(self.sources))):
            if not self.sources[k]:
                neighbours = self.kernels.successors[k] or self.kernels.predecessors[k]
                if neighbours:
                    join(num_ops + neighbours[0], num_ops + k)
        for i in reversed(range(num_ops)):
            if not covered[i] and self.graph.successors[i]:
                join(self.graph.successors[i][0], i)
                covered[i] = True
        for i in range(num_ops):
            if not covered[i] and self.graph.predecessors[i]:
                join(self.graph.predecessors[i][0], i)
        by_colocation: dict[str, int] = {}
        for i, op in enumerate(self.graph.ops):
            if op.colocation_group is not None:
                join(by_colocation.setdefault(op.colocation_group, i), i)
        for group in self.groups:
            for name in group[1:]:
                join(self.graph.index[group[0]], self.graph.index[name])
        number: dict[int, int] = {}
        units = [number.setdefault(root(i), len(number)) for i in range(len(parent))]
        return np.array(units[:num_ops], dtype=np.int64), np.array(units[num_ops:], dtype=np.int64)

    @property
    def unit_of_op(self) -> Ints:
        return self._units[0]

    @property
    def unit_of_kernel(self) -> Ints:
        return self._units[1]

    @cached_property
    def ops_of_unit(self) -> tuple[tuple[int, ...], ...]:
        """Source ops of each unit (empty for a runtime's own kernels that touch none)."""
        numbers = (*self.unit_of_op.tolist(), *self.unit_of_kernel.tolist())
        return _members(self.unit_of_op, max(numbers, default=-1) + 1)

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
        device_of_unit = np.full(self.num_units, -1, dtype=np.int64)
        set_by: dict[int, str] = {}
        for i, op in enumerate(self.graph.ops):
            name = placement.device_of[op.name]
            if name not in self.machine.index:
                raise ValueError(
                    f"The placement puts op {op.name!r} on {name!r}, but machine"
                    f" {self.machine.name!r} has {', '.join(self.machine.index)}."
                )
            unit, device = int(self.unit_of_op[i]), self.machine.index[name]
            if device_of_unit[unit] not in (-1, device):
                raise ValueError(
                    f"Ops {set_by[unit]!r} and {op.name!r} run as one kernel or group, but the"
                    " placement gives them different devices; put both on one (--mend does)."
                )
            device_of_unit[unit] = device
            set_by.setdefault(unit, op.name)
        # Units without source ops are not the placement's to decide: any device that runs them.
        free = np.flatnonzero(device_of_unit < 0)
        device_of_unit[free] = self.allowed[free].argmax(axis=1)
        return device_of_unit[self.unit_of_kernel]

    def placement_of(
        self, device_of_unit: Sequence[int] | Ints, order: Iterable[int] = ()
    ) -> Placement:
        """The placement with each unit on a device; `order` lists kernels, first to run first."""
        names = [d.name for d in self.machine.devices]
        device_of = {
            op.name: names[int(device_of_unit[int(self.unit_of_op[i])])]
            for i, op in enumerate(self.graph.ops)
        }
        return Placement(
            self.graph.fingerprint, self.machine.name, device_of, self._ops_in_order(order)
        )

    def _ops_in_order(self, order: Iterable[int]) -> tuple[str, ...]:
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
    for i, unit in enumerate(unit_of):
        members[int(unit)].append(i)
    return tuple(tuple(m) for m in members)
