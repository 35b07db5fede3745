"""Why an op is where it is: its time on each device, what it sends and waits for, its slack."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.schedule.simulated import Simulated
from placement.simulator.critical_path import slack_s


@dataclass(frozen=True)
class Move:
    """One tensor that crosses to or from the chosen ops."""

    tensor: str
    src: str
    dst: str
    num_bytes: int
    duration_s: float


@dataclass(frozen=True)
class Why:
    """Answers for some chosen ops, together with all that are fused with them.

    `time_s` is None for a device that cannot run them. `slack_s` is how much later they could end
    without the step getting longer; None where they cost nothing. `along` are ops that move with
    them.
    """

    devices: tuple[str, ...]
    time_s: Mapping[str, float | None]
    incoming: tuple[Move, ...]
    outgoing: tuple[Move, ...]
    slack_s: float | None
    is_critical: bool
    along: tuple[str, ...]


def why(problem: Problem, placed: Placement, predicted: Simulated, ops: Iterable[str]) -> Why:
    index = problem.graph.index
    chosen = [index[name] for name in ops if name in index]
    units = sorted({int(problem.unit_of_op[i]) for i in chosen})
    members = [i for unit in units for i in problem.ops_of_unit[unit]]
    kernels = {k for unit in units for k in problem.kernels_of_unit[unit]}
    total_s = problem.unit_s[units].sum(axis=0) if units else np.zeros(problem.num_devices)
    names = [d.name for d in problem.machine.devices]
    used = {placed.device_of[problem.graph.ops[i].name] for i in members}
    segment_of = predicted.schedule.segment_of
    own = {segment_of[problem.kernels.ops[k].name] for k in kernels}
    slack = slack_s(predicted.timeline.spans, predicted.timeline.step_s)
    slacks = [
        slack[i]
        for i, span in enumerate(predicted.timeline.spans)
        if span.kind == "compute" and span.segment in own
    ]
    critical = {s.segment for s in predicted.critical_path if s.kind == "compute"}
    incoming, outgoing = _moves(problem, placed, kernels)
    return Why(
        devices=tuple(n for n in names if n in used),
        time_s={
            name: float(time_s) if np.isfinite(time_s) else None
            for name, time_s in zip(names, total_s, strict=True)
        },
        incoming=incoming,
        outgoing=outgoing,
        slack_s=min(slacks, default=None),
        is_critical=bool(own & critical),
        along=tuple(problem.graph.ops[i].name for i in sorted(set(members) - set(chosen))),
    )


def critical_ops(problem: Problem, predicted: Simulated) -> list[str]:
    """Source ops of the segments on the critical path, in declared order."""
    names = {
        kernel
        for span in predicted.critical_path
        if span.kind == "compute" and span.segment >= 0
        for kernel in predicted.schedule.segments[span.segment].kernels
    }
    ops = {
        i
        for kernel, sources in zip(problem.kernels.ops, problem.sources, strict=True)
        if kernel.name in names
        for i in sources
    }
    return [problem.graph.ops[i].name for i in sorted(ops)]


def _moves(
    problem: Problem, placed: Placement, kernels: set[int]
) -> tuple[tuple[Move, ...], tuple[Move, ...]]:
    """Tensors over a link into and out of these kernels, each once per destination device."""
    device = problem.kernel_devices(placed)
    index = problem.kernels.index
    names = [d.name for d in problem.machine.devices]
    host = next((i for i, d in enumerate(problem.machine.devices) if d.on_host), None)
    incoming, outgoing = [], []
    for tensor in problem.kernels.tensors:
        producer = None if tensor.producer is None else index[tensor.producer]
        src = host if producer is None else int(device[producer])
        readers = [index[c] for c in tensor.consumers]
        inside = producer in kernels
        if src is None or not (inside or any(r in kernels for r in readers)):
            continue
        for dst in dict.fromkeys(int(device[r]) for r in readers):
            shared = producer is None and problem.machine.devices[dst].on_host
            if dst == src or shared:
                continue
            there = [r for r in readers if int(device[r]) == dst]
            move = Move(
                tensor.name,
                names[src],
                names[dst],
                tensor.num_bytes,
                problem.costs.transfer_s(src, dst, tensor.num_bytes),
            )
            if inside:
                outgoing.append(move)
            elif any(r in kernels for r in there):
                incoming.append(move)
    return tuple(incoming), tuple(outgoing)
