"""Analytic costs by the roofline model, for devices that are not here to be measured.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM, 2009. A kernel is bound by arithmetic or by memory:

    seconds = max(flops / (efficiency * flops_per_s), bytes / memory_bytes_per_s) + launch_s

where bytes are the weights and tensors it reads and the tensors it writes, and flops_per_s is the
device's rate in the type that the kernel computes in. Kernels that only rename a tensor move
nothing. `efficiency` is the share of the peak that well-tuned kernels commonly reach,
and `launch_s` what starting one costs, both by kind of device; they are rules of thumb.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Costs
from placement.core.graph import Graph
from placement.core.machine import Device, Machine, link_arrays

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
    num_bytes, dtypes = _bytes_moved(graph), computing_types(graph)
    columns = [_seconds(flops, num_bytes, dtypes, d, machine) for d in machine.devices]
    latency_s, s_per_byte = link_arrays(machine)
    return Costs(
        compute_s=np.stack(columns, axis=1),
        call_s=np.array([CALL_S.get(d.kind, CALL_S["cpu"]) for d in machine.devices]),
        latency_s=latency_s,
        s_per_byte=s_per_byte,
        origin="analytic",
    )


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
    efficiency = EFFICIENCY.get(device.kind, EFFICIENCY["cpu"])
    launch_s = LAUNCH_S.get(device.kind, LAUNCH_S["cpu"])
    rate_of = {dtype: device.flops_per_s_in(dtype) for dtype in sorted(set(dtypes))}
    flops_per_s = np.array([rate_of[dtype] for dtype in dtypes], dtype=np.float64)
    bound_s = np.maximum(flops / (efficiency * flops_per_s), num_bytes / device.memory_bytes_per_s)
    return np.asarray(bound_s + launch_s, dtype=np.float64)


def _bytes_moved(graph: Graph) -> NDArray[np.float64]:
    """Bytes that each op reads and writes: weights, inputs and outputs, nothing for a view."""
    arrays = graph.arrays
    sizes = arrays.tensor_bytes.astype(np.float64)
    moved = arrays.param_bytes.astype(np.float64)
    for i in range(len(graph.ops)):
        moved[i] += sizes[arrays.in_tensors[arrays.in_ptr[i] : arrays.in_ptr[i + 1]]].sum()
        moved[i] += sizes[arrays.out_tensors[arrays.out_ptr[i] : arrays.out_ptr[i + 1]]].sum()
    moved[np.array([op.kind in VIEWS for op in graph.ops], dtype=np.bool_)] = 0.0
    return moved
