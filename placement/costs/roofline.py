"""Analytic costs by the roofline model, for devices that are not here to be measured.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM, 2009. A kernel is bound by arithmetic or by memory:

    seconds = max(flops / (efficiency * flops_per_s), bytes / memory_bytes_per_s) + launch_s

where bytes are what it reads and writes (`Op.moved_bytes`, else its weights and the tensors that it
reads and writes), and flops_per_s is the device's rate in the type that the kernel computes in.
Kernels that only rename a tensor move nothing. `efficiency` is the share of the peak that
well-tuned kernels commonly reach, and `launch_s` what starting one costs, both by kind of device;
they are rules of thumb.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Costs
from placement.core.graph import Graph
from placement.core.machine import Device, Machine, link_arrays
from placement.core.placement import Placement
from placement.core.problem import Problem

EFFICIENCY = {"cpu": 0.6, "gpu": 0.5, "npu": 0.4}
LAUNCH_S = {"cpu": 1e-6, "gpu": 5e-6, "npu": 10e-6}
CALL_S = {"cpu": 10e-6, "gpu": 20e-6, "npu": 50e-6}
# Types that arithmetic is done in, unlike those of indices and masks.
NUMBERS = frozenset(
    {"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "uint8"}
)
VIEWS = frozenset({"Constant", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def roofline(graph: Graph, machine: Machine) -> Costs:
    """Estimated costs of every op on every device of a machine; all devices run all ops."""
    flops = np.array([op.flops for op in graph.ops], dtype=np.float64)
    num_bytes, dtypes = bytes_moved(graph), computing_types(graph)
    compute_s = _columns(machine, lambda d: _seconds(flops, num_bytes, dtypes, d, machine))
    latency_s, s_per_byte = link_arrays(machine)
    return Costs(
        compute_s=compute_s,
        call_s=np.array([CALL_S.get(d.kind, CALL_S["cpu"]) for d in machine.devices]),
        latency_s=latency_s,
        s_per_byte=s_per_byte,
        origin="analytic",
        overhead=machine.overheads,
    )


def _columns(machine: Machine, of_device: Callable[[Device], NDArray[Any]]) -> NDArray[Any]:
    """A column for each device (ops, devices), worked out once for those of equal figures."""
    known: dict[Hashable, int] = {}
    columns: list[NDArray[Any]] = []
    which = []
    for d in machine.devices:
        figures = d.kind, d.flops_per_s, d.memory_bytes_per_s, d.rates
        if figures not in known:
            known[figures] = len(columns)
            columns.append(of_device(d))
        which.append(known[figures])
    return np.stack(columns, axis=1)[:, which]


def computing_types(graph: Graph) -> list[str]:
    """The type that each op computes in: of the first tensor that it reads, or else writes, which
    holds numbers and no indices; float32 where there is none."""
    arrays, tensors = graph.arrays, graph.tensors
    found = []
    for i in range(len(graph.ops)):
        read = arrays.in_tensors[arrays.in_ptr[i] : arrays.in_ptr[i + 1]].tolist()
        written = arrays.out_tensors[arrays.out_ptr[i] : arrays.out_ptr[i + 1]].tolist()
        dtypes = (tensors[t].dtype for t in (*read, *written))
        found.append(next((dtype for dtype in dtypes if dtype in NUMBERS), "float32"))
    return found


def _seconds(
    flops: NDArray[np.float64],
    num_bytes: NDArray[np.float64],
    dtypes: Sequence[str],
    device: Device,
    machine: Machine,
) -> NDArray[np.float64]:
    for name, value in (
        ("flops_per_s", device.flops_per_s),
        ("memory_bytes_per_s", device.memory_bytes_per_s),
    ):
        if not value > 0:
            raise ValueError(
                f"Device {device.name!r} of machine {machine.name!r} has {name} {value}; state it"
                " for estimated costs, or measure a profile."
            )
    arithmetic_s = flops / (_efficiency(device) * _flops_per_s(dtypes, device))
    memory_s = num_bytes / device.memory_bytes_per_s
    return np.asarray(np.maximum(arithmetic_s, memory_s) + _launch_s(device), dtype=np.float64)


def _efficiency(device: Device) -> float:
    return EFFICIENCY.get(device.kind, EFFICIENCY["cpu"])


def _launch_s(device: Device) -> float:
    return LAUNCH_S.get(device.kind, LAUNCH_S["cpu"])


def _flops_per_s(dtypes: Sequence[str], device: Device) -> NDArray[np.float64]:
    """The device's rate for each op, by the type that it computes in."""
    rate_of = {dtype: device.flops_per_s_in(dtype) for dtype in sorted(set(dtypes))}
    return np.array([rate_of[dtype] for dtype in dtypes], dtype=np.float64)


def waits_s(problem: Problem, placement: Placement) -> dict[str, float] | None:
    """Seconds that a placement's kernels wait for "arithmetic", "memory", to "launch", and for
    weights that stream over a "link".

    None where times are no estimates by this formula: what measured kernels wait for is not known.
    """
    rated = all(d.flops_per_s > 0 and d.memory_bytes_per_s > 0 for d in problem.machine.devices)
    if problem.costs.origin != "analytic" or not rated:
        return None
    placed = problem.kernel_devices(placement)
    kernels = np.arange(placed.size)
    # What streams computes as its engine does, after the link.
    device = problem.machine.places.engine[placed]
    seconds = problem.costs.compute_s[kernels, device]
    link_s = problem.costs.compute_s[kernels, placed] - seconds
    starts = np.array([_launch_s(d) for d in problem.machine.devices])[device]
    launch_s = np.minimum(starts, seconds)
    waits = bound_by_memory(problem.kernels, problem.machine)[kernels, device]
    working_s = seconds - launch_s
    return {
        "arithmetic": float(working_s[~waits].sum()),
        "memory": float(working_s[waits].sum()),
        "launch": float(launch_s.sum()),
        "link": float(link_s.sum()),
    }


def bound_by_memory(graph: Graph, machine: Machine) -> NDArray[np.bool_]:
    """Whether each op on each device (ops, devices) waits for memory rather than for arithmetic."""
    flops = np.array([op.flops for op in graph.ops], dtype=np.float64)
    num_bytes, dtypes = bytes_moved(graph), computing_types(graph)

    def waits(d: Device) -> NDArray[np.bool_]:
        arithmetic_s = flops / (_efficiency(d) * _flops_per_s(dtypes, d))
        return np.asarray(num_bytes / d.memory_bytes_per_s >= arithmetic_s)

    return _columns(machine, waits)


def bytes_moved(graph: Graph) -> NDArray[np.float64]:
    """Bytes that each op reads and writes: weights, inputs and outputs, nothing for a view."""
    arrays = graph.arrays
    sizes = arrays.tensor_bytes.astype(np.float64)
    moved = arrays.resident_bytes.astype(np.float64)
    for i, op in enumerate(graph.ops):
        if op.moved_bytes is not None:
            moved[i] = op.moved_bytes
            continue
        moved[i] += sizes[arrays.in_tensors[arrays.in_ptr[i] : arrays.in_ptr[i + 1]]].sum()
        moved[i] += sizes[arrays.out_tensors[arrays.out_ptr[i] : arrays.out_ptr[i + 1]]].sum()
    moved[np.array([op.kind in VIEWS for op in graph.ops], dtype=np.bool_)] = 0.0
    return moved
