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
                links_s[flat.channel[source * num_devices + d]] += seconds
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
                    links_s[flat.channel[d * num_devices + host]] += seconds
    add_work(flat, work_s, loads_s, links_s)
    return loads_s, links_s


@jit
def find_turn_loads(flat: Flat, state: RunState) -> tuple[Floats, Floats]:
    """The same where devices take turns: as few calls as data allow (see schedule/stages.py).

    The turns go there and back, from the device that runs first to the one that begins last. A
    kernel runs in its device's first turn that is no earlier than what it reads of its own device
    and later than what it reads of others; a call is a turn in which something runs.
    """
    device, order, first = state.device, state.order, state.first
    producer, on_host, host = flat.producer, flat.on_host, flat.host
    move_s, s_per_byte, tensor_bytes = flat.move_s, flat.s_per_byte, flat.tensor_bytes
    num_devices, num_kernels = flat.call_s.size, order.size
    loads_s, links_s = np.zeros(num_devices), np.zeros(num_devices * num_devices)
    work_s = np.zeros(num_devices)
    begins = np.full(num_devices, num_kernels)
    for i in range(num_kernels - 1, -1, -1):
        begins[device[order[i]]] = i
    place = np.zeros(num_devices, dtype=np.int64)
    for d in range(num_devices):
        for e in range(num_devices):
            if begins[e] < begins[d] or (begins[e] == begins[d] and e < d):
                place[d] += 1
    num_turns = max(1, 2 * num_devices - 2)
    turn_of = np.zeros(num_kernels, dtype=np.int64)
    is_call = np.zeros(num_turns * (num_kernels + 1), dtype=np.bool_)
    for i in range(num_kernels):
        k = order[i]
        d = device[k]
        turn = place[d]
        for j in range(flat.in_ptr[k], flat.in_ptr[k + 1]):
            t = flat.in_tensors[j]
            p = producer[t]
            if p >= 0:
                ready = turn_of[p]
                if device[p] != d:
                    there = (place[d] - ready - 1) % num_turns
                    back = (-place[d] - ready - 1) % num_turns
                    ready += 1 + min(there, back)
                turn = max(turn, ready)
            if first[t * num_devices + d] == i and crosses(producer, device, on_host, host, t, d):
                source = device[p] if p >= 0 else host
                seconds = move_s[source, d] + tensor_bytes[t] * s_per_byte[source, d]
                loads_s[source] += seconds
                loads_s[d] += seconds
                links_s[flat.channel[source * num_devices + d]] += seconds
        turn_of[k] = turn
        work_s[d] += flat.compute_s[k, d]
        if not is_call[turn]:
            is_call[turn] = True
            work_s[d] += flat.call_s[d]
        if host >= 0 and not on_host[d]:
            for o in range(flat.out_ptr[k], flat.out_ptr[k + 1]):
                t = flat.out_tensors[o]
                if flat.is_output[t] and first[t * num_devices + host] == UNUSED:
                    seconds = move_s[d, host] + tensor_bytes[t] * s_per_byte[d, host]
                    loads_s[d] += seconds
                    loads_s[host] += seconds
                    links_s[flat.channel[d * num_devices + host]] += seconds
    add_work(flat, work_s, loads_s, links_s)
    return loads_s, links_s


@inner
def add_work(flat: Flat, work_s: Floats, loads_s: Floats, links_s: Floats) -> None:
    """Add each device's work to what it sends and receives, that of others on its engine too."""
    loads_s += work_s
    for d in range(work_s.size):
        if flat.engine[d] != d:
            loads_s[flat.engine[d]] += loads_s[d]
    add_contention(flat, work_s, loads_s, max(loads_s.max(), links_s.max()))


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
    loads_s, links_s = find_loads(flat, state) if flat.each_pays else find_turn_loads(flat, state)
    most_s = max(loads_s.max(), links_s.max())
    if most_s <= 0.0:
        return 0.0
    total = ((loads_s / most_s) ** power).sum() + ((links_s / most_s) ** power).sum()
    return float(most_s * total ** (1.0 / power))
