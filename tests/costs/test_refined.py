"""Costs refined by runs: the mean that Bayes' rule gives, written out, and what it does."""

from dataclasses import replace

import numpy as np
import pytest

from placement.core.costs import Costs
from placement.core.profile import Refinement
from placement.core.schedule import Schedule, Segment
from placement.costs.refined import (
    ALL,
    CALL_S,
    CONTENTION,
    KIND,
    LATENCY_S,
    LEAST_S,
    OWN,
    RUN_SHARE,
    SHARE,
    SLOPE,
    refined,
    slow_down,
)
from placement.simulator.simulate import step_time_s
from tests.lanes import lanes_problem, random_schedule, run_of, with_kinds

SEEDS = range(4)


def by_runs(problem, *runs, strength=1.0):
    return refined(problem.costs, problem.kernels, problem.machine, Refinement(runs, strength))


def by_weights(problem, runs):
    """Deviations from the definition, one unknown for each: shares of all kernels, of each kind and
    of each kernel, then call, latency, slope and contention; the mean given what was measured."""
    costs, kernels = problem.costs, problem.kernels
    kinds = sorted({op.kind for op in kernels.ops})
    known = [ALL, *[KIND] * len(kinds), *[OWN] * len(kernels.ops)]
    known += [CALL_S, LATENCY_S, SLOPE, CONTENTION]
    rows, off, noise = [], [], []
    for run in runs:
        segments, first = run.schedule.segments, len(rows)
        for s, segment in enumerate(segments):
            row, own = np.zeros(len(known)), 0.0
            slower = slow_down(costs.contention, run.observed.beside[s])
            for name in segment.kernels:
                k = kernels.index[name]
                seconds = slower * costs.compute_s[k, 0]
                own += costs.compute_s[k, 0]
                kind = 1 + kinds.index(kernels.ops[k].kind)
                row[[0, kind, 1 + len(kinds) + k]] += seconds
            crossed, bytes_s = crossings(problem, run.schedule, s)
            own += costs.call_s[0]
            step = 1e-3
            more = slow_down(costs.contention + step, run.observed.beside[s])
            row[-4:] = slower, crossed, bytes_s, own * (more - slower) / step
            said = own * slower + crossed * costs.latency_s[0, 1] + bytes_s
            took = run.observed.computes[s].median_s + run.observed.waits[s].median_s
            rows.append(row)
            off.append(took - said)
            noise.append((said, run.observed.error_s(s)))
        said = np.array([each for each, _ in noise[first:]])
        block = RUN_SHARE**2 * np.outer(said, said)
        block += np.diag([e**2 + (SHARE * x) ** 2 + LEAST_S**2 for x, e in noise[first:]])
        noise[first:] = [(x, block[i]) for i, (x, _) in enumerate(noise[first:])]
    total = np.zeros((len(rows),) * 2)
    at = 0
    for run in runs:
        num = len(run.schedule.segments)
        total[at : at + num, at : at + num] = [noise[i][1] for i in range(at, at + num)]
        at += num
    design, precision = np.array(rows), np.linalg.inv(total)
    posterior = design.T @ precision @ design + np.diag(1 / np.array(known) ** 2)
    return kinds, np.linalg.solve(posterior, design.T @ precision @ np.array(off))


