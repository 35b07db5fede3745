"""Levers against what they say: the same schedule simulated with one thing faster."""

from dataclasses import replace

import numpy as np
import pytest

from placement.advice.speedups import KINDS, Lever, levers
from placement.core.graph import Graph
from placement.loaders.workload import problem_from_workload
from placement.schedule.segments import make_schedule
from placement.schedule.simulated import simulate, simulate_schedule
from placement.simulator.throughput import bottleneck
from tests.instances import random_devices, random_problem
from tests.workloads import node, random_workload_problem, workload


def with_half(problem, schedule, lever):
    """The problem in which what the lever names takes, or is, half."""
    costs, index = problem.costs, problem.machine.index
    compute_s, call_s = costs.compute_s.copy(), costs.call_s.copy()
    latency_s, s_per_byte = costs.latency_s.copy(), costs.s_per_byte.copy()
    if lever.kind == "segment":
        segment = next(s for s in schedule.segments if s.kernels[0] == lever.name)
        assert segment.device == lever.where
        rows = [problem.kernels.index[kernel] for kernel in segment.kernels]
        compute_s[rows, index[lever.where]] /= 2
    elif lever.kind == "device":
        compute_s[:, index[lever.name]] /= 2
        call_s[index[lever.name]] /= 2
    elif lever.kind == "link":
        src, dst = lever.name.split("->")
        latency_s[index[src], index[dst]] /= 2
        s_per_byte[index[src], index[dst]] /= 2
    tensors = [
        replace(t, num_bytes=t.num_bytes // 2)
        if (lever.kind, lever.name) == ("tensor", t.name)
        else t
        for t in problem.kernels.tensors
    ]
    return replace(
        problem,
        kernels=Graph(problem.kernels.name, problem.kernels.ops, tuple(tensors)),
        costs=replace(
            costs, compute_s=compute_s, call_s=call_s, latency_s=latency_s, s_per_byte=s_per_byte
        ),
    )


def even(problem):
    """The same with tensors of an even number of bytes, so that half of one is a whole number."""
    tensors = tuple(replace(t, num_bytes=2 * t.num_bytes) for t in problem.kernels.tensors)
    return replace(problem, kernels=Graph(problem.kernels.name, problem.kernels.ops, tensors))


def instances():
    for seed in range(12):
        for objective in ("latency", "throughput"):
            yield replace(even(random_problem(seed)), objective=objective), seed
            overheads = even(random_problem(seed, with_overhead=True))
            yield replace(overheads, objective=objective), seed
            yield replace(random_workload_problem(seed), objective=objective), seed


def test_what_a_lever_saves_is_what_the_simulation_says():
    seen = set()
    for problem, seed in instances():
        schedule = make_schedule(problem, problem.placement_of(random_devices(problem, seed)))
        now = simulate_schedule(problem, schedule)
        found = levers(problem, schedule, now.critical_path)
        for lever in found:
            faster = simulate_schedule(with_half(problem, schedule, lever), schedule)
            assert lever.saves_s == pytest.approx(now.value - faster.value), (seed, lever)
            assert lever.saves_s > 0 and lever.kind in KINDS
            seen.add((problem.execution, problem.objective, lever.kind))
        assert list(found) == sorted(found, key=lambda lever: -lever.saves_s)
    assert {kind for _, _, kind in seen} == set(KINDS)


def test_what_is_on_the_path_and_saves_most_is_there():
    """Brute force over everything on the path: no segment, tensor, device or link saves more."""
    problem = even(random_problem(5))
    schedule = make_schedule(problem, problem.placement_of(random_devices(problem, 5)))
    now = simulate_schedule(problem, schedule)
    best = levers(problem, schedule, now.critical_path)[0]
    kind_of = {"compute": "segment", "transfer": "tensor"}
    for span in (s for s in now.critical_path if s.kind in kind_of):
        given = replace(best, kind=kind_of[span.kind], name=span.name, where=span.device)
        faster = simulate_schedule(with_half(problem, schedule, given), schedule)
        assert now.value - faster.value <= best.saves_s + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_no_link_that_holds_up_a_segment_of_the_path_saves_more(seed):
    """Brute force over all links: also those whose transfers are on the path of nobody."""
    problem = even(random_problem(seed, num_devices=3, with_overhead=True))
    schedule = make_schedule(problem, problem.placement_of(random_devices(problem, seed)))
    now = simulate_schedule(problem, schedule)
    found = levers(problem, schedule, now.critical_path)
    best_s = max((lever.saves_s for lever in found), default=0.0)
    for link in problem.machine.links:
        given = Lever("link", f"{link.src}->{link.dst}", "", 0.0)
        faster = simulate_schedule(with_half(problem, schedule, given), schedule)
        assert now.value - faster.value <= best_s + 1e-12, link


def test_replicas_share_the_load_that_a_lever_shortens():
    """12 ms on two accelerators and 7 ms on the third: the third one sets the pace, not the first.

    With its op in half the time the two of 6 ms would.
    """
    content = workload([node(1, 50, 12), node(2, 50, 7)], [], maxFPGAs=3)
    problem = replace(problem_from_workload(content, "two"), objective="throughput")
    shared = replace(problem.placement_of([0, 1]), replicas={"acc:0": 2})
    now = simulate(problem, shared)
    assert bottleneck(problem, now.schedule, shared.replicas) == "acc:1"
    found = levers(problem, now.schedule, now.critical_path, replicas=shared.replicas)
    assert {(lever.kind, lever.name) for lever in found} == {
        ("segment", "node2"),
        ("device", "acc:1"),
    }
    assert [lever.saves_s for lever in found] == pytest.approx([1e-3, 1e-3])


def test_nothing_helps_a_step_without_work():
    problem = random_problem(1)
    idle = replace(
        problem, costs=replace(problem.costs, compute_s=np.zeros_like(problem.costs.compute_s))
    )
    everywhere = idle.placement_of([0] * idle.num_units)
    schedule = make_schedule(idle, everywhere)
    now = simulate_schedule(idle, schedule)
    assert all(lever.kind != "segment" for lever in levers(idle, schedule, now.critical_path))
