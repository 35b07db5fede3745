"""The memory of a schedule that runs one segment after another, against a slow count."""

import random
from dataclasses import replace

import numpy as np

from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Machine
from placement.core.problem import Problem, own_kernels
from placement.core.schedule import Schedule, Segment
from placement.core.violations import needed_bytes, violations
from placement.simulator.simulate import simulate
from tests.instances import random_devices, random_problem


def scheduled(problem, seed):
    """Kernels in declared order on random devices, neighbours on one device at times joined."""
    rng = random.Random(seed)
    units = random_devices(problem, seed)
    segments: list[Segment] = []
    for k, op in enumerate(problem.kernels.ops):
        device = problem.machine.devices[units[int(problem.unit_of_kernel[k])]].name
        if segments and segments[-1].device == device and rng.random() < 0.5:
            segments[-1] = Segment(device, (*segments[-1].kernels, op.name))
        else:
            segments.append(Segment(device, (op.name,)))
    return Schedule(tuple(segments))


def inner_peak(problem, segment):
    """Count what a segment holds for itself while each of its kernels runs."""
    most, place = 0, {name: i for i, name in enumerate(segment.kernels)}
    for i, name in enumerate(segment.kernels):
        held = int(problem.costs.workspace_bytes[problem.kernels.index[name]])
        for tensor in problem.kernels.tensors:
            touched = {tensor.producer, *tensor.consumers}
            if not tensor.is_output and touched <= set(place):
                last = max(place[name] for name in touched)
                held += tensor.num_bytes if place[tensor.producer] <= i <= last else 0
        most = max(most, held)
    return most


def slow_peaks(problem, schedule):
    """Count what each device holds during each segment."""
    at, peaks = schedule.segment_of, []
    on_host = {d.name: d.on_host for d in problem.machine.devices}
    host = next((name for name, here in on_host.items() if here), None)
    for device in problem.machine.devices:
        own = {k for s in schedule.segments if s.device == device.name for k in s.kernels}
        weights = sum(op.param_bytes for op in problem.kernels.ops if op.name in own)
        most = 0
        for now, segment in enumerate(schedule.segments):
            held = 0
            for tensor in problem.kernels.tensors:
                made = -1 if tensor.producer is None else at[tensor.producer]
                readers = [at[c] for c in tensor.consumers]
                if not tensor.is_output and made >= 0 and set(readers) <= {made}:
                    continue
                here = [at[c] for c in tensor.consumers if c in own]
                returned = tensor.is_output and device.name == host and made >= 0
                if tensor.producer in own:
                    last = max([made, *readers])
                elif returned and not on_host[schedule.segments[made].device]:
                    last = made
                elif here:
                    last = max(here)
                else:
                    continue
                last = len(schedule.segments) if tensor.is_output else last
                held += tensor.num_bytes if max(made, 0) <= now <= last else 0
            held += inner_peak(problem, segment) if segment.device == device.name else 0
            most = max(most, held)
        peaks.append(weights + most)
    return peaks


def test_peaks_agree_with_the_slow_count():
    for seed in range(60):
        problem = random_problem(seed, num_ops=12, num_devices=1 + seed % 4)
        scratch = np.random.default_rng(seed).integers(0, 40, 12)
        problem = replace(problem, costs=replace(problem.costs, workspace_bytes=scratch))
        schedule = scheduled(problem, seed)
        assert needed_bytes(problem, schedule) == slow_peaks(problem, schedule), seed


def test_a_call_lets_go_of_a_value_behind_its_last_reader():
    """A chain in one call holds two of its values at a time, and in five calls as well."""
    ops = tuple(Op(f"op{i}", "op") for i in range(5))
    tensors = tuple(Tensor(f"t{i}", f"op{i}", (f"op{i + 1}",), 100) for i in range(4))
    graph = Graph("chain", ops, tensors)
    machine = Machine("one", (Device("d0", memory_bytes=150),), ())
    costs = Costs(np.ones((5, 1)), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), "given")
    problem = Problem(graph, machine, costs, graph, own_kernels(graph))
    whole = Schedule((Segment("d0", tuple(op.name for op in ops)),))
    apart = Schedule(tuple(Segment("d0", (op.name,)) for op in ops))
    for schedule in (whole, apart):
        assert simulate(problem, schedule).peak_bytes["d0"] == 200
        assert violations(problem, schedule) == ("Device 'd0' needs 200 B but has 150 B.",)


def test_each_broken_rule_is_named():
    problem = random_problem(3, num_ops=6, num_devices=2)
    names = [op.name for op in problem.kernels.ops]
    good = Schedule(tuple(Segment("d0", (name,)) for name in names))
    assert violations(problem, good) == ()
    pinned = replace(problem, pins=(("op2", "d1"),))
    assert violations(pinned, good) == ("Op 'op2' is pinned to 'd1' but runs on 'd0'.",)
    grouped = replace(problem, groups=(("op1", "op4"),))
    split = Schedule(tuple(Segment("d1" if n == "op4" else "d0", (n,)) for n in names))
    assert violations(grouped, split) == ("The group of op 'op1' is split over devices.",)
    compute_s = problem.costs.compute_s.copy()
    compute_s[4, 1] = np.inf
    lacking = replace(problem, costs=replace(problem.costs, compute_s=compute_s))
    assert violations(lacking, split) == ("Device 'd1' does not support 'op4'.",)
    backwards = violations(problem, Schedule(good.segments[::-1]))
    edges = sum(len(t.consumers) for t in problem.kernels.tensors if t.producer is not None)
    assert len([v for v in backwards if "runs before" in v]) == edges > 0
