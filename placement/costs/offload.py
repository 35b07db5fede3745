"""Offload: weights that stay in host memory and are sent over the link in every step.

Where a model is larger than an accelerator's memory, as in FlexGen (Sheng et al., "FlexGen:
high-throughput generative inference of large language models with a single GPU", ICML 2023) and in
the offload of Hugging Face accelerate. Each such accelerator gets a sibling, a device of its own
name and "-streamed": what is placed there runs on the accelerator, one call at a time for both, and
reads and writes in its memory, but its weights lie in host memory. A kernel takes

    its own seconds + latency_s + weight bytes / bytes_per_s of the link from the host

because the weights are sent first and computed with then, as accelerate does, so that the memory
holds one kernel's weights at a time. Since siblings are devices, whatever places, bounds, checks,
edits or exports placements knows them already. Several accelerators that stream at one time do not
slow each other here.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placement.core.costs import Costs, Floats
from placement.core.graph import Ints
from placement.core.machine import Device, streamed_name
from placement.core.placement import Placement
from placement.core.problem import Execution, Problem
from placement.core.schedule import Schedule, Segment
from placement.core.violations import needed_bytes


def with_offload(problem: Problem) -> Problem:
    """The problem with a sibling for each accelerator whose memory does not hold the whole model.

    Itself where every accelerator holds it, for then nothing has to stream. A ValueError says what
    offload cannot be predicted with.
    """
    reason = refusal(problem)
    if reason:
        raise ValueError(f"{reason}; leave --offload out.")
    return problem if problem.offloads else _with_siblings(problem, _too_small(problem))


def refusal(problem: Problem) -> str:
    """Why offload cannot be predicted for a problem, without a full stop; empty if it can."""
    if problem.execution is Execution.CALL or problem.memory_model != "live":
        return (
            f"{problem.graph.name!r} carries its own machine and costs, which say nothing of where"
            " weights stream from"
        )
    devices = problem.machine.devices
    if problem.costs.contention and sum(d.on_host for d in devices) > 1 and _too_small(problem):
        return (
            f"The lanes of machine {problem.machine.name!r} slow each other down, which is not"
            " predicted together with offload; use one lane (--lanes 1)"
        )
    return ""


def with_same_offload(problem: Problem, before: Problem) -> Problem:
    """The problem with siblings for the accelerators that have one in another problem."""
    engines = (d.engine for d in before.machine.devices if d.streams_from)
    return _with_siblings(problem, [problem.machine.index[engine] for engine in engines])


def without_offload(problem: Problem) -> Problem:
    """The problem as it was before `with_offload`; pins of siblings are left out."""
    if not problem.offloads:
        return problem
    devices = tuple(d for d in problem.machine.devices if not d.streams_from)
    names, num = {d.name for d in devices}, len(devices)
    return replace(
        problem,
        machine=replace(problem.machine, devices=devices),
        costs=_extended(problem.costs, np.arange(num), np.zeros((len(problem.kernels.ops), 0))),
        pins=tuple((op, device) for op, device in problem.pins if device in names),
    )


def streamed_bytes(problem: Problem, placement: Placement) -> dict[str, int]:
    """Bytes of weights that each accelerator gets anew in every step, for those that get any."""
    if not problem.offloads:
        return {}
    found, device_of_kernel = dict[str, int](), problem.kernel_devices(placement)
    for d, device in enumerate(problem.machine.devices):
        if device.streams_from:
            num_bytes = problem.kernels.arrays.param_bytes[device_of_kernel == d].sum()
            found |= {device.engine: int(num_bytes)} if num_bytes else {}
    return found


def _too_small(problem: Problem) -> list[int]:
    """Accelerators (indices) whose memory does not hold the whole model, near a host that may."""
    return [
        d
        for d, device in enumerate(problem.machine.devices)
        if not device.on_host
        and device.memory_bytes is not None
        and _host(problem, d) >= 0
        and not _holds_all(problem, d)
    ]


def _with_siblings(problem: Problem, accelerators: Sequence[int]) -> Problem:
    if not accelerators:
        return problem
    devices, hosts = problem.machine.devices, [_host(problem, d) for d in accelerators]
    pairs = list(zip(accelerators, hosts, strict=True))
    siblings = tuple(_sibling(devices[d], devices[host]) for d, host in pairs)
    stands_for = np.array([*range(len(devices)), *accelerators], dtype=np.int64)
    streams_s = np.stack([_stream_s(problem, host, d) for d, host in pairs], axis=1)
    return replace(
        problem,
        machine=replace(problem.machine, devices=(*devices, *siblings)),
        costs=_extended(problem.costs, stands_for, streams_s),
    )


def _holds_all(problem: Problem, d: int) -> bool:
    """Whether a device's memory holds all weights and values of a step at once."""
    device = problem.machine.devices[d]
    whole = Segment(device.name, tuple(op.name for op in problem.kernels.ops))
    schedule = Schedule((whole,) if whole.kernels else ())
    return bool(needed_bytes(problem, schedule)[d] <= problem.machine.limit_bytes[d])


def _host(problem: Problem, d: int) -> int:
    """The CPU with the fastest link to a device, the first of equals, or -1 without one."""
    hosts = [h for h, device in enumerate(problem.machine.devices) if device.on_host]
    return min(hosts, key=lambda h: (float(problem.costs.s_per_byte[h, d]), h), default=-1)


def _sibling(device: Device, host: Device) -> Device:
    return replace(
        device,
        name=streamed_name(device.name),
        memory_bytes=None,
        label=f"{device.label or device.name}, weights in the memory of {host.name}",
        memory="",
        engine=device.name,
        streams_from=host.name,
    )


def _stream_s(problem: Problem, host: int, d: int) -> Floats:
    """Seconds (K,) that each kernel's weights take from the host to a device."""
    num_bytes = problem.kernels.arrays.param_bytes
    seconds = problem.costs.latency_s[host, d] + num_bytes * problem.costs.s_per_byte[host, d]
    return np.where(num_bytes > 0, seconds, 0.0)


def _extended(costs: Costs, stands_for: Ints, streams_s: Floats) -> Costs:
    """The costs of devices each of which stands for one of these, the last with weights to get.

    Between a device and its sibling nothing has to move.
    """
    num_same = stands_for.size - streams_s.shape[1]
    compute_s = costs.compute_s[:, stands_for]
    compute_s[:, num_same:] += streams_s
    both = np.ix_(stands_for, stands_for)
    return replace(
        costs,
        compute_s=compute_s,
        call_s=costs.call_s[stands_for],
        latency_s=costs.latency_s[both],
        s_per_byte=costs.s_per_byte[both],
        overhead=costs.overhead[:, stands_for[:, None], stands_for],
        spread=None if costs.spread is None else costs.spread[:, stands_for],
    )
