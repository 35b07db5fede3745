"""What a schedule breaks of its problem's rules, written from the definitions.

Independent of every placer and of the simulator: it knows orders, not times.
"""

from placement.core.problem import Problem
from placement.core.schedule import Schedule


def violations(problem: Problem, schedule: Schedule) -> tuple[str, ...]:
    """One sentence per broken rule, none for a valid schedule.

    Checked: every kernel once, on a device that supports it; order respects data; pins; units and
    groups whole; memory. Memory on a device is weights plus the most that is live at one time when
    the segments run one after another in the schedule's order: a value from its producer's segment
    until its last reader's (received copies too), everything a segment writes, and workspace; under
    the memory model "sum" the plain sum of sizes.
    """
    found = _coverage(problem, schedule)
    if found:
        return tuple(found)
    return tuple(
        _support(problem, schedule)
        + _order(problem, schedule)
        + _pins(problem, schedule)
        + _units(problem, schedule)
        + _memory(problem, schedule)
    )


def _device_of(problem: Problem, schedule: Schedule) -> dict[str, int]:
    index = problem.machine.index
    return {k: index[s.device] for s in schedule.segments for k in s.kernels}


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


def _support(problem: Problem, schedule: Schedule) -> list[str]:
    names = [d.name for d in problem.machine.devices]
    return [
        f"Device {names[d]!r} does not support {k!r}."
        for k, d in _device_of(problem, schedule).items()
        if problem.costs.compute_s[problem.kernels.index[k], d] == float("inf")
    ]


def _order(problem: Problem, schedule: Schedule) -> list[str]:
    position = {k: (i, j) for i, s in enumerate(schedule.segments) for j, k in enumerate(s.kernels)}
    return [
        f"{consumer!r} runs before {tensor.producer!r}, whose tensor {tensor.name!r} it reads."
        for tensor in problem.kernels.tensors
        if tensor.producer is not None
        for consumer in tensor.consumers
        if position[consumer] < position[tensor.producer]
    ]


def _pins(problem: Problem, schedule: Schedule) -> list[str]:
    device_of, found = _device_of(problem, schedule), []
    for op, device in problem.pins:
        i = problem.graph.index[op]
        for k, ops in enumerate(problem.sources):
            actual = device_of[problem.kernels.ops[k].name]
            if i in ops and actual != problem.machine.index[device]:
                name = problem.machine.devices[actual].name
                found.append(f"Op {op!r} is pinned to {device!r} but runs on {name!r}.")
    return found


def _units(problem: Problem, schedule: Schedule) -> list[str]:
    device_of, found = _device_of(problem, schedule), []
    for unit, kernels in enumerate(problem.kernels_of_unit):
        if len({device_of[problem.kernels.ops[k].name] for k in kernels}) > 1:
            ops = [problem.graph.ops[i].name for i in problem.ops_of_unit[unit]]
            found.append(
                f"The group of op {ops[0] if ops else kernels[0]!r} is split over devices."
            )
    return found


def _memory(problem: Problem, schedule: Schedule) -> list[str]:
    found = []
    for device, num_bytes in zip(
        problem.machine.devices, sequential_peak_bytes(problem, schedule), strict=True
    ):
        if device.memory_bytes is not None and num_bytes > device.memory_bytes:
            found.append(
                f"Device {device.name!r} needs {num_bytes} bytes but has {device.memory_bytes}."
            )
    return found


def sequential_peak_bytes(problem: Problem, schedule: Schedule) -> list[int]:
    """Most bytes held by each device when segments run one after another; see `violations`."""
    device_of = _device_of(problem, schedule)
    weights = [0] * problem.num_devices
    for op in problem.kernels.ops:
        weights[device_of[op.name]] += op.param_bytes
    if problem.memory_model == "sum":
        return weights
    segment_of = schedule.segment_of
    num_segments = len(schedule.segments)
    changes = [[0] * (num_segments + 1) for _ in weights]
    for tensor in problem.kernels.tensors:
        first = 0 if tensor.producer is None else segment_of[tensor.producer]
        last: dict[int, int] = {}
        if tensor.producer is not None:
            last[device_of[tensor.producer]] = first
        for consumer in tensor.consumers:
            d = device_of[consumer]
            last[d] = max(last.get(d, 0), segment_of[consumer])
        if tensor.producer is not None:
            # The sender keeps a value until the last reader elsewhere has it.
            last[device_of[tensor.producer]] = max(last.values())
        for d, until in last.items():
            changes[d][first] += tensor.num_bytes
            changes[d][num_segments if tensor.is_output else until + 1] -= tensor.num_bytes
    peaks = []
    for d, row in enumerate(changes):
        held = peak = 0
        for i, segment in enumerate(schedule.segments):
            held += row[i]
            scratch = 0
            if problem.machine.index[segment.device] == d:
                index = problem.kernels.index
                scratch = max(int(problem.costs.workspace_bytes[index[k]]) for k in segment.kernels)
            peak = max(peak, held + scratch)
        peaks.append(weights[d] + peak)
    return peaks
