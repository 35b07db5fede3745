"""What a schedule breaks of its problem's rules, written from the definitions.

Independent of every placer and of the simulator: it knows orders, not times.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.formatting import apart
from placement.core.graph import Ints
from placement.core.problem import Execution, Objective, Problem
from placement.core.schedule import Schedule


def violations(
    problem: Problem, schedule: Schedule, calls: Mapping[str, int] | None = None
) -> tuple[str, ...]:
    """One sentence per broken rule, none for a valid schedule.

    Checked: every kernel once, on a device that supports it; order respects data; pins; units and
    groups whole; memory, which is `needed_bytes`. Where a problem's execution is "call" and its
    objective the latency, a device off the host makes no more calls than `calls` says by name (one,
    where it says nothing).
    """
    found = _coverage(problem, schedule)
    if found:
        return tuple(found)
    runs = _runs(problem, schedule)
    return tuple(
        _support(problem, runs)
        + _order(problem, runs)
        + _pins(problem, runs)
        + _units(problem, runs)
        + _memory(problem, schedule)
        + _calls(problem, schedule, calls or {})
    )


class _Runs(NamedTuple):
    """Of each kernel (K,) its device, its segment and its rank in the whole schedule."""

    device: Ints
    segment: Ints
    rank: Ints


def _runs(problem: Problem, schedule: Schedule) -> _Runs:
    index = problem.kernels.index
    lengths = [len(s.kernels) for s in schedule.segments]
    kernels = np.array([index[k] for s in schedule.segments for k in s.kernels], dtype=np.int64)
    device = np.array([problem.machine.index[s.device] for s in schedule.segments], dtype=np.int64)
    runs = _Runs(*(np.empty(len(kernels), dtype=np.int64) for _ in range(3)))
    runs.segment[kernels] = np.repeat(np.arange(len(lengths)), lengths)
    runs.device[kernels] = np.repeat(device, lengths)
    runs.rank[kernels] = np.arange(len(kernels))
    return runs


def _coverage(problem: Problem, schedule: Schedule) -> list[str]:
    known, seen, found = problem.kernels.index, set(), []
    for segment in schedule.segments:
        if segment.device not in problem.machine.index:
            found.append(f"A segment runs on {segment.device!r}, which the machine does not have.")
        for kernel in segment.kernels:
            if kernel not in known:
                found.append(f"Kernel {kernel!r} is scheduled but not part of the problem.")
            elif kernel in seen:
                found.append(f"Kernel {kernel!r} is scheduled twice.")
            seen.add(kernel)
    found += [f"Kernel {k!r} is not scheduled." for k in known if k not in seen]
    return found


def _support(problem: Problem, runs: _Runs) -> list[str]:
    times = problem.costs.compute_s[np.arange(len(runs.device)), runs.device]
    lacking = sorted(np.flatnonzero(np.isinf(times)).tolist(), key=lambda k: int(runs.rank[k]))
    return [
        f"Device {problem.machine.devices[runs.device[k]].name!r} does not support"
        f" {problem.kernels.ops[k].name!r}."
        for k in lacking
    ]


def _order(problem: Problem, runs: _Runs) -> list[str]:
    arrays, kernels = problem.kernels.arrays, problem.kernels
    tensor = np.repeat(np.arange(len(kernels.tensors)), np.diff(arrays.consumer_ptr))
    maker = arrays.producer[tensor]
    early = (maker >= 0) & (runs.rank[arrays.consumers] < runs.rank[maker])
    return [
        f"{kernels.ops[arrays.consumers[i]].name!r} runs before {kernels.ops[maker[i]].name!r},"
        f" whose tensor {kernels.tensors[tensor[i]].name!r} it reads."
        for i in np.flatnonzero(early)
    ]


def _pins(problem: Problem, runs: _Runs) -> list[str]:
    kernels_of: dict[int, list[int]] = {problem.graph.index[op]: [] for op, _ in problem.pins}
    for k, ops in enumerate(problem.sources if kernels_of else ()):
        for i in ops:
            if i in kernels_of:
                kernels_of[i].append(k)
    return [
        f"Op {op!r} is pinned to {device!r} but runs on"
        f" {problem.machine.devices[runs.device[k]].name!r}."
        for op, device in problem.pins
        for k in kernels_of[problem.graph.index[op]]
        if runs.device[k] != problem.machine.index[device]
    ]


def _units(problem: Problem, runs: _Runs) -> list[str]:
    lowest = np.full(problem.num_units, problem.num_devices)
    highest = np.full(problem.num_units, -1)
    np.minimum.at(lowest, problem.unit_of_kernel, runs.device)
    np.maximum.at(highest, problem.unit_of_kernel, runs.device)
    found = []
    for unit in np.flatnonzero(lowest < highest):
        ops = [problem.graph.ops[i].name for i in problem.ops_of_unit[unit]]
        name = ops[0] if ops else problem.kernels_of_unit[unit][0]
        found.append(f"The group of op {name!r} is split over devices.")
    return found


def _memory(problem: Problem, schedule: Schedule) -> list[str]:
    found = []
    for device, num_bytes in zip(
        problem.machine.devices, needed_bytes(problem, schedule), strict=True
    ):
        if device.memory_bytes is not None and num_bytes > device.memory_bytes:
            needs, has = apart(num_bytes, device.memory_bytes)
            found.append(f"Device {device.name!r} needs {needs} but has {has}.")
    return found


def _calls(problem: Problem, schedule: Schedule, calls: Mapping[str, int]) -> list[str]:
    if not problem.limits_calls:
        return []
    made = {d.name: 0 for d in problem.machine.devices if not d.on_host}
    for segment in schedule.segments:
        if segment.device in made:
            made[segment.device] += 1
    return [
        f"Device {name!r} needs {number} calls, because other devices compute between them, but"
        f" may make {calls.get(name, 1)}."
        for name, number in made.items()
        if number > calls.get(name, 1)
    ]


def needed_bytes(problem: Problem, schedule: Schedule) -> list[int]:
    """Bytes that each device needs: the most that it holds when segments run one after another.

    These are weights and state, what lies between segments, and what the one that runs holds for
    itself (`inner_peak_bytes`). A value that leaves its segment lies there from the start of that
    until the end of the last one that reads it, received copies too. Under the memory model "sum"
    it is the plain sum of sizes. What devices with one memory hold counts there together. Weights
    that stream count while their kernel runs, the state of all, which does not stream, always. For
    throughput each request in flight has state of its own, and as many are in flight as the
    pipeline has stages.
    """
    runs, num_segments = _runs(problem, schedule), len(schedule.segments)
    arrays = problem.kernels.arrays
    places = problem.machine.places
    resident: Floats = np.zeros(problem.num_devices)
    np.add.at(resident, places.weights[runs.device], arrays.param_bytes)
    state_bytes = arrays.state_bytes * _num_in_flight(problem, runs, num_segments)
    np.add.at(resident, places.values[runs.device], state_bytes)
    if problem.memory_model == "sum":
        return _counts(resident)
    lying = _lying_bytes(problem, runs, num_segments)
    held = np.zeros_like(lying)
    np.add.at(held, places.values, lying)
    inner = _inner_peaks(problem, runs, num_segments)
    peaks = held.max(axis=1, initial=0.0)
    for d in range(problem.num_devices):
        own = np.unique(runs.segment[places.values[runs.device] == d])
        peaks[d] = max(peaks[d], (held[d, own] + inner[own]).max(initial=0.0))
    return _counts(resident + peaks)


def inner_peak_bytes(problem: Problem, schedule: Schedule) -> list[int]:
    """Most bytes that each segment (S,) holds at one time for itself alone, in running order.

    These are workspace and the values that do not leave it. Such a value is there from the kernel
    that makes it to its last reader, also one that nobody reads; weights that stream, while their
    kernel runs. So runtimes do it: inside of a call they let go of what has had its last reader.
    """
    return _counts(_inner_peaks(problem, _runs(problem, schedule), len(schedule.segments)))


def _inner_peaks(problem: Problem, runs: _Runs, num_segments: int) -> Floats:
    arrays = problem.kernels.arrays
    if not num_segments:
        return np.zeros(0)
    last = runs.rank[arrays.producer]
    np.maximum.at(last, _readings(problem), runs.rank[arrays.consumers])
    inside = ~_leaves(problem, runs)
    sizes, made = arrays.tensor_bytes[inside], runs.rank[arrays.producer[inside]]
    # All that a segment makes for itself is gone when the next one begins.
    num_kernels = runs.rank.size
    changes = np.bincount(made, sizes, num_kernels + 1)
    changes -= np.bincount(last[inside] + 1, sizes, num_kernels + 1)
    kernels = np.argsort(runs.rank)
    held = np.cumsum(changes)[:-1] + problem.costs.workspace_bytes[kernels]
    streams = problem.machine.places.streams[runs.device[kernels]]
    held = held + np.where(streams, arrays.param_bytes[kernels], 0)
    starts = np.searchsorted(runs.segment[kernels], np.arange(num_segments))
    return np.asarray(np.maximum.reduceat(held, starts), dtype=np.float64)


def _readings(problem: Problem) -> Ints:
    """The tensor (index) of each pair of a tensor and one of its readers."""
    arrays = problem.kernels.arrays
    return np.repeat(np.arange(arrays.producer.size), np.diff(arrays.consumer_ptr))


def _leaves(problem: Problem, runs: _Runs) -> NDArray[np.bool_]:
    """Which tensors come from outside, are handed back, or are read in another segment."""
    arrays, tensor = problem.kernels.arrays, _readings(problem)
    leaves = arrays.is_output | (arrays.producer < 0)
    elsewhere = runs.segment[arrays.consumers] != runs.segment[arrays.producer[tensor]]
    leaves[tensor[elsewhere]] = True
    return leaves


def _num_in_flight(problem: Problem, runs: _Runs, num_segments: int) -> int:
    """Requests that a full pipeline works on: one for every stage, for latency one.

    A segment's stage is by how many requests it is behind the first: by one more than whatever
    makes on another device what it reads.
    """
    arrays = problem.kernels.arrays
    is_pipeline = problem.objective is Objective.THROUGHPUT
    if not is_pipeline or problem.execution is Execution.CALL or not arrays.state_bytes.any():
        return 1
    engine = problem.machine.places.engine[runs.device]
    tensor = np.repeat(np.arange(len(arrays.producer)), np.diff(arrays.consumer_ptr))
    made = arrays.producer[tensor] >= 0
    maker, reader = arrays.producer[tensor[made]], arrays.consumers[made]
    hands_over = engine[maker] != engine[reader]
    pairs = np.stack([runs.segment[reader], runs.segment[maker], hands_over], axis=1)
    stage = [0] * num_segments
    for s, before, one_more in np.unique(pairs, axis=0).tolist():
        stage[s] = max(stage[s], stage[before] + one_more)
    return max(stage, default=0) + 1


def _host(problem: Problem) -> tuple[int, NDArray[np.bool_]]:
    """The first device that computes in host memory, or -1, and which devices do (D,)."""
    on_host = np.array([d.on_host for d in problem.machine.devices])
    return (int(on_host.argmax()) if on_host.any() else -1), on_host


def _lying_bytes(problem: Problem, runs: _Runs, num_segments: int) -> Floats:
    """Bytes of the tensors that leave segments on each device during each segment (D, S).

    A device that computes on another one reads and writes the same copies.
    """
    arrays, num_devices = problem.kernels.arrays, problem.num_devices
    runs = runs._replace(device=problem.machine.places.engine[runs.device])
    first, leaves = np.zeros(len(arrays.producer), dtype=np.int64), _leaves(problem, runs)
    made = np.flatnonzero(leaves & (arrays.producer >= 0))
    first[made] = runs.segment[arrays.producer[made]]
    tensor = _readings(problem)
    readers, tensor = arrays.consumers[leaves[tensor]], tensor[leaves[tensor]]
    read = runs.segment[readers]
    # The sender keeps a value until the last reader elsewhere has it.
    last = first.copy()
    np.maximum.at(last, tensor, read)
    # An output that is made elsewhere is held by the host too, to the end.
    host, on_host = _host(problem)
    maker = runs.device[arrays.producer[made]]
    returned = made[arrays.is_output[made] & ~on_host[maker]] if host >= 0 else made[:0]
    holder = np.concatenate([tensor, made, returned]) * num_devices
    host_of = np.full(len(returned), host)
    holder += np.concatenate([runs.device[readers], maker, host_of])
    holders, which = np.unique(holder, return_inverse=True)
    until = np.zeros(len(holders), dtype=np.int64)
    np.maximum.at(until, which, np.concatenate([read, last[made], last[returned]]))
    held, device = holders // num_devices, holders % num_devices
    changes = np.zeros((num_devices, num_segments + 1))
    ends = np.where(arrays.is_output[held], num_segments, until + 1)
    np.add.at(changes, (device, first[held]), arrays.tensor_bytes[held])
    np.subtract.at(changes, (device, ends), arrays.tensor_bytes[held])
    return changes[:, :num_segments].cumsum(axis=1)


def _counts(num_bytes: Floats) -> list[Any]:
    """Whole numbers of bytes; fractions, which problem files may state, are kept."""
    return [int(n) if n == int(n) else n for n in num_bytes.tolist()]
