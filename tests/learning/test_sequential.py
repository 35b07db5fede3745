"""Sequential policies: against a list scheduler in plain Python, and what holds of roll-outs."""

from dataclasses import replace

import numpy as np
import pytest

from placement.core.machine import Machine
from placement.core.problem_json import problem_from_json
from placement.learning.course import NUM_FEATURES, NUM_HIDDEN, NUM_WEIGHTS
from placement.learning.environment import coarser
from placement.learning.sequential import (
    Rollouts,
    course_of,
    rollouts,
    untrained,
)
from placement.learning.simulated import mean_ranks_s, simulated
from tests.instances import canonical_file, random_problem

OWN = NUM_HIDDEN * (NUM_FEATURES + 1)


def least_finish_first():
    """Weights that put every unit where it ends first."""
    weights = np.zeros(NUM_WEIGHTS)
    weights[OWN] = -1.0
    return weights


def greedy(course, num=1):
    """Roll-outs without chance on all devices."""
    none, seeds = np.zeros(num), np.arange(1, num + 1)
    return Rollouts(course, seeds, none, none, np.full(num, course.alone_s.size))


def list_scheduled(problem, order):
    """Each op in an order where it ends first: the definition, with every value sent once to a
    device over a first-in first-out link."""
    costs, graph = problem.costs, problem.kernels
    device, end_s, arrived = {}, {}, {}
    free_s, link_s = [0.0] * problem.num_devices, {}
    for k in order:
        read = [
            t for t, tensor in enumerate(graph.tensors) if graph.ops[k].name in tensor.consumers
        ]

        def ways(d, k=k, read=read):
            """When each input is on device d, and which of them are sent for it."""
            found, links = {}, dict(link_s)
            for t in read:
                maker = graph.tensors[t].producer
                src = 0 if maker is None else device[graph.index[maker]]
                made_s = 0.0 if maker is None else end_s[graph.index[maker]]
                if (t, d) in arrived or src == d:
                    found[t] = (arrived.get((t, d), made_s), None)
                else:
                    begin_s = max(made_s, links.get((src, d), 0.0))
                    took_s = costs.transfer_s(src, d, graph.tensors[t].num_bytes)
                    found[t] = (begin_s + took_s, src)
            return found

        def ends(d, k=k, ways=ways):
            ready_s = max([free_s[d], *(at_s for at_s, _ in ways(d).values())])
            return ready_s + costs.call_s[d] + costs.compute_s[k, d]

        best = min(range(problem.num_devices), key=lambda d: (round(ends(d), 9), d))
        # Sent one after another, so that what shares a link waits for what went before.
        begin_s = free_s[best]
        for t in read:
            at_s, src = ways(best)[t]
            if src is not None:
                arrived[t, best] = link_s[src, best] = at_s
            begin_s = max(begin_s, at_s)
        device[k] = best
        end_s[k] = free_s[best] = begin_s + costs.call_s[best] + costs.compute_s[k, best]
    return [device[k] for k in range(len(graph.ops))]


@pytest.mark.parametrize("seed", range(12))
def test_without_chance_it_is_the_list_scheduler_of_its_weights(seed):
    problem = random_problem(seed, num_ops=14, num_devices=3, execution="op")
    course = course_of(simulated(problem))
    found = greedy(course).devices(least_finish_first())[0]
    assert found.tolist() == list_scheduled(problem, course.order.tolist())


def test_ranks_are_those_published_for_the_canonical_example():
    ranks = mean_ranks_s(problem_from_json(canonical_file(), "canonical"))
    assert [round(r, 3) for r in ranks] == [
        *(108.0, 77.0, 80.0, 80.0, 69.0),
        *(63.333, 42.667, 35.667, 44.333, 14.667),
    ]


