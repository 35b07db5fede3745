"""Stages: as few calls as data allow, apart by as many samples as there are crossings."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from placement.core.machine import Machine
from placement.core.schedule import Schedule, Segment
from placement.core.violations import violations
from placement.schedule.segments import make_schedule
from placement.schedule.stages import in_stages
from placement.simulator.compiled.loads import find_loads, find_turn_loads
from placement.simulator.compiled.moves import begin
from placement.simulator.executions import lower
from placement.simulator.flat import flatten
from placement.simulator.lowering import stages_of
from placement.simulator.run_state import run_state
from placement.simulator.throughput import (
    bottleneck,
    largest_turn_load_s,
    loads_s,
    seconds_per_sample,
)
from tests.instances import random_devices, random_problem


def problem_of(seed, *, num_ops=12, num_devices=2, num_cpus=1, contention=0.0):
    made = random_problem(seed, num_ops=num_ops, num_devices=num_devices, contention=contention)
    devices = tuple(
        replace(d, kind="cpu" if i < num_cpus else "gpu")
        for i, d in enumerate(made.machine.devices)
    )
    return replace(
        made,
        machine=Machine("random", devices, made.machine.links),
        objective="throughput",
    )


def fewest(problem, devices):
    """The least number of calls, by going through every set of kernels that can have run."""
    num = len(devices)
    before = [0] * num
    for k, readers in enumerate(problem.kernels.successors):
        for reader in readers:
            before[reader] |= 1 << k
    steps, reached = 0, {0}
    while (1 << num) - 1 not in reached:
        steps += 1
        found = set()
        for done, d in itertools.product(reached, range(problem.num_devices)):
            own = [k for k in range(num) if devices[k] == d and not done >> k & 1]
            for size in range(1, len(own) + 1):
                for some in itertools.combinations(own, size):
                    after = done | sum(1 << k for k in some)
                    if all(before[k] & ~after == 0 for k in some):
                        found.add(after)
        reached = found
    return steps


@pytest.mark.parametrize("seed", range(40))
def test_two_devices_get_the_fewest_calls_there_are(seed):
    problem = problem_of(seed, num_ops=7, num_cpus=1 + seed % 2)
    devices = random_devices(problem, seed)
    schedule = make_schedule(problem, problem.placement_of(devices))
    assert len(schedule.segments) == fewest(problem, devices)
    assert not violations(problem, schedule)


@pytest.mark.parametrize("seed", range(40))
def test_calls_are_saved_and_the_value_is_never_worse(seed):
    problem = problem_of(seed, num_ops=30, num_devices=4, num_cpus=1 + seed % 4, contention=0.2)
    placement = problem.placement_of(random_devices(problem, seed))
    cut = make_schedule(problem, placement, merge=False)
    schedule = make_schedule(problem, placement)
    assert not violations(problem, schedule)
    assert len(schedule.segments) <= len(cut.segments)
    assert seconds_per_sample(problem, schedule) <= seconds_per_sample(problem, cut) * (1 + 1e-9)


def calls_by_turns(problem, devices, order):
    """In each turn a device runs all that is ready, there and back along the pipeline."""
    kernels = problem.kernels
    waits = [len(set(before)) for before in kernels.predecessors]
    begins = [[i for i, k in enumerate(order) if devices[k] == d] for d in range(4)]
    there = sorted(range(4), key=lambda d: (begins[d] or [len(order)])[0])
    segments, done = [], set()
    for d in itertools.cycle([*there, *there[-2:0:-1]]):
        if len(done) == len(order):
            return Schedule(tuple(segments))
        call = []
        for k in order:
            if devices[k] == d and k not in done and waits[k] == 0:
                call.append(kernels.ops[k].name)
                done.add(k)
                for reader in set(kernels.successors[k]):
                    waits[reader] -= 1
        if call:
            segments.append(Segment(f"d{d}", tuple(call)))
    raise AssertionError


@pytest.mark.parametrize("seed", range(20))
def test_a_search_minimises_the_load_of_the_calls_of_turns(seed):
    """And no final schedule has a larger one."""
    num_cpus = 1 + seed % 3
    problem = problem_of(seed, num_ops=30, num_devices=4, num_cpus=num_cpus, contention=0.2)
    problem = replace(problem, objective="throughput")
    devices, order = np.array(random_devices(problem, seed)), np.arange(30)
    flat = flatten(problem)
    state = run_state(flat, order)
    begin(flat, state, devices)
    found, links = find_turn_loads(flat, state)
    schedule = calls_by_turns(problem, devices.tolist(), order.tolist())
    expected = loads_s(problem, schedule)
    names = [device.name for device in problem.machine.devices]
    assert found.tolist() == pytest.approx([expected[name] for name in names])
    assert max(links) == pytest.approx(max(v for k, v in expected.items() if k not in names))
    final = make_schedule(problem, problem.placement_of(devices.tolist(), order.tolist()))
    assert seconds_per_sample(problem, final) <= largest_turn_load_s(flat, state) * (1 + 1e-9)


def test_contiguous_stages_are_one_call_each():
    problem = problem_of(3, num_ops=30, num_devices=3)
    devices = [k // 10 for k in range(30)]
    schedule = make_schedule(problem, problem.placement_of(devices))
    assert [s.device for s in schedule.segments] == ["d0", "d1", "d2"]
    assert stages_of(lower(problem, schedule)) == (0, 1, 2)


@pytest.mark.parametrize("most", [None, 1, 2, 3])
@pytest.mark.parametrize("seed", range(15))
def test_no_round_waits_within_itself(seed, most):
    """What is read was made in an earlier stage, or before it by the same device."""
    problem = problem_of(seed, num_ops=20, num_devices=3, num_cpus=3)
    devices = random_devices(problem, seed)
    plain = make_schedule(problem, problem.placement_of(devices, range(20)), merge=False)
    schedule, stage_of = in_stages(problem, plain, most)
    assert sorted(map(str, schedule.segments)) == sorted(map(str, plain.segments))
    assert list(stage_of) == sorted(stage_of) and stage_of[0] == 0
    every = in_stages(problem, plain)[1]
    assert max(stage_of) + 1 == min(max(every) + 1, most or 99)
    assert set(stage_of) == set(range(max(stage_of) + 1)), "no stage is empty"
    tasks = lower(problem, schedule)
    for s, stage in enumerate(stage_of):
        makers = [tasks.transfers[i].segment for i in tasks.reads[s]]
        assert all(p < s for p in (*makers, *tasks.local_reads[s]))
        assert most is not None or all(stage_of[p] < stage for p in makers if p >= 0)


def test_lanes_that_share_memory_slow_each_other_while_both_work():
    """10 and 5 ms: each other one's work over the largest load, times the contention of 0.2."""
    problem = problem_of(0, num_ops=2, num_cpus=2)
    names = [op.name for op in problem.kernels.ops]
    costs = replace(
        problem.costs,
        compute_s=np.array([[10.0, 10.0], [5.0, 5.0]]),
        call_s=np.zeros(2),
        latency_s=np.zeros((2, 2)),
        s_per_byte=np.zeros((2, 2)),
        contention=0.2,
    )
    problem = replace(problem, costs=costs)
    schedule = Schedule(tuple(Segment(f"d{i}", (name,)) for i, name in enumerate(names)))
    loads = loads_s(problem, schedule)
    assert loads["d0"] == pytest.approx(10 * (1 + 0.2 * 5 / 10))
    assert loads["d1"] == pytest.approx(5 * (1 + 0.2 * 10 / 10))
    assert bottleneck(problem, schedule) == "d0"
    alone = Schedule((Segment("d0", tuple(names)),))
    assert loads_s(problem, alone) == {"d0": 15.0, "d1": 0.0}


