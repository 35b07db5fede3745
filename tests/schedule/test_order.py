"""Orders of execution, compiled, against their definitions in a few lines."""

import random
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from placement.core.violations import needed_bytes, violations
from placement.schedule.order import by_priority, kernel_order, spelled_order, upward_ranks
from placement.schedule.order_compiled import pop, push
from placement.schedule.segments import make_schedule
from tests.instances import random_devices, random_problem


def order_by_definition(graph, keys):
    """Again and again the op with the least key among those whose predecessors have run."""
    order = []
    while len(order) < len(graph.ops):
        ready = [
            i
            for i in range(len(graph.ops))
            if i not in order and set(graph.predecessors[i]) <= set(order)
        ]
        order.append(min(ready, key=lambda i: (keys[i], i)))
    return order


def ranks_by_definition(problem, device):
    """Longest path of compute and transfers from each kernel on."""
    index = problem.kernels.index
    ranks = [0.0] * len(device)
    for k in reversed(range(len(device))):
        after = [
            problem.costs.transfer_s(device[k], device[index[c]], t.num_bytes) + ranks[index[c]]
            for t in problem.kernels.tensors
            if t.producer == problem.kernels.ops[k].name
            for c in t.consumers
        ]
        ranks[k] = problem.costs.compute_s[k, device[k]] + max(after, default=0.0)
    return ranks


@pytest.mark.parametrize("seed", range(30))
def test_the_ready_op_with_the_least_key_comes_first(seed):
    rng = random.Random(seed)
    problem = random_problem(seed, num_ops=rng.randrange(1, 25), num_devices=2)
    keys = [float(rng.randrange(4)) for _ in problem.kernels.ops]
    order = by_priority(problem.kernels, keys)
    assert order == order_by_definition(problem.kernels, keys)
    assert all(type(k) is int for k in order)


@pytest.mark.parametrize("seed", range(30))
def test_upward_ranks_are_longest_paths(seed):
    problem = random_problem(seed, num_ops=20, num_devices=3, with_groups=True)
    device = np.array(random_devices(problem, seed))[problem.unit_of_kernel]
    assert upward_ranks(problem, device) == ranks_by_definition(problem, device.tolist())


@pytest.mark.parametrize("seed", range(10))
def test_without_an_order_of_its_own_a_placement_runs_by_falling_rank(seed):
    problem = random_problem(seed, num_ops=20, num_devices=3)
    devices = random_devices(problem, seed)
    placement = problem.placement_of(devices)
    device = problem.kernel_devices(placement)
    keys = [-r for r in ranks_by_definition(problem, device.tolist())]
    assert kernel_order(problem, placement, device) == order_by_definition(problem.kernels, keys)


def kernels_of(schedule):
    return [segment.kernels for segment in schedule.segments]


@pytest.mark.parametrize("seed", range(10))
def test_on_one_device_segments_run_in_the_model_s_own_order(seed):
    """In one that a method decided, or that is pinned, in that; beside another device by rank."""
    problem = random_problem(seed, num_ops=20, num_devices=2)
    names = [op.name for op in problem.kernels.ops]
    for device in (0, 1):
        placement = problem.placement_of([device] * problem.num_units)
        ranked = spelled_order(problem, placement)
        assert list(ranked) != names, "or this shows nothing"
        segments = kernels_of(make_schedule(problem, placement))
        assert sorted(chain(*segments)) == sorted(names)
        assert all(list(one) == sorted(one, key=names.index) for one in segments)

        decided = replace(placement, order=ranked)
        assert list(chain(*kernels_of(make_schedule(problem, decided)))) == list(ranked)
        pinned = replace(problem, sequences=((problem.machine.devices[device].name, ranked),))
        assert list(chain(*kernels_of(make_schedule(pinned, placement)))) == list(ranked)

    spread = problem.placement_of(random_devices(problem, seed))
    by_rank = replace(spread, order=spelled_order(problem, spread))
    assert make_schedule(problem, spread) == make_schedule(problem, by_rank)


@pytest.mark.parametrize("seed", (5, 6, 17, 27, 38))
def test_where_its_own_order_lacks_memory_one_device_runs_by_rank(seed):
    problem = random_problem(seed, num_ops=12, num_devices=1)
    placement = problem.placement_of([0] * problem.num_units)
    ranked = replace(placement, order=spelled_order(problem, placement))
    own, by_rank = (
        needed_bytes(problem, make_schedule(problem, one))[0] for one in (placement, ranked)
    )
    assert own > by_rank, "or this shows nothing"
    (device,) = problem.machine.devices
    tight = replace(device, memory_bytes=by_rank)
    scarce = replace(problem, machine=replace(problem.machine, devices=(tight,)))
    assert make_schedule(scarce, placement) == make_schedule(problem, ranked)


@pytest.mark.parametrize("seed", (9, 18, 23, 30))
def test_an_accelerator_alone_is_cut_finer_where_that_takes_less_memory(seed):
    """As declared it does not fit, nor by rank in as few segments."""
    problem = random_problem(seed, num_ops=12, num_devices=2)
    placement = problem.placement_of([1] * problem.num_units)
    ranked = replace(placement, order=spelled_order(problem, placement))
    ways = [make_schedule(problem, placement)]
    ways += [make_schedule(problem, ranked, merge=merge) for merge in (True, False)]
    *more, least = (needed_bytes(problem, way)[1] for way in ways)
    assert least < min(more), "or this shows nothing"
    host, device = problem.machine.devices
    tight = replace(problem.machine, devices=(host, replace(device, memory_bytes=least)))
    scarce = replace(problem, machine=tight)
    assert not violations(scarce, make_schedule(scarce, placement))


def test_the_heap_hands_out_by_key_and_then_by_item():
    rng = random.Random(0)
    entries = [(float(rng.randrange(5)), i) for i in range(100)]
    rng.shuffle(entries)
    keys, items, size = np.zeros(100), np.zeros(100, dtype=np.int64), 0
    for key, item in entries:
        size = push(keys, items, size, key, item)
    out = []
    while size:
        out.append((float(keys[0]), int(items[0])))
        size = pop(keys, items, size)
    assert out == sorted(entries)
