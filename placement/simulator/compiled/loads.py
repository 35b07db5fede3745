"""Seconds of work per sample of each device and link, for pipelines (compiled)."""

import numpy as np

from placement.compiled.jit import inner, jit
from placement.core.costs import Floats
from placement.simulator.compiled.links import crosses
from placement.simulator.flat import Flat
from placement.simulator.run_state import UNUSED, RunState


@jit
def find_loads(flat: Flat, state: RunState) -> tuple[Floats, Floats]:
    """Loads of the devices (D,) and of the links (D * D,), with a call at every crossing.

    A device's load is its compute, its calls and all that it sends and receives, and those of who
    computes on it; host devices slow each other down (see throughput.py).
    """
    device, order, first = state.device, state.order, state.first
    producer, is_output, on_host, host = flat.producer, flat.is_output, flat.on_host, flat.host
    in_ptr, in_tensors, out_ptr, out_tensors = (
        flat.in_ptr,
        flat.in_tensors,
        flat.out_ptr,
        flat.out_tensors,
    )
    compute_s, call_s, each_pays = flat.compute_s, flat.call_s, flat.each_pays
    move_s, s_per_byte, tensor_bytes = flat.move_s, flat.s_per_byte, flat.tensor_bytes
    num_devices = call_s.size
    loads_s, links_s = np.zeros(num_devices), np.zeros(num_devices * num_devices)
    work_s = np.zeros(num_devices)
    opened = np.zeros(num_devices, dtype=np.bool_)
    for i in range(order.size):
        k = order[i]
        d = device[k]
        called = each_pays or not opened[d]
        for j in range(in_ptr[k], in_ptr[k + 1]):
            t = in_tensors[j]
            if first[t * num_devices + d] == i and crosses(producer, device, on_host, host, t, d):
                called = True
                source = device[producer[t]] if producer[t] >= 0 else host
                seconds = move_s[source, d] + tensor_bytes[t] * s_per_byte[source, d]
                loads_s[source] += seconds
                loads_s[d] += seconds
                links_s[source * num_devices + d] += seconds
        work_s[d] += compute_s[k, d] + (call_s[d] if called else 0.0)
        opened[d] = True
        for o in range(out_ptr[k], out_ptr[k + 1]):
            t = out_tensors[o]
            for e in range(num_devices):
                if e != d and first[t * num_devices + e] != UNUSED:
                    opened[d] = False
            if is_output[t] and host >= 0 and not on_host[d]:
                opened[d] = False
                if first[t * num_devices + host] == UNUSED:
                    seconds = move_s[d, host] + tensor_bytes[t] * s_per_byte[d, host]
                    loads_s[d] += seconds
                    loads_s[host] += seconds
                    links_s[d * num_devices + host] += seconds
    loads_s += work_s
    for d in range(num_devices):
        if flat.engine[d] != d:
            loads_s[flat.engine[d]] += loads_s[d]
    add_contention(flat, work_s, loads_s, max(loads_s.max(), links_s.max()))
    return loads_s, links_s


@inner
def add_contention(flat: Flat, work_s: Floats, loads_s: Floats, most_s: float) -> None:
    """Slow each host device's work (D,) for the share of time that the others work."""
    if flat.contention == 0.0 or not 0.0 < most_s < np.inf:
        return
    together_s = 0.0
    for d in range(work_s.size):
        together_s += work_s[d] if flat.on_host[d] else 0.0
    for d in range(work_s.size):
        if flat.on_host[d]:
            loads_s[d] += work_s[d] * flat.contention * (together_s - work_s[d]) / most_s


@inner
def pipeline_s(flat: Flat, state: RunState, power: float) -> float:
    """The `power` mean of all loads, near the largest but with a slope where that has none."""
    loads_s, links_s = find_loads(flat, state)
    most_s = max(loads_s.max(), links_s.max())
    if most_s <= 0.0:
        return 0.0
    total = ((loads_s / most_s) ** power).sum() + ((links_s / most_s) ** power).sum()
    return float(most_s * total ** (1.0 / power))