def test_paths_follow_their_definitions():
    problem = random_problem(3, num_ops=12, num_devices=3, execution="op")
    course = course_of(simulated(problem))
    edges = [
        (u, int(v), float(course.net_s[n]))
        for u in range(12)
        for n in course.out_nets[course.out_ptr[u] : course.out_ptr[u + 1]]
        for v in course.readers[course.reader_ptr[n] : course.reader_ptr[n + 1]]
    ]
    mean_s, work_s = course.mean_s, course.work_s

    def rank(u):
        return mean_s[u] + max([c + rank(v) for a, v, c in edges if a == u], default=0.0)

    def depth(v):
        return max([depth(u) + mean_s[u] + c for u, b, c in edges if b == v], default=0.0)

    def outlook(u, p):
        after = [
            min(outlook(v, q) + work_s[v, q] + (c if q != p else 0.0) for q in range(3))
            for a, v, c in edges
            if a == u
        ]
        return max(after, default=0.0)

    assert course.rank_s == pytest.approx([rank(u) for u in range(12)])
    assert course.depth_s == pytest.approx([depth(v) for v in range(12)])
    assert course.outlook_s == pytest.approx(
        np.array([[outlook(u, p) for p in range(3)] for u in range(12)])
    )


def test_decisions_do_not_depend_on_the_unit_of_time():
    problem = random_problem(5, num_ops=20, num_devices=4)
    costs = problem.costs
    slow = replace(
        costs,
        compute_s=1000 * costs.compute_s,
        call_s=1000 * costs.call_s,
        latency_s=1000 * costs.latency_s,
        s_per_byte=1000 * costs.s_per_byte,
    )
    found = [
        rollouts(course_of(simulated(p)), 16, 7).devices(untrained(1))
        for p in (problem, replace(problem, costs=slow))
    ]
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_roll_outs_keep_to_what_is_allowed_and_repeat(objective):
    problem = random_problem(7, num_ops=20, num_devices=4, with_gaps=True, with_groups=True)
    environment = simulated(replace(problem, objective=objective))
    course = course_of(environment)
    found = rollouts(course, 64, 3).devices(untrained(1))
    assert environment.allowed[np.arange(environment.num_units), found].all()
    assert np.isfinite(environment.values_s(found)).all()
    assert len(np.unique(found, axis=0)) > 8
    assert (rollouts(course, 64, 3).devices(untrained(1)) == found).all()
    assert (rollouts(course, 64, 4).devices(untrained(1)) != found).any()


def test_weights_of_each_roll_out_are_its_own():
    course = course_of(simulated(random_problem(2, num_ops=20, num_devices=3)))
    rows = np.random.default_rng(0).standard_normal((3, NUM_WEIGHTS))
    together = greedy(course, 3).devices(rows)
    assert len(np.unique(together, axis=0)) > 1
    for row, devices in zip(rows, together, strict=True):
        assert (greedy(course).devices(row)[0] == devices).all()


def test_a_narrow_roll_out_uses_as_many_devices_as_it_may():
    course = course_of(simulated(random_problem(2, num_ops=30, num_devices=4)))
    width = np.repeat([1, 2, 3], 20)
    chance = np.ones(60)
    found = Rollouts(course, np.arange(1, 61), chance, chance, width).devices(untrained(0))
    used = np.array([np.unique(row).size for row in found])
    assert (used <= width).all() and (used[width == 1] == 1).all() and (used == 3).any()
    assert np.unique(found[:20]).size > 1


def test_devices_are_not_filled_beyond_their_memory():
    problem = random_problem(1, num_ops=16, num_devices=3)
    weights = sum(op.param_bytes for op in problem.graph.ops)
    devices = tuple(replace(d, memory_bytes=weights // 2) for d in problem.machine.devices)
    machine = Machine("tight", devices, problem.machine.links)
    environment = simulated(replace(problem, machine=machine))
    found = rollouts(course_of(environment), 32, 0).devices(untrained(0))
    for row in found:
        held = np.bincount(row, environment.size_bytes, minlength=3)
        assert (held <= weights // 2).all()


def test_units_of_a_cycle_are_decided_once_each():
    """Clusters of a coarse level may read from each other."""
    environment = simulated(random_problem(4, num_ops=12, num_devices=2, execution="op"))
    coarse = coarser(environment, np.arange(12) % 3)
    course = course_of(coarse)
    assert sorted(course.order.tolist()) == [0, 1, 2]
    assert np.isfinite(coarse.values_s(rollouts(course, 8, 0).devices(untrained(0)))).all()
