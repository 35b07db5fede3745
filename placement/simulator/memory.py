"""Memory over time: what each device holds from moment to moment of a predicted step.

What a device needs, which is what its limit is held against, is counted by `core.violations` from
the order of segments alone. This is the same account by predicted times, where devices compute side
by side and tensors take their time on links.
"""

from collections.abc import Iterator

import numpy as np

from placement.core.costs import Floats
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.violations import inner_peak_bytes
from placement.simulator.lowering import (
    Tasks,
    Times,
    kernels_in_order,
    stages_of,
    tensors_that_leave,
)

# From when to when a device (index) holds so many bytes.
Hold = tuple[int, float, float, int]


def held_over_time(
    problem: Problem, schedule: Schedule, tasks: Tasks, times: Times
) -> list[list[tuple[float, int]]]:
    """On each device the bytes held from each moment on, first 0, last the end of the step.

    These are weights, state, workspace and live tensors. For throughput there is state for each
    request in flight, of which each stage works on one. A value that leaves its segment is held
    from the segment's start until its last reader on the device and its last transfer have ended; a
    received copy from the start of its transfer; a model input from time 0; a model output to the
    end. What a segment holds for itself is its `inner_peak_bytes` all the while it runs. Under the
    memory model "sum" it is the sum of sizes. What ends at a moment is given back before what
    begins there is taken.
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
