"""Memory over time: how many bytes each device holds at most during a step."""

from collections.abc import Iterator

import numpy as np

from placement.core.costs import Floats
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator.lowering import (
    Tasks,
    Times,
    kernels_in_order,
    segment_devices,
    stages_of,
    tensors_that_leave,
)

# From when to when a device (index) holds so many bytes.
Hold = tuple[int, float, float, int]


def peak_bytes(problem: Problem, schedule: Schedule, tasks: Tasks, times: Times) -> list[int]:
    """Largest number of bytes on each device: weights, state, workspace and live tensors.

    For throughput there is state for each request in flight, of which each stage works on one.
    A value that leaves its segment is held from the segment's start until its last reader on the
    device and its last transfer have ended; a received copy from the start of its transfer; a model
    input from time 0; a model output to the end. Values inside a segment are held by liveness in
    running order. Under the memory model "sum" it is the sum of sizes.
    """
    held = held_over_time(problem, schedule, tasks, times)
    return [max(num_bytes for _, num_bytes in steps) for steps in held]


def held_over_time(
    problem: Problem, schedule: Schedule, tasks: Tasks, times: Times
) -> list[list[tuple[float, int]]]:
    """The same by time: on each device the bytes held from each moment on, first 0, last the end.

    What ends at a moment is given back before what begins there is taken.
    """
    places = problem.machine.places
    weights = [0] * problem.num_devices
    arrays = problem.kernels.arrays
    num_in_flight = 1 + max(stages_of(tasks), default=0) if problem.is_pipelined else 1
    for lies_in, sizes in (
        (places.weights, arrays.param_bytes),
        (places.values, num_in_flight * arrays.state_bytes),
    ):
        for d, num_bytes in zip(tasks.device, by_segment(problem, schedule, sizes), strict=True):
            weights[lies_in[d]] += num_bytes
    changes: list[dict[float, int]] = [{0.0: 0} for _ in weights]
    if problem.memory_model != "sum":
        for d, start_s, end_s, num_bytes in _holds(problem, schedule, tasks, times):
            held = changes[places.values[d]]
            for at_s, change in ((start_s, num_bytes), (max(start_s, end_s), -num_bytes)):
                held[at_s] = held.get(at_s, 0) + change
    return [_added_up(w, c, times.step_s) for w, c in zip(weights, changes, strict=True)]


def _added_up(first: int, changes: dict[float, int], end_s: float) -> list[tuple[float, int]]:
    held = first
    steps: list[tuple[float, int]] = []
    for at_s in sorted(changes):
        held += changes[at_s]
        if not steps or changes[at_s]:
            steps.append((at_s, held))
    if steps[-1][0] < end_s:
        steps.append((end_s, held))
    return steps


def _holds(problem: Problem, schedule: Schedule, tasks: Tasks, times: Times) -> Iterator[Hold]:
    """Everything but weights that a device holds for a while, those that compute on it included."""
    engine = problem.machine.places.engine
    inner = inner_peak_bytes(problem, schedule)
    for s, d in enumerate(tasks.device):
        yield d, times.start_s[s], times.end_s[s], inner[s]
    moves_of: dict[int, list[int]] = {}
    for i, move in enumerate(tasks.transfers):
        moves_of.setdefault(move.tensor, []).append(i)
    segment_of = schedule.segment_of
    for t in tensors_that_leave(problem, schedule):
        tensor = problem.kernels.tensors[t]
        readers = {segment_of[c] for c in tensor.consumers}
        last_read: dict[int, float] = {}
        for s in readers:
            d = engine[tasks.device[s]]
            last_read[d] = max(last_read.get(d, 0.0), times.end_s[s])
        moves = moves_of.get(t, [])
        maker = -1 if tensor.producer is None else engine[tasks.device[segment_of[tensor.producer]]]
        received: dict[int, list[int]] = {}
        for i in moves:
            dst = engine[tasks.transfers[i].dst]
            if dst != maker:
                received.setdefault(dst, []).append(i)
        for dst, copies in received.items():
            arrived_s = max(times.arrived_s[i] for i in copies)
            until = times.step_s if tensor.is_output else last_read.get(dst, arrived_s)
            yield dst, min(times.sent_s[i] for i in copies), until, tensor.num_bytes
        if tensor.producer is None:
            for d, end_s in last_read.items():
                if d not in received:
                    yield d, 0.0, end_s, tensor.num_bytes
            continue
        s, d = segment_of[tensor.producer], maker
        until = max(
            [times.end_s[s], last_read.get(d, 0.0), *(times.arrived_s[i] for i in moves)]
            + ([times.step_s] if tensor.is_output else [])
        )
        yield d, times.start_s[s], until, tensor.num_bytes


def by_segment(problem: Problem, schedule: Schedule, sizes: Floats) -> list[int]:
    """Bytes of each segment's kernels, of these sizes (K,)."""
    kernels, segment_of = kernels_in_order(problem, schedule)
    found = np.bincount(segment_of[kernels], sizes[kernels], len(schedule.segments))
    return [int(num_bytes) for num_bytes in found]


def inner_peak_bytes(problem: Problem, schedule: Schedule) -> list[int]:
    """Most bytes at one time of each segment's workspace and of the values that stay inside it.

    A value is there from the kernel that makes it to its last reader, also one that nobody reads;
    weights that stream, while their kernel runs.
    """
    if not schedule.segments:
        return []
    arrays = problem.kernels.arrays
    kernels, segment_of = kernels_in_order(problem, schedule)
    place = np.empty_like(segment_of)
    place[kernels] = np.arange(kernels.size)
    last = place[arrays.producer]
    read = np.repeat(np.arange(last.size), np.diff(arrays.consumer_ptr))
    np.maximum.at(last, read, place[arrays.consumers])
    inside = np.ones(last.size, dtype=np.bool_)
    inside[tensors_that_leave(problem, schedule)] = False
    sizes, made = arrays.tensor_bytes[inside], place[arrays.producer[inside]]
    # All that a segment makes for itself is gone when the next one begins.
    changes = np.bincount(made, sizes, kernels.size + 1)
    changes -= np.bincount(last[inside] + 1, sizes, kernels.size + 1)
    held = np.cumsum(changes)[:-1] + problem.costs.workspace_bytes[kernels]
    device = segment_devices(problem, schedule)[segment_of[kernels]]
    held = held + np.where(problem.machine.places.streams[device], arrays.param_bytes[kernels], 0)
    starts = np.searchsorted(segment_of[kernels], np.arange(len(schedule.segments)))
    return [int(num_bytes) for num_bytes in np.maximum.reduceat(held, starts)]
