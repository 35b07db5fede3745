"""Memory over time against its definition: who is alive at a moment, added up one by one."""

import itertools
from dataclasses import replace

import pytest

from placement import machine, make_problem
from placement.core.graph import Graph, Tensor
from placement.core.model import Model
from placement.core.schedule import Schedule, Segment
from placement.core.violations import needed_bytes
from placement.schedule.segments import make_schedule
from placement.simulator.executions import lower
from placement.simulator.simulate import memory_over_time, simulate, times_of
from tests.instances import random_devices, random_problem, with_state
from tests.workloads import random_workload_problem


def inside(problem, segment):
    """Most bytes of workspace and of values that only this segment touches, kernel by kernel."""
    kernels, index = problem.kernels, problem.kernels.index
    place = {name: i for i, name in enumerate(segment.kernels)}
    spans = []
    for tensor in kernels.tensors:
        touched = (tensor.producer, *tensor.consumers)
        if not tensor.is_output and place.keys() >= set(touched):
            last = max(place[name] for name in touched)
            spans.append((place[tensor.producer], last, tensor.num_bytes))
    most = 0
    for i, name in enumerate(segment.kernels):
        there = sum(num_bytes for first, last, num_bytes in spans if first <= i <= last)
        most = max(most, there + int(problem.costs.workspace_bytes[index[name]]))
    return most


def alive(problem, schedule, device, at_s):
    """Bytes on a device at a moment at which nothing begins or ends."""
    tasks = lower(problem, schedule)
    times = times_of(problem, schedule, tasks)
    total = 0
    for s, segment in enumerate(schedule.segments):
        if tasks.device[s] == device:
            kernels = [problem.kernels.ops[problem.kernels.index[k]] for k in segment.kernels]
            total += sum(op.param_bytes for op in kernels)
            if times.start_s[s] < at_s < times.end_s[s]:
                total += inside(problem, segment)
    for t, tensor in enumerate(problem.kernels.tensors):
        made_by = None if tensor.producer is None else schedule.segment_of[tensor.producer]
        reading = {schedule.segment_of[c] for c in tensor.consumers}
        reads_s = [times.end_s[s] for s in reading if tasks.device[s] == device]
        moves = [i for i, move in enumerate(tasks.transfers) if move.tensor == t]
        coming = [i for i in moves if tasks.transfers[i].dst == device]
        from_s, until_s = None, [times.step_s] if tensor.is_output else []
        if coming:
            from_s = times.sent_s[coming[0]]
            until_s += reads_s or [times.arrived_s[coming[0]]]
        elif made_by is None and reads_s:
            from_s, until_s = 0.0, reads_s
        elif made_by is not None and tasks.device[made_by] == device:
            leaves = bool(reading - {made_by} or moves or tensor.is_output)
            from_s = times.start_s[made_by] if leaves else None
            until_s += [times.end_s[made_by], *reads_s, *(times.arrived_s[i] for i in moves)]
        if from_s is not None and from_s < at_s < max(until_s):
            total += tensor.num_bytes
    return total


def test_a_model_that_hands_its_input_back_and_does_nothing_holds_nothing():
    graph = Graph("none", (), (Tensor("x", None, (), 8, is_output=True),))
    problem = make_problem(Model(graph), machine("two-lanes"))
    schedule = make_schedule(problem, problem.placement_of([]))
    assert simulate(problem, schedule).peak_bytes == {"cpu:0": 0, "cpu:1": 0}


@pytest.mark.parametrize("seed", range(25))
def test_the_curve_is_what_is_alive_at_every_moment(seed):
    problem = random_problem(seed)
    schedule = make_schedule(problem, problem.placement_of(random_devices(problem, seed)))
    step_s = simulate(problem, schedule).step_s
    curves = memory_over_time(problem, schedule)
    moments = sorted({at_s for curve in curves for at_s in curve.at_s})
    assert moments[0] == 0.0 and moments[-1] == step_s
    for device, curve in enumerate(curves):
        for before, after in itertools.pairwise(moments):
            held = [b for at_s, b in zip(curve.at_s, curve.held_bytes, strict=True)
                    if at_s <= before][-1]  # fmt: skip
            assert held == alive(problem, schedule, device, (before + after) / 2), f"seed {seed}"


@pytest.mark.parametrize("problem", [random_problem(3), random_workload_problem(3)])
def test_beside_it_stands_what_the_device_needs_and_its_limit(problem):
    schedule = make_schedule(problem, problem.placement_of(random_devices(problem, 1)))
    peaks = simulate(problem, schedule).peak_bytes
    for device, curve in zip(
        problem.machine.devices, memory_over_time(problem, schedule), strict=True
    ):
        assert curve.needed_bytes == peaks[device.name]
        assert curve.limit_bytes == device.memory_bytes
        assert curve.at_s[0] == 0.0 and list(curve.at_s) == sorted(set(curve.at_s))


@pytest.mark.parametrize("seed", range(20))
def test_where_one_device_computes_it_rises_to_what_that_needs(seed):
    problem = random_problem(seed, num_devices=1)
    names = [op.name for op in problem.kernels.ops]
    length = 1 + seed % 4
    calls = [tuple(names[i : i + length]) for i in range(0, len(names), length)]
    schedule = Schedule(tuple(Segment("d0", call) for call in calls))
    (curve,) = memory_over_time(problem, schedule)
    assert max(curve.held_bytes) == curve.needed_bytes > 0


def rounds_of_a_request(problem, schedule):
    """Rounds of a pipeline that a request takes, which is how many of them are in it at once.

    In each round every device runs its segments for the requests that have got so far: all that
    reads what other devices made in rounds before.
    """
    at = {kernel: s for s, segment in enumerate(schedule.segments) for kernel in segment.kernels}
    reads = [set() for _ in schedule.segments]
    for tensor in problem.kernels.tensors:
        for reader in tensor.consumers if tensor.producer is not None else ():
            reads[at[reader]].add(at[tensor.producer])
    ran, num_rounds = set(), 0
    while len(ran) < len(schedule.segments):
        before, num_rounds = set(ran), num_rounds + 1
        for s, segment in enumerate(schedule.segments):
            here = {p for p in ran if schedule.segments[p].device == segment.device}
            if s not in ran and reads[s] - {s} <= before | here:
                ran.add(s)
    return num_rounds


@pytest.mark.parametrize("seed", range(30))
def test_every_request_in_flight_has_state_of_its_own(seed):
    problem = with_state(random_problem(seed, num_devices=2 + seed % 3), seed)
    devices = random_devices(problem, seed)
    for objective in ("latency", "throughput"):
        goal = replace(problem, objective=objective)
        stateless = with_no_state(goal)
        schedule = make_schedule(goal, goal.placement_of(devices))
        number = rounds_of_a_request(goal, schedule) if objective == "throughput" else 1
        own = {
            d.name: sum(
                goal.kernels.ops[goal.kernels.index[k]].state_bytes
                for s in schedule.segments
                if s.device == d.name
                for k in s.kernels
            )
            for d in goal.machine.devices
        }
        more = [number * own[d.name] for d in goal.machine.devices]
        for held, empty in (
            (needed_bytes(goal, schedule), needed_bytes(stateless, schedule)),
            (
                simulate(goal, schedule).peak_bytes.values(),
                simulate(stateless, schedule).peak_bytes.values(),
            ),
        ):
            assert [a - b for a, b in zip(held, empty, strict=True)] == more, objective


def with_no_state(problem):
    ops = tuple(replace(op, state_bytes=0) for op in problem.kernels.ops)
    graph = replace(problem.kernels, ops=ops)
    return replace(problem, graph=graph, kernels=graph)