def crossings(problem, schedule, reader):
    """Values that a segment is the first on its lane to read of the other, and seconds of bytes."""
    of, found = schedule.segment_of, []
    for tensor in problem.kernels.tensors:
        if tensor.producer is None:
            continue
        device = schedule.segments[of[tensor.producer]].device
        there = [of[c] for c in tensor.consumers if schedule.segments[of[c]].device != device]
        if there and min(there) == reader:
            found.append(tensor.num_bytes * problem.costs.s_per_byte[0, 1])
    return len(found), sum(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mean_is_that_of_the_deviations_written_out(seed):
    problem = lanes_problem(seed, num_ops=15, crossing_s=4e-5, contention=0.2)
    world = with_kinds(problem, {"Conv": 1.1, "Add": 0.95})
    runs = [run_of(world, random_schedule(problem, seed + i), scatter=0.03) for i in range(2)]
    kinds, mean = by_weights(problem, runs)
    of_kind = np.array([mean[1 + kinds.index(op.kind)] for op in problem.kernels.ops])
    own = mean[1 + len(kinds) : -4]
    found = by_runs(problem, *runs)
    expected = problem.costs.compute_s * (1 + mean[0] + of_kind + own)[:, None]
    np.testing.assert_allclose(found.compute_s, expected, rtol=1e-6)
    costs = problem.costs
    assert found.call_s == pytest.approx(np.maximum(0, costs.call_s + mean[-4]), abs=1e-12)
    assert found.latency_s[0, 1] == pytest.approx(max(0, 4e-5 + mean[-3]), abs=1e-12)
    assert found.s_per_byte[1, 0] == pytest.approx(1e-9 * (1 + mean[-2]))
    assert found.contention == pytest.approx(max(0, costs.contention + mean[-1]))
    assert found.latency_s[0, 0] == 0 and found.refined_by == 2


@pytest.mark.parametrize("shares", [(0.0, 0.0), (1.0, 0.0), (0.4, 0.6)])
def test_runs_that_say_what_the_profile_says_change_nothing(shares):
    """Nor where what crosses holds up who sends and who reads it, and nobody waits longer."""
    held_up = sum(shares)
    crossing_s = 2e-4 * held_up
    problem = lanes_problem(1, contention=0.3, crossing_s=crossing_s)
    overhead = np.array(shares)[:, None, None] * (1.0 - np.eye(2))
    s_per_byte = held_up * problem.costs.s_per_byte
    costs = replace(problem.costs, overhead=overhead, s_per_byte=s_per_byte)
    problem = replace(problem, costs=costs)
    found = by_runs(problem, *(run_of(problem, random_schedule(problem, i)) for i in range(3)))
    np.testing.assert_allclose(found.compute_s, costs.compute_s, rtol=1e-9)
    assert found.call_s == pytest.approx(costs.call_s) and found.contention == pytest.approx(0.3)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_kind_that_is_slower_than_measured_is_found_for_placements_that_never_ran(seed):
    problem = lanes_problem(seed)
    world = with_kinds(problem, {"Conv": 1.25})
    runs = [run_of(world, random_schedule(problem, i), scatter=0.01, seed=i) for i in range(3)]
    known = replace(problem, costs=by_runs(problem, *runs))
    for other in range(10, 15):
        schedule = random_schedule(problem, other)
        truth = step_time_s(world, schedule)
        before, after = (step_time_s(p, schedule) / truth - 1 for p in (problem, known))
        assert abs(after) < abs(before) / 2, (before, after)


def test_the_more_steps_scatter_and_the_fewer_they_are_the_nearer_it_stays_to_the_profile():
    problem = lanes_problem(2)
    world = with_kinds(problem, {"Conv": 1.3, "Relu": 1.3, "Add": 1.3})
    schedule = random_schedule(problem, 5)
    moved = [
        float((by_runs(problem, run).compute_s / problem.costs.compute_s - 1).mean())
        for run in (
            run_of(world, schedule, num_steps=200),
            run_of(world, schedule, scatter=0.4, num_steps=200),
            run_of(world, schedule, scatter=0.4, num_steps=5),
        )
    ]
    assert 0.3 > moved[0] > moved[1] > moved[2] > 0


def test_the_strength_is_how_far_it_goes():
    problem = lanes_problem(3)
    run = run_of(with_kinds(problem, {"Conv": 1.2}), random_schedule(problem, 0))
    whole, half = by_runs(problem, run), by_runs(problem, run, strength=0.5)
    middle = (problem.costs.compute_s + whole.compute_s) / 2
    np.testing.assert_allclose(half.compute_s, middle)
    assert by_runs(problem, run, strength=0.0) is problem.costs


def test_a_hand_over_that_takes_longer_is_no_fault_of_kernels():
    problem = lanes_problem(4, crossing_s=2e-5)
    dear = replace(problem.costs, latency_s=6 * problem.costs.latency_s)
    world = replace(problem, costs=dear)
    runs = [run_of(world, random_schedule(problem, i)) for i in range(4)]
    found = by_runs(problem, *runs)
    factor = found.compute_s / problem.costs.compute_s
    assert found.latency_s[0, 1] > 3 * 2e-5 and abs(factor.mean() - 1) < 0.03


def test_what_one_lane_shows_holds_for_its_like_and_not_for_other_devices():
    problem = lanes_problem(5)
    devices = (*problem.machine.devices, replace(problem.machine.devices[0], name="b", cores=4))
    machine = replace(problem.machine, devices=devices)
    wide = np.concatenate([problem.costs.compute_s, problem.costs.compute_s[:, :1]], axis=1)
    costs = Costs(wide, np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3)), "measured")
    names = tuple(op.name for op in problem.kernels.ops)
    problem = replace(problem, machine=machine, costs=costs)
    run = run_of(with_kinds(problem, {"Conv": 1.5}), Schedule((Segment("cpu:0", names),)))
    factor = by_runs(problem, run).compute_s / costs.compute_s
    np.testing.assert_allclose(factor[:, 0], factor[:, 1])
    assert factor[:, 0].max() > 1.01 and (factor[:, 2] == 1).all()


@pytest.mark.parametrize("contention", [0.0, 0.3])
def test_slowing_down_goes_straight_in_rate_between_whole_numbers(contention):
    for fewer in range(3):
        ends = [1 / (1 + contention * n) for n in (fewer, fewer + 1)]
        for share in (0.0, 0.25, 0.5):
            rate = (1 - share) * ends[0] + share * ends[1]
            assert slow_down(contention, fewer + share) == pytest.approx(1 / rate)
