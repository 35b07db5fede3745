"""A workload as arrays: what the engines for splits over accelerators and CPUs read.

The cost model is that of Tarnawski et al., "Efficient algorithms for device placement of DNN graph
operators", NeurIPS 2020: transfers go through host memory and belong to the accelerators' time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.objective import PLAIN, CallRules
from placement.core.problem import Execution, Problem

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SplitInstance:
    """Nodes (N) in topological order, colour classes (C), nets (T) and alike accelerators and CPUs.

    `acc_s` and `cpu_s` (N,) are compute seconds, infinite where a device kind cannot run a node.
    `class_of` (N,) numbers the classes that share a device; `allowed` (C, D) has the accelerators'
    columns first. A net is a producing node and its consumers, `net_nodes[net_ptr[t]:net_ptr[t +
    1]]`, producer first; an accelerator that holds some but not all of them pays `net_cost_s[t]`.
    `limit_bytes` is the memory of one accelerator; CPUs have no limit. `rules` say how loads are
    charged. `names` serve messages.
    """

    acc_s: Floats
    cpu_s: Floats
    size_bytes: Floats
    class_of: Ints
    allowed: Bools
    backward: Bools
    net_ptr: Ints
    net_nodes: Ints
    net_cost_s: Floats
    num_accelerators: int
    num_cpus: int
    limit_bytes: float
    names: tuple[str, ...]
    rules: CallRules = PLAIN

    @property
    def num_nodes(self) -> int:
        return len(self.acc_s)

    @property
    def num_classes(self) -> int:
        return len(self.allowed)

    @property
    def num_devices(self) -> int:
        return self.num_accelerators + self.num_cpus

    def class_sums(self, values: Floats) -> Floats:
        """Sums of a node array by class, (C,)."""
        return sums_by(self.class_of, values, self.num_classes)

    def name_of_class(self, number: int) -> str:
        """A class as messages name it: its first node, and how many follow."""
        members = np.flatnonzero(self.class_of == number)
        more = f" and {len(members) - 1} more of its group" if len(members) > 1 else ""
        return f"{self.names[int(members[0])]!r}{more}"


@dataclass(frozen=True)
class DeviceColumns:
    """Positions of a machine's accelerators and CPUs in its list of devices."""

    accelerators: tuple[int, ...]
    cpus: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        return self.accelerators + self.cpus


def device_columns(problem: Problem) -> DeviceColumns:
    """Which devices are accelerators; ValueError unless the problem is a workload of alike ones."""
    if problem.execution is not Execution.CALL:
        raise ValueError(
            f"This placer works on workload files (execution 'call'), not on problems of execution"
            f" {problem.execution!r}; choose another placer."
        )
    devices = problem.machine.devices
    accelerators = tuple(i for i, d in enumerate(devices) if not d.on_host)
    cpus = tuple(i for i, d in enumerate(devices) if d.on_host)
    for kind in (accelerators, cpus):
        for i in kind[1:]:
            same = np.array_equal(
                problem.costs.compute_s[:, i], problem.costs.compute_s[:, kind[0]]
            )
            if not same or devices[i].memory_bytes != devices[kind[0]].memory_bytes:
                raise ValueError(
                    f"Devices {devices[kind[0]].name!r} and {devices[i].name!r} differ in times or"
                    " memory; this placer needs alike accelerators and alike CPUs."
                )
    return DeviceColumns(accelerators, cpus)


def from_problem(problem: Problem) -> SplitInstance:
    """The instance of a problem with execution "call"; ValueError for any other."""
    columns = device_columns(problem)
    graph, costs = problem.kernels, problem.costs
    arrays = graph.arrays
    inner = np.flatnonzero(arrays.producer >= 0)
    pins = [
        [
            int(arrays.producer[t]),
            *arrays.consumers[arrays.consumer_ptr[t] : arrays.consumer_ptr[t + 1]],
        ]
        for t in inner
    ]
    move_s, s_per_byte = _cost_of_crossing(problem, columns)
    limit = (
        problem.machine.devices[columns.accelerators[0]].memory_bytes
        if columns.accelerators
        else None
    )
    never = np.full(len(graph.ops), np.inf)
    net_ptr, net_nodes = csr(pins)
    return SplitInstance(
        acc_s=costs.compute_s[:, columns.accelerators[0]] if columns.accelerators else never,
        cpu_s=costs.compute_s[:, columns.cpus[0]] if columns.cpus else never,
        size_bytes=arrays.param_bytes,
        class_of=problem.unit_of_kernel,
        allowed=problem.allowed[:, list(columns.all)],
        backward=np.array([op.phase == "backward" for op in graph.ops], dtype=np.bool_),
        net_ptr=net_ptr,
        net_nodes=net_nodes,
        net_cost_s=move_s + arrays.tensor_bytes[inner] * s_per_byte,
        num_accelerators=len(columns.accelerators),
        num_cpus=len(columns.cpus),
        limit_bytes=np.inf if limit is None else float(limit),
        names=tuple(op.name for op in graph.ops),
        rules=problem.rules,
    )


def _cost_of_crossing(problem: Problem, columns: DeviceColumns) -> tuple[float, float]:
    """Seconds and seconds per byte between an accelerator and host memory (see call_costs.py)."""
    if not columns.accelerators:
        return 0.0, 0.0
    accelerators = list(columns.accelerators)
    move_s = problem.costs.latency_s.max(axis=1)[accelerators]
    s_per_byte = problem.costs.s_per_byte.max(axis=1)[accelerators]
    unlike = np.flatnonzero((move_s != move_s[0]) | (s_per_byte != s_per_byte[0]))
    if unlike.size:
        devices = problem.machine.devices
        raise ValueError(
            f"Devices {devices[accelerators[0]].name!r} and"
            f" {devices[accelerators[int(unlike[0])]].name!r} differ in their links; this placer"
            " needs alike accelerators."
        )
    return float(move_s[0]), float(s_per_byte[0])


def sums_by(group: Ints, values: Floats, num_groups: int) -> Floats:
    """Sums of values by group."""
    total: Floats = np.bincount(group, weights=values, minlength=num_groups).astype(np.float64)
    return total


def csr(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Rows of different lengths as row starts (rows + 1,) and all values in one array."""
    ptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=ptr[1:])
    flat = np.array([value for row in rows for value in row], dtype=np.int64)
    return ptr, flat
