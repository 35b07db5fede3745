"""Memory over time: how many bytes each device holds at most during a step."""

from placement._tasks import Tasks, Times
from placement.core.problem import Problem
from placement.core.schedule import Schedule, Segment


def peak_bytes(problem: Problem, schedule: Schedule, tasks: Tasks, times: Times) -> list[int]:
    """Largest number of bytes on each device: weights, workspace and live tensors.

    A value that leaves its segment is held from the segment's start until its last reader on the
    device and its last transfer have ended; a received copy from the start of its transfer; a model
    input from time 0; a model output to the end. Values inside a segment are held by liveness in
    running order. Under the memory model "sum" it is the sum of sizes.
    """
    weights = [0] * problem.num_devices
    for s, d in enumerate(tasks.device):
        weights[d] += segment_param_bytes(problem, schedule.segments[s])
    if problem.memory_model == "sum":
        return weights
    changes: list[list[tuple[float, int, int]]] = [[] for _ in weights]

    def hold(device: int, start_s: float, end_s: float, num_bytes: int) -> None:
        if num_bytes:
            changes[device].append((start_s, 1, num_bytes))
            changes[device].append((max(start_s, end_s), 0, -num_bytes))

    for s, d in enumerate(tasks.device):
        inner = inner_peak_bytes(problem, schedule.segments[s])
        hold(d, times.start_s[s], times.end_s[s], inner)
    moves_of: dict[int, list[int]] = {}
    for i, move in enumerate(tasks.transfers):
        moves_of.setdefault(move.tensor, []).append(i)
    segment_of = schedule.segment_of
    for t, tensor in enumerate(problem.kernels.tensors):
        readers = {segment_of[c] for c in tensor.consumers}
        last_read: dict[int, float] = {}
        for s in readers:
            d = tasks.device[s]
            last_read[d] = max(last_read.get(d, 0.0), times.end_s[s])
        moves = moves_of.get(t, [])
        received = set()
        for i in moves:
            dst = tasks.transfers[i].dst
            received.add(dst)
            until = times.step_s if tensor.is_output else last_read.get(dst, times.arrived_s[i])
            hold(dst, times.sent_s[i], until, tensor.num_bytes)
        if tensor.producer is None:
            for d, end_s in last_read.items():
                if d not in received:
                    hold(d, 0.0, end_s, tensor.num_bytes)
            continue
        s = segment_of[tensor.producer]
        if readers <= {s} and not moves and not tensor.is_output:
            continue
        d = tasks.device[s]
        until = max(
            [times.end_s[s], last_read.get(d, 0.0), *(times.arrived_s[i] for i in moves)]
            + ([times.step_s] if tensor.is_output else [])
        )
        hold(d, times.start_s[s], until, tensor.num_bytes)
    return [w + _highest(c) for w, c in zip(weights, changes, strict=True)]


def segment_param_bytes(problem: Problem, segment: Segment) -> int:
    """Weights of a segment's kernels."""
    index = problem.kernels.index
    return sum(problem.kernels.ops[index[k]].param_bytes for k in segment.kernels)


def inner_peak_bytes(problem: Problem, segment: Segment) -> int:
    """Most bytes that values inside a segment and its kernels' workspace take at one time."""
    arrays, index = problem.kernels.arrays, problem.kernels.index
    position = {index[k]: i for i, k in enumerate(segment.kernels)}
    frees = [0] * (len(position) + 1)
    allocs = [0] * (len(position) + 1)
    for k, i in position.items():
        for t in arrays.out_tensors[arrays.out_ptr[k] : arrays.out_ptr[k + 1]]:
            readers = arrays.consumers[arrays.consumer_ptr[t] : arrays.consumer_ptr[t + 1]]
            if arrays.is_output[t] or any(int(r) not in position for r in readers):
                continue
            last = max((position[int(r)] for r in readers), default=i)
            allocs[i] += int(arrays.tensor_bytes[t])
            frees[last + 1] += int(arrays.tensor_bytes[t])
    held = peak = 0
    for i, k in enumerate(position):
        held += allocs[i] - frees[i]
        peak = max(peak, held + int(problem.costs.workspace_bytes[k]))
    return peak


def _highest(changes: list[tuple[float, int, int]]) -> int:
    held = peak = 0
    for _, _, change in sorted(changes):
        held += change
        peak = max(peak, held)
    return peak
