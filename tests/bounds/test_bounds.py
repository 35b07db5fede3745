"""Lower bounds against brute force, linear programs and simulations."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import simulate
from placement.bounds.ceft import ceft
from placement.bounds.lower_bound import (
    ceft_through_units_s,
    largest_unit_s,
    longest_path_s,
    lower_bound,
    shared_work_s,
)
from placement.bounds.memory_bound import beyond_memory_s
from placement.bounds.series_bound import _blocks, _comparable, series_bound_s
from placement.core.graph import Graph, Op, Tensor
from placement.core.violations import violations
from placement.costs.offload import with_offload
from placement.loaders.workload import problem_from_workload
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import step_time_s
from placement.simulator.throughput import seconds_per_sample
from tests.instances import random_devices, random_problem
from tests.thorough import either
from tests.workloads import node, workload

problems = st.builds(
    random_problem,
    st.integers(0, 10**6),
    num_ops=st.integers(1, 14),
    num_devices=st.integers(2, 4),
    execution=st.sampled_from(("op", "segment")),
    link_contention=st.booleans(),
    contention=st.sampled_from((0.0, 0.2)),
    with_groups=st.booleans(),
    with_gaps=st.booleans(),
    with_cards=st.booleans(),
    with_overhead=st.booleans(),
)


@settings(max_examples=either(50, 150), deadline=None)
@given(problems, st.integers(0, 1000), st.sampled_from(("latency", "throughput")))
def test_no_placement_is_better(problem, seed, objective):
    problem = replace(problem, objective=objective)
    placement = problem.placement_of(random_devices(problem, seed))
    schedule = make_schedule(problem, placement)
    value = step_time_s if objective == "latency" else seconds_per_sample
    assert lower_bound(problem) <= value(problem, schedule) * (1 + 1e-12)


@settings(max_examples=either(15, 40), deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 90), st.booleans(), st.booleans())
def test_no_placement_within_memory_is_better(seed, memory_bytes, streams, has_groups):
    """All placements of tiny problems whose accelerator holds some weights."""
    problem = random_problem(seed, num_ops=4, num_devices=2, with_groups=has_groups)
    gpu = replace(problem.machine.devices[1], memory_bytes=memory_bytes)
    machine = replace(problem.machine, devices=(problem.machine.devices[0], gpu))
    problem = replace(problem, machine=machine)
    problem = with_offload(problem) if streams else problem
    bound_s = lower_bound(problem)
    assert beyond_memory_s(problem) <= bound_s * (1 + 1e-9)
    for devices in itertools.product(range(problem.num_devices), repeat=problem.num_units):
        schedule = make_schedule(problem, problem.placement_of(devices))
        if not violations(problem, schedule):
            assert bound_s <= step_time_s(problem, schedule) * (1 + 1e-12)


def layered(seed):
    """Two or three layers in series, each of one to three branches, on accelerators that hold part
    of the weights, which may stream instead."""
    rng = np.random.default_rng(seed)
    number = 4 if seed % 2 else 5
    problem = random_problem(seed, num_ops=number, num_devices=2 + seed % 2)
    ends = np.sort(rng.choice(np.arange(1, number), rng.integers(1, 3), replace=False)).tolist()
    parts = [range(a, b) for a, b in itertools.pairwise((0, *ends, number))]
    tensors = [Tensor("in", None, tuple(f"op{i}" for i in parts[0]), 3)]
    for part, behind in itertools.zip_longest(parts, parts[1:]):
        readers = tuple(f"op{i}" for i in behind or ())
        tensors += [Tensor(f"t{i}", f"op{i}", readers, 2, is_output=not readers) for i in part]
    graph = replace(problem.graph, tensors=tuple(tensors))
    total = sum(op.param_bytes for op in graph.ops)
    limit = 12 + int(rng.uniform(0.2, 0.8) * total / (problem.num_devices - 1))
    devices = [d if d.on_host else replace(d, memory_bytes=limit) for d in problem.machine.devices]
    machine = replace(problem.machine, devices=tuple(devices))
    return with_offload(replace(problem, graph=graph, kernels=graph, machine=machine)), parts


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(6, 300)))
def test_no_placement_of_layers_that_stream_is_better(seed):
    problem, _ = layered(seed)
    bound_s = series_bound_s(problem)
    choices = [np.flatnonzero(row).tolist() for row in problem.allowed]
    for devices in itertools.product(*choices):
        schedule = make_schedule(problem, problem.placement_of(devices))
        value_s = step_time_s(problem, schedule)
        if value_s * (1 + 1e-12) < bound_s:
            assert violations(problem, schedule), devices


def test_branches_of_layers_that_do_not_fit_stream_one_after_another():
    """Two layers of three equal branches, of which half fit; the longest path is one of each."""
    small = random_problem(1, num_ops=6, num_devices=2)
    ops = tuple(Op(f"op{i}", "Branch", param_bytes=100) for i in range(6))
    behind = tuple(f"op{i}" for i in (3, 4, 5))
    tensors = [Tensor(f"t{i}", f"op{i}", behind if i < 3 else (), 1) for i in range(6)]
    graph = Graph("layers", ops, tuple(tensors))
    gpu = replace(small.machine.devices[1], memory_bytes=300)
    machine = replace(small.machine, devices=(small.machine.devices[0], gpu))
    scratch = np.zeros(6, dtype=np.int64)
    times_s = np.tile([1e6, 1.0], (6, 1))
    costs = replace(small.costs, compute_s=times_s, workspace_bytes=scratch)
    problem = with_offload(replace(small, graph=graph, kernels=graph, machine=machine, costs=costs))
    latency_s, s_per_byte = problem.costs.latency_s[0, 1], problem.costs.s_per_byte[0, 1]
    streamed_s = latency_s + 100 * s_per_byte
    assert series_bound_s(problem) == pytest.approx(6 * 1 + 3 * streamed_s, rel=0.02)
    assert series_bound_s(problem) <= 6 * 1 + 3 * streamed_s
    assert beyond_memory_s(problem) <= 2 * (1 + streamed_s)


@pytest.mark.parametrize("seed", range(20))
def test_layers_in_series_are_found(seed):
    problem, parts = layered(seed)
    before, num_beside = _comparable(problem)
    assert num_beside.tolist() == [len(part) - 1 for part in parts for _ in part]
    expected = [number for number, part in enumerate(parts) for _ in part]
    assert _blocks(list(range(problem.num_units)), before).tolist() == expected


def test_branches_of_layers_take_turns_on_one_device():
    """Pinned to one accelerator, all kernels add up, in whatever branches they are."""
    problem, _ = layered(1)
    slow = np.tile([1000.0, *[2.0] * (problem.num_devices - 1)], (problem.num_units, 1))
    gpu = next(d.name for d in problem.machine.devices if not d.on_host)
    pins = tuple((op.name, gpu) for op in problem.graph.ops)
    one = replace(problem, pins=pins, costs=replace(problem.costs, compute_s=slow))
    assert series_bound_s(one) == pytest.approx(2.0 * problem.num_units, rel=1e-3)


def test_a_chain_that_does_not_fit_is_bounded_by_its_streams():
    """Equal layers, of which half fit: each byte that does not takes its time over the link."""
    small = random_problem(1, num_ops=8, num_devices=2)
    names = [f"op{i}" for i in range(8)]
    ops = tuple(Op(name, "Layer", param_bytes=100) for name in names)
    tensors = tuple(
        Tensor(f"t{i}", names[i], tuple(names[i + 1 : i + 2]), 1) for i in range(len(names))
    )
    graph = Graph("chain", ops, tensors)
    gpu = replace(small.machine.devices[1], memory_bytes=400)
    machine = replace(small.machine, devices=(small.machine.devices[0], gpu))
    times_s = np.tile([1000.0, 1.0], (8, 1))
    problem = replace(
        small,
        graph=graph,
        kernels=graph,
        machine=machine,
        costs=replace(small.costs, compute_s=times_s, workspace_bytes=np.zeros(8, dtype=np.int64)),
    )
    assert beyond_memory_s(problem) == pytest.approx(4 * 1 + 4 * 1000)
    latency_s, s_per_byte = problem.costs.latency_s[0, 1], problem.costs.s_per_byte[0, 1]
    stream_s = latency_s + 100 * s_per_byte
    assert beyond_memory_s(with_offload(problem)) == pytest.approx(8 * 1 + 4 * stream_s)


@settings(max_examples=either(20, 60), deadline=None)
@given(problems)
def test_each_bound_is_at_least_the_simpler_one(problem):
    unit_s = np.where(problem.allowed, problem.unit_s, np.inf)
    evenly_s = unit_s.min(axis=1).sum() / problem.num_devices
    assert shared_work_s(problem) >= evenly_s * (1 - 1e-9)
    assert ceft(problem).length_s >= longest_path_s(problem) * (1 - 1e-9)
    assert ceft_through_units_s(problem) >= ceft(problem).length_s * (1 - 1e-9)
    assert largest_unit_s(problem) == unit_s.min(axis=1).max()


def fractional_makespan(unit_s):
    """Two devices: give units to the first by falling ratio, and cut where the loads meet."""
    ratio = unit_s[:, 1] / unit_s[:, 0]
    first, second = 0.0, float(unit_s[:, 1].sum())
    for u in np.argsort(-ratio):
        a, b = unit_s[u]
        if first + a >= second - b:
            share = (second - first) / (a + b)
            return first + share * a
        first, second = first + a, second - b
    return first


@pytest.mark.parametrize("seed", range(20))
def test_shared_work_comes_close_to_the_linear_program(seed):
    problem = random_problem(seed, num_ops=30, num_devices=2)
    exact_s = fractional_makespan(problem.unit_s)
    assert 0.98 * exact_s <= shared_work_s(problem) <= exact_s


def test_devices_of_unequal_speed_share_by_speed():
    """Times 1 and 9 for everything: nine tenths of the work go to the fast device."""
    problem = random_problem(1, num_ops=20, num_devices=2)
    compute_s = np.tile([1.0, 9.0], (20, 1))
    unequal = replace(problem, costs=replace(problem.costs, compute_s=compute_s))
    assert shared_work_s(unequal) == pytest.approx(18.0)


def test_calls_leave_the_longest_path():
    """With a host that runs any number at a time, work is no bound; calls add their transfers."""
    for seed in range(8):
        problem = random_problem(seed, num_ops=7, num_devices=2)
        problem = replace(problem, execution="call")
        best = np.inf
        for devices in itertools.product(range(2), repeat=problem.num_units):
            schedule = make_schedule(problem, problem.placement_of(devices))
            if not violations(problem, schedule):
                best = min(best, step_time_s(problem, schedule))
        assert longest_path_s(problem) <= lower_bound(problem) <= best, seed


def test_the_bound_leaves_room_for_replicas():
    """One op on two accelerators, each taking every other sample."""
    content = workload([node(1, 50, 4)], [], maxFPGAs=2)
    problem = replace(problem_from_workload(content, "one"), objective="throughput")
    shared = replace(problem.placement_of([0]), replicas={"acc:0": 2})
    assert simulate(problem, shared).value == pytest.approx(2e-3)
    assert lower_bound(problem) == pytest.approx(4e-3)
    assert lower_bound(problem, shared) <= 2e-3


def test_a_graph_by_brute_force():
    for seed in range(6):
        problem = random_problem(seed, num_ops=6, num_devices=2, execution="op")
        best = min(
            step_time_s(problem, make_schedule(problem, problem.placement_of(devices)))
            for devices in itertools.product(range(2), repeat=problem.num_units)
        )
        assert longest_path_s(problem) <= lower_bound(problem) <= best