@pytest.mark.parametrize("seed", range(40))
def test_compiled_loads_are_those_of_the_definition(seed):
    """Independent of both: work, transfers, then contention from the busy shares."""
    rng = random.Random(seed)
    num_cpus = rng.randrange(1, 5)
    problem = problem_of(seed, num_ops=25, num_devices=4, num_cpus=num_cpus, contention=0.3)
    devices, order = np.array(random_devices(problem, seed)), np.arange(25)
    state = run_state(flatten(problem), order)
    begin(flatten(problem), state, devices)
    found, links = find_loads(flatten(problem), state)
    placement = problem.placement_of(devices.tolist(), order.tolist())
    schedule = make_schedule(problem, placement, merge=False)
    expected = loads_s(problem, schedule)
    names = [d.name for d in problem.machine.devices]
    assert found.tolist() == pytest.approx([expected[name] for name in names])
    tasks = lower(problem, schedule)
    work = [
        sum(w for w, on in zip(tasks.work_s, tasks.device, strict=True) if on == d)
        for d in range(4)
    ]
    sent = [sum(m.duration_s for m in tasks.transfers if d in (m.src, m.dst)) for d in range(4)]
    most_s = max(*links.tolist(), *(a + b for a, b in zip(work, sent, strict=True)))
    for d in range(4):
        others = sum(work[e] for e in range(num_cpus) if e != d) if d < num_cpus else 0.0
        assert found[d] == pytest.approx(work[d] * (1 + 0.3 * others / most_s) + sent[d])


def test_devices_without_work_have_no_load():
    problem = problem_of(0, num_cpus=2, contention=0.5)
    costs = replace(problem.costs, compute_s=np.zeros((12, 2)), call_s=np.zeros(2))
    problem = replace(problem, costs=costs)
    names = tuple(op.name for op in problem.kernels.ops)
    schedule = Schedule((Segment("d0", names),))
    assert loads_s(problem, schedule) == {"d0": 0.0, "d1": 0.0}
