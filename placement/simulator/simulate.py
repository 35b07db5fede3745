"""Simulation of one step: a problem and a schedule give a predicted timeline, and memory over time.

Each device runs its segments in the schedule's order, each as soon as the device is free and its
inputs have arrived; a segment's values appear when it ends. A link is a first-in first-out channel
for each direction, independent of compute; a tensor crosses once per destination device.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span, Timeline
from placement.core.violations import needed_bytes
from placement.simulator.condensed import Condensed, condense, ready_to_run
from placement.simulator.executions import COST_MODELS, lower
from placement.simulator.flat import Flat, flatten
from placement.simulator.lowering import Tasks, Times, kernels_in_order, segment_devices
from placement.simulator.memory import held_over_time
from placement.simulator.run_state import RunState


@dataclass(frozen=True)
class MemoryCurve:
    """Bytes of one device as steps: `held_bytes[i]` from `at_s[i]` until `at_s[i + 1]`.

    It begins at 0 and ends with the step, where the last value stands once more. `needed_bytes` is
    what the device needs by the order of its segments, the one figure that is held against
    `limit_bytes` (None where there is no limit). The curve itself may rise a little higher or less
    high, as devices compute side by side.
    """

    device: str
    at_s: tuple[float, ...]
    held_bytes: tuple[int, ...]
    needed_bytes: int
    limit_bytes: float | None


def simulate(problem: Problem, schedule: Schedule) -> Timeline:
    """Predicted timeline of one step, with spans in order of their start."""
    tasks = lower(problem, schedule)
    times = times_of(problem, schedule, tasks)
    peaks = needed_bytes(problem, schedule)
    names = [d.name for d in problem.machine.devices]
    spans = spans_of(problem, schedule, tasks, times)
    return Timeline(spans, times.step_s, "predicted", dict(zip(names, peaks, strict=True)))


def memory_over_time(problem: Problem, schedule: Schedule) -> tuple[MemoryCurve, ...]:
    """A curve for every device with a memory of its own, as predicted for one step."""
    tasks = lower(problem, schedule)
    held = held_over_time(problem, schedule, tasks, times_of(problem, schedule, tasks))
    needed, owners = needed_bytes(problem, schedule), problem.machine.places.weights
    return tuple(
        MemoryCurve(
            device.name,
            tuple(at_s for at_s, _ in steps),
            tuple(num_bytes for _, num_bytes in steps),
            needed[d],
            device.memory_bytes,
        )
        for d, (device, steps) in enumerate(zip(problem.machine.devices, held, strict=True))
        if owners[d] == d
    )


def spans_of(problem: Problem, schedule: Schedule, tasks: Tasks, times: Times) -> tuple[Span, ...]:
    """Simulated times as spans in order of their start, each with those that had to end before."""
    names = [d.name for d in problem.machine.devices]
    drafts: list[tuple[float, int, int]] = [(t, 0, s) for s, t in enumerate(times.start_s)]
    drafts += [(t, 1, i) for i, t in enumerate(times.sent_s)]
    drafts.sort(key=lambda d: (d[0], -d[1], d[2]))
    position = {(kind, i): p for p, (_, kind, i) in enumerate(drafts)}
    before = {s: lane[i - 1] for lane in tasks.lanes for i, s in enumerate(lane) if i}
    spans = []
    for start_s, kind, i in drafts:
        if kind == 0:
            after = [(0, before[i])] if i in before else []
            after += [(1, r) for r in tasks.reads[i]]
            after += [(0, s) for s in tasks.local_reads[i] if s != before.get(i)]
            name, device = schedule.segments[i].kernels[0], names[tasks.device[i]]
            span = ("compute", name, device, start_s, times.end_s[i], i, 0)
        else:
            move = tasks.transfers[i]
            after = [(0, move.segment)] if move.segment >= 0 else []
            after += [(1, times.waited_for[i])] if times.waited_for[i] >= 0 else []
            tensor = problem.kernels.tensors[move.tensor]
            device = f"{names[move.src]}->{names[move.dst]}"
            times_s = (start_s, times.arrived_s[i])
            span = ("transfer", tensor.name, device, *times_s, move.segment, tensor.num_bytes)
        spans.append(Span(*span, tuple(position[a] for a in after)))
    return tuple(spans)


def step_time_s(problem: Problem, schedule: Schedule) -> float:
    """Predicted seconds of one step alone."""
    return _run(problem, schedule)[1]


def times_of(problem: Problem, schedule: Schedule, tasks: Tasks) -> Times:
    """When everything starts and ends; a ValueError if segments wait for each other in a cycle."""
    state, step_s, tensor = _run(problem, schedule)
    num_devices = problem.num_devices
    number = np.full(len(problem.kernels.tensors), -1, dtype=np.int64)
    number[tensor] = np.arange(tensor.size)
    at = np.array([number[m.tensor] * num_devices + m.dst for m in tasks.transfers], dtype=np.int64)
    transfer_at = np.full(state.arrived_s.size + 1, -1, dtype=np.int64)
    transfer_at[at] = np.arange(at.size)
    return Times(
        tuple(state.start_s.tolist()),
        tuple(state.end_s.tolist()),
        tuple(state.sent_s[at].tolist()),
        tuple(state.arrived_s[at].tolist()),
        tuple(transfer_at[state.behind[at]].tolist()),
        step_s,
    )


def _run(problem: Problem, schedule: Schedule) -> tuple[RunState, float, Ints]:
    """A run of the schedule's segments, its seconds, and the numbers of the tensors that leave."""
    from placement.simulator.compiled.run import run_whole

    condensed, order = as_kernels(problem, schedule)
    state = ready_to_run(condensed, order)
    return state, run_whole(condensed.flat, state), condensed.tensor


def as_kernels(problem: Problem, schedule: Schedule) -> tuple[Condensed, Ints]:
    """The problem whose kernels are the schedule's segments, and the order to run them in."""
    segment_of, device = kernels_in_order(problem, schedule)[1], segment_devices(problem, schedule)
    condensed = condense(flatten(problem), device[segment_of], segment_of, device.size)
    flat = COST_MODELS[problem.execution].priced(problem, schedule, condensed.flat)
    return condensed._replace(flat=flat), _running_order(flat, condensed.device)


def _running_order(flat: Flat, device: Ints) -> Ints:
    """Segments so that data and lanes flow forward; the schedule's own order wherever it does."""
    num_segments = device.size
    makers = np.repeat(flat.producer, np.diff(flat.consumer_ptr))
    if (makers < flat.consumers).all():
        return np.arange(num_segments)
    from placement.simulator.compiled.segments import merged_order

    own = np.arange(num_segments)
    order: Ints = merged_order(flat, device, own, own, num_segments)
    if order.size < num_segments:
        raise ValueError("The segments of this schedule wait for each other in a cycle.")
    return order
