"""The simulator and the segments against definitions: every timeline passes the slow checker."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine
from placement.core.problem import Problem, own_kernels
from placement.core.schedule import Schedule, Segment
from placement.core.timeline import Span
from placement.core.violations import violations
from placement.schedule.segments import make_schedule
from placement.simulator.critical_path import critical_path, shares, slack_s
from placement.simulator.simulate import memory_over_time, simulate, step_time_s
from tests.checker import timeline_faults
from tests.instances import random_devices, random_problem
from tests.thorough import either

problems = st.builds(
    random_problem,
    st.integers(0, 10_000),
    num_ops=st.integers(1, 20),
    num_devices=st.integers(1, 4),
    execution=st.sampled_from(("op", "segment")),
    link_contention=st.booleans(),
    with_groups=st.booleans(),
    contention=st.sampled_from((0.0, 0.25)),
    with_cards=st.booleans(),
    with_overhead=st.booleans(),
)


@settings(max_examples=either(100, 300), deadline=None)
@given(problems, st.integers(0, 1000))
def test_timelines_and_segments_keep_the_rules(problem, seed):
    placement = problem.placement_of(random_devices(problem, seed))
    schedule = make_schedule(problem, placement)
    assert violations(problem, schedule) == ()
    timeline = simulate(problem, schedule)
    assert timeline_faults(problem, schedule, timeline) == []
    assert timeline.step_s == step_time_s(problem, schedule)
    if problem.execution == "op":
        assert all(len(s.kernels) == 1 for s in schedule.segments)


@settings(max_examples=either(60, 200), deadline=None)
@given(problems, st.integers(0, 1000))
def test_merging_never_lengthens_the_simulated_step(problem, seed):
    placement = problem.placement_of(random_devices(problem, seed))
    cut = make_schedule(problem, placement, merge=False)
    merged = make_schedule(problem, placement)
    assert step_time_s(problem, merged) <= step_time_s(problem, cut) * (1 + 1e-9)
    assert len(merged.segments) <= len(cut.segments)


@settings(max_examples=either(60, 200), deadline=None)
@given(problems, st.integers(0, 1000))
def test_the_critical_path_covers_the_step_without_gap_or_overlap(problem, seed):
    schedule = make_schedule(problem, problem.placement_of(random_devices(problem, seed)))
    timeline = simulate(problem, schedule)
    path = critical_path(timeline)
    assert path[0].start_s == 0.0
    assert path[-1].end_s == timeline.step_s
    assert all(a.end_s == b.start_s for a, b in itertools.pairwise(path))
    assert sum(shares(path).values()) == pytest.approx(timeline.step_s)
    # What the simulator predicts never idles without a reason it can name.
    assert shares(path)["wait"] == 0.0


@settings(max_examples=either(30, 100), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 1000))
def test_a_crossing_cuts_before_the_reader_and_after_the_sender(seed, choice):
    problem = random_problem(seed, num_ops=12, num_devices=3)
    devices = random_devices(problem, choice)
    placement = problem.placement_of(devices)
    schedule = make_schedule(problem, placement, merge=False)
    device_of = {op.name: devices[i] for i, op in enumerate(problem.kernels.ops)}
    position = {k: (i, j) for i, s in enumerate(schedule.segments) for j, k in enumerate(s.kernels)}
    for tensor in problem.kernels.tensors:
        if tensor.producer is None:
            continue
        away = [c for c in tensor.consumers if device_of[c] != device_of[tensor.producer]]
        if away:
            sender = schedule.segments[schedule.segment_of[tensor.producer]]
            assert sender.kernels[-1] == tensor.producer
        for device in {device_of[c] for c in away}:
            readers = [c for c in away if device_of[c] == device]
            assert min(position[c] for c in readers)[1] == 0


def test_a_schedule_that_runs_a_reader_first_is_a_violation():
    problem = random_problem(1, num_ops=4)
    kernels = problem.kernels
    pair = next((t.producer, t.consumers[0]) for t in kernels.tensors if t.producer and t.consumers)
    rest = tuple(op.name for op in kernels.ops if op.name not in pair)
    backwards = Schedule((Segment("d0", (pair[1],)), Segment("d1", (pair[0], *rest))))
    assert any("runs before" in v for v in violations(problem, backwards))


def test_segments_that_wait_for_each_other_cannot_be_simulated():
    """a -> b -> c with a and c in one call on d0: it waits for b, which waits for it."""
    graph = Graph(
        "chain",
        (Op("a", "A"), Op("b", "B"), Op("c", "C")),
        (Tensor("ab", "a", ("b",), 1), Tensor("bc", "b", ("c",), 1)),
    )
    machine = Machine(
        "m", (Device("d0"), Device("d1")), (Link("d0", "d1", 0, 1), Link("d1", "d0", 0, 1))
    )
    zero = np.zeros((2, 2))
    costs = Costs(np.ones((3, 2)), np.zeros(2), zero, zero, "given")
    problem = Problem(graph, machine, costs, graph, own_kernels(graph))
    knot = Schedule((Segment("d0", ("a", "c")), Segment("d1", ("b",))))
    with pytest.raises(ValueError, match="cycle"):
        simulate(problem, knot)
    assert any("runs before" in v for v in violations(problem, knot))


def test_one_device_is_one_segment_of_all_its_work():
    problem = random_problem(5, num_ops=15, num_devices=2)
    schedule = make_schedule(problem, problem.placement_of([0] * problem.num_units))
    assert len(schedule.segments) == 1
    expected = problem.costs.call_s[0] + problem.costs.compute_s[:, 0].sum()
    assert simulate(problem, schedule).step_s == expected


def test_contention_slows_overlapping_host_work_only():
    graph = Graph(
        "two",
        (Op("a", "Conv"), Op("b", "Conv")),
        (Tensor("x", "a", (), 1, is_output=True), Tensor("y", "b", (), 1, is_output=True)),
    )
    devices = (Device("cpu:0"), Device("cpu:1"))
    links = (Link("cpu:0", "cpu:1", 0.0, 1.0), Link("cpu:1", "cpu:0", 0.0, 1.0))
    zero = np.zeros((2, 2))
    costs = Costs(np.array([[10.0, 10.0], [4.0, 4.0]]), np.zeros(2), zero, zero, "given")
    problem = Problem(graph, Machine("m", devices, links), costs, graph, own_kernels(graph))
    schedule = make_schedule(problem, problem.placement_of([0, 1]))
    assert simulate(problem, schedule).step_s == 10.0
    slowed = replace(problem, costs=replace(costs, contention=0.5))
    # b takes 6 s while a runs beside it; by then a has done 4 of its 10, then runs alone.
    assert simulate(slowed, schedule).step_s == 12.0


def test_memory_over_time_by_hand():
    """a (d0) makes 8 bytes for b (d1), which makes 4 for c (d0); weights 5, 6 and 7."""
    graph = Graph(
        "chain",
        (Op("a", "A", param_bytes=5), Op("b", "B", param_bytes=6), Op("c", "C", param_bytes=7)),
        (
            Tensor("in", None, ("a",), 3),
            Tensor("ab", "a", ("b",), 8),
            Tensor("bc", "b", ("c",), 4),
            Tensor("out", "c", (), 2, is_output=True),
        ),
    )
    machine = Machine(
        "m",
        (Device("d0"), Device("d1", kind="gpu")),
        (Link("d0", "d1", 1.0, 1.0), Link("d1", "d0", 1.0, 1.0)),
    )
    ones = np.ones((2, 2)) - np.eye(2)
    costs = Costs(np.ones((3, 2)), np.zeros(2), ones, ones, "given")
    problem = Problem(graph, machine, costs, graph, own_kernels(graph))
    schedule = make_schedule(problem, problem.placement_of([0, 1, 0]))
    timeline = simulate(problem, schedule)
    # d0: weights 12, 8 until b has read it, and 4 that b makes for c. d1: weights 6 + 8 + 4.
    assert dict(timeline.peak_bytes) == {"d0": 24, "d1": 18}
    # Over time 8 are gone when they have arrived: the input 3 and 8 are the most.
    assert [max(curve.held_bytes) for curve in memory_over_time(problem, schedule)] == [23, 18]
    # 1 (a) + 9 (send 8) + 1 (b) + 5 (send 4) + 1 (c); the output is made on the host.
    assert timeline.step_s == 17.0
    assert timeline.transfer_bytes == 12


def test_slack_counts_back_from_the_end():
    spans = (
        Span("compute", "a", "cpu:0", 0, 2, 0),
        Span("compute", "b", "cpu:0", 2, 3, 1, 0, (0,)),
        Span("compute", "c", "cpu:1", 2, 6, 2, 0, (0,)),
    )
    assert slack_s(spans, 6.0) == [0.0, 3.0, 0.0]
