"""The cost model of split graphs against hand-made examples, slow oracles and published values."""

import itertools
import json
import random
from dataclasses import replace

import numpy as np
import pytest

from placement.core.schedule import Schedule
from placement.core.violations import violations
from placement.formats.split_json import split_from_json
from placement.loaders.workload import problem_from_workload
from placement.schedule.calls import make_call_schedule
from placement.schedule.segments import make_schedule
from placement.simulator.call_costs import (
    Call,
    call_durations_s,
    calls_of,
    loads_s,
    max_load_s,
)
from placement.simulator.simulate import simulate
from placement.simulator.throughput import seconds_per_sample
from tests.call_latency import latency_s
from tests.contiguity import contiguity
from tests.instances import random_devices
from tests.workloads import (
    diamond,
    edges,
    node,
    random_workload_problem,
    shared_file,
    shared_problem,
    workload,
)

MS = 1e-3
SEEDS = range(60)


def close(seconds, milliseconds):
    return seconds == pytest.approx(milliseconds * MS, rel=1e-9, abs=1e-15)


def devices_at_random(problem, seed):
    return np.array(random_devices(problem, seed))[problem.unit_of_kernel]


def test_loads_of_a_diamond_by_hand():
    """acc:0 {1, 2} hands out both; acc:1 {4} takes both inputs; the CPU {3} pays nothing."""
    problem = problem_from_workload(diamond(), "diamond")
    loads = loads_s(problem, np.array([0, 0, 2, 1]))
    assert close(loads["acc:0"], 1 + 2 + (1 + 2))
    assert close(loads["acc:1"], 4 + (2 + 3))
    assert close(loads["cpu:0"], 30)
    assert close(max_load_s(problem, np.array([0, 0, 2, 1])), 30)


def test_a_tensor_is_paid_once_per_device():
    """acc:0 {1} hands out once though both others read; acc:1 {2, 3} takes in once."""
    problem = problem_from_workload(diamond(), "diamond")
    loads = loads_s(problem, np.array([0, 1, 1, 2]))
    assert close(loads["acc:0"], 1 + 1)
    assert close(loads["acc:1"], 2 + 3 + 1 + (2 + 3))
    assert close(loads["cpu:0"], 40)


def test_latency_of_a_diamond_by_hand():
    problem = problem_from_workload(diamond(), "diamond")
    assert close(latency_s(problem, []), 10 + 30 + 40)
    everything = [Call(0, (0, 1, 2, 3))]
    assert close(latency_s(problem, everything), 1 + 2 + 3 + 4)
    # Node 1 ends at 1 + 1, node 2 on the other accelerator at 2 + (1 + 2 + 2), node 3 on the CPU
    # at 32; node 4 is a second call of acc:0: 32 + (2 + 3 + 4).
    two_calls = [Call(0, (0,)), Call(1, (1,)), Call(0, (3,))]
    assert close(latency_s(problem, two_calls), 41)
    with pytest.raises(ValueError, match="wait for each other in a cycle"):
        latency_s(problem, [Call(0, (0, 3)), Call(1, (1,))])
    with pytest.raises(ValueError, match="cycle"):
        latency_s(problem, two_calls[::-1])


def naive_loads_s(problem, device_of_kernel):
    """From the words of the definition, over sets of kernels."""
    kernels, costs = problem.kernels, problem.costs
    loads = {}
    for d, device in enumerate(problem.machine.devices):
        own = {op.name for k, op in enumerate(kernels.ops) if device_of_kernel[k] == d}
        load = sum(costs.compute_s[kernels.index[name], d] for name in own)
        for tensor in () if device.on_host else kernels.tensors:
            inside = tensor.producer in own
            others = [c for c in tensor.consumers if (c in own) != inside]
            load += tensor.num_bytes / 1e9 if others else 0.0
        loads[device.name] = load
    return loads


@pytest.mark.parametrize("training", [False, True])
def test_loads_agree_with_the_definition(training):
    for seed in SEEDS:
        problem = random_workload_problem(seed, num_nodes=10, training=training)
        device_of_kernel = devices_at_random(problem, seed)
        wanted = naive_loads_s(problem, device_of_kernel)
        assert loads_s(problem, device_of_kernel) == pytest.approx(wanted, abs=1e-12), seed
        schedule = make_schedule(problem, problem.placement_of(random_devices(problem, seed)))
        assert seconds_per_sample(problem, schedule) == pytest.approx(
            max(wanted.values()), abs=1e-12
        )


def naive_latency_s(problem, calls):
    """Ends of calls by repeated relaxation; None where they do not settle."""
    part = {k: i for i, call in enumerate(calls) for k in call.kernels}
    names = problem.kernels.index
    waits = {
        (a, b)
        for a, b in itertools.combinations(range(len(calls)), 2)
        if calls[a].device == calls[b].device
        and not problem.machine.devices[calls[a].device].on_host
    }
    duration = [
        sum(problem.costs.compute_s[k, call.device] for k in call.kernels) for call in calls
    ]
    for tensor in problem.kernels.tensors:
        made = part[names[tensor.producer]]
        readers = {part[names[c]] for c in tensor.consumers} - {made}
        waits |= {(made, r) for r in readers}
        for i in readers | ({made} if readers else set()):
            if not problem.machine.devices[calls[i].device].on_host:
                duration[i] += tensor.num_bytes / 1e9
    ends = list(duration)
    for _ in range(len(calls) + 1):
        before = list(ends)
        for a, b in waits:
            ends[b] = max(ends[b], ends[a] + duration[b])
        if ends == before:
            return max(ends)
    return None


def test_latency_agrees_with_relaxation_and_with_the_simulator():
    for seed in SEEDS:
        problem = random_workload_problem(seed, num_nodes=9)
        units = random_devices(problem, seed)
        calls = calls_of(problem, np.array(units)[problem.unit_of_kernel])
        value = latency_s(problem, calls)
        assert value == pytest.approx(naive_latency_s(problem, calls), abs=1e-12), seed
        schedule = make_schedule(problem, problem.placement_of(units))
        assert simulate(problem, schedule).step_s == pytest.approx(value, abs=1e-12), seed


def test_calls_cover_every_kernel_once_in_a_valid_order():
    for seed, training in itertools.product(SEEDS, (False, True)):
        problem = random_workload_problem(seed, num_nodes=10, training=training)
        device_of_kernel = devices_at_random(problem, seed)
        calls = calls_of(problem, device_of_kernel)
        assert sorted(k for c in calls for k in c.kernels) == list(range(10)), seed
        done = set()
        for call in calls:
            assert all(device_of_kernel[k] == call.device for k in call.kernels), seed
            if problem.machine.devices[call.device].on_host:
                assert len(call.kernels) == 1, seed
            for k in call.kernels:
                done.add(k)
                assert done.issuperset(problem.kernels.predecessors[k]), seed


def test_one_call_per_accelerator_wherever_that_can_run():
    """Every device's kernels as one call have a latency exactly where calls_of makes one each."""
    found = {True: 0, False: 0}
    for seed in range(150):
        problem = random_workload_problem(seed, num_nodes=7)
        device_of_kernel = devices_at_random(problem, seed)
        accelerators = [d for d, x in enumerate(problem.machine.devices) if not x.on_host]
        used = [d for d in accelerators if (device_of_kernel == d).any()]
        whole = [Call(d, tuple(np.flatnonzero(device_of_kernel == d).tolist())) for d in used]
        calls = [c for c in calls_of(problem, device_of_kernel) if c.device in accelerators]
        try:
            value = latency_s(problem, whole)
        except ValueError:
            assert len(calls) > len(used), seed
            found[False] += 1
        else:
            assert sorted(calls) == whole, seed
            assert latency_s(problem, calls) == value
            found[True] += 1
    assert min(found.values()) > 20


def test_an_order_that_states_its_calls_is_kept():
    """1 -> 3 on one accelerator, 2 between them on the other: two calls, in the order given."""
    content = workload([node(i, 9, 1) for i in (1, 2, 3)], edges((1, 2, 1), (2, 3, 1)))
    problem = problem_from_workload(content, "chain")
    placement = replace(problem.placement_of([0, 1, 0], order=[0, 1, 2]), calls={"acc:0": 2})
    schedule = make_call_schedule(problem, placement)
    assert [s.kernels for s in schedule.segments] == [("node1",), ("node2",), ("node3",)]
    assert violations(problem, schedule, placement.calls) == ()
    (broken,) = violations(problem, schedule)
    assert "'acc:0' needs 2 calls" in broken and "may make 1" in broken
    assert violations(replace(problem, objective="throughput"), schedule) == ()
    np.testing.assert_allclose(call_durations_s(problem, schedule) / MS, [2, 3, 2])


def test_contiguity_by_hand():
    content = workload([node(i, 1, 1) for i in (1, 2, 3)], edges((1, 2, 0), (2, 3, 0)), maxFPGAs=3)
    problem = problem_from_workload(content, "chain")
    assert contiguity(problem, np.array([0, 1, 0])) == ("acc:0",)
    assert contiguity(problem, np.array([0, 0, 1])) == ()
    assert contiguity(problem, np.array([3, 0, 3])) == ("cpu:0",)


def test_orphans_count_in_reverse():
    """Backward 4 -> 5 -> 6 without forward mates behind forward 1 -> 2 -> 3.

    Node 6 shares a class with 1, node 4 with 3; 5 stands alone, so 1 -> (5) -> 3 is a forward path.
    """
    late = {"isBackwardNode": True}
    content = workload(
        [node(i, 1, 1, colorClass=i) for i in (1, 2, 3)]
        + [node(4, 1, 1, colorClass=3, **late), node(5, 1, 1, **late)]
        + [node(6, 1, 1, colorClass=1, **late)],
        edges((1, 2, 0), (2, 3, 0), (3, 4, 0), (4, 5, 0), (5, 6, 0)),
    )
    problem = problem_from_workload(content, "orphan")
    kernel = problem.kernels.index

    def offending(**device_of):
        devices = np.zeros(len(kernel), dtype=np.int64)
        for name, device in device_of.items():
            devices[kernel[name]] = problem.machine.index[device.replace("_", ":")]
        return contiguity(problem, devices)

    assert offending() == ()
    assert offending(node5="acc_1") == ("acc:0",)
    assert offending(node5="acc_1", node3="acc_1", node4="acc_1") == ()
    # A forward node between colour classes does the same; a backward node with a mate does not.
    assert offending(node2="acc_1") == ("acc:0",)


def naive_forward_pairs(problem):
    """Reachability (units, units) over forward mates, by matrix powers."""
    unit = problem.unit_of_kernel
    late = np.array([op.phase == "backward" for op in problem.kernels.ops])
    orphan = [bool(late[unit == u].all()) for u in range(problem.num_units)]
    step = np.eye(problem.num_units, dtype=bool)
    for tensor in problem.kernels.tensors:
        a = problem.kernels.index[tensor.producer]
        for b in (problem.kernels.index[c] for c in tensor.consumers):
            if not late[a] and not late[b]:
                step[unit[a], unit[b]] = True
            if late[a] and late[b] and (orphan[unit[a]] or orphan[unit[b]]):
                step[unit[b], unit[a]] = True
    return np.linalg.matrix_power(step.astype(np.int64), problem.num_units) > 0


@pytest.mark.parametrize("training", [False, True])
def test_contiguity_agrees_with_reachability(training):
    num_broken = 0
    for seed in range(150):
        problem = random_workload_problem(seed, num_nodes=9, training=training)
        units = np.array(random_devices(problem, seed))
        reach = naive_forward_pairs(problem)
        wanted = []
        for d, device in enumerate(problem.machine.devices):
            own = units == d
            between = reach[own].any(axis=0) & reach[:, own].any(axis=1) & ~own
            wanted += [device.name] if between.any() else []
        assert contiguity(problem, units[problem.unit_of_kernel]) == tuple(wanted), seed
        num_broken += bool(wanted)
    assert 20 < num_broken < 150


def held_bytes(problem, device_of_kernel):
    sizes = problem.kernels.arrays.param_bytes
    return np.bincount(device_of_kernel, sizes, minlength=problem.num_devices).tolist()


def test_memory_is_the_sum_of_sizes():
    content = workload([node(i, 1, 1, size=60) for i in (1, 2, 3)], edges((1, 2, 0)))
    problem = problem_from_workload(content, "sizes")
    devices = np.array([0, 2, 2])
    assert held_bytes(problem, devices) == [60, 0, 120]
    schedule = make_schedule(problem, problem.placement_of([1, 1, 2]))
    assert violations(problem, schedule) == ("Device 'acc:1' needs 120 B but has 100 B.",)


def test_a_split_colour_class_is_a_violation():
    content = workload([node(1, 1, 1, colorClass=7), node(2, 1, 1, colorClass=7)], [])
    problem = problem_from_workload(content, "class")
    apart = problem_from_workload(workload([node(1, 1, 1), node(2, 1, 1)], []), "class")
    schedule = make_schedule(apart, apart.placement_of([0, 1]))
    assert violations(problem, schedule) == ("The group of op 'node1' is split over devices.",)
    assert "not scheduled" in violations(problem, Schedule(schedule.segments[:1]))[0]


@pytest.mark.parametrize(
    ("name", "expert", "value_ms"),
    [
        ("layer_bert24_inference", "bert24_inference_expert", 20.084),
        ("layer_bert24_training", "bert24_training_expert", 49.405),
        ("layer_gnmt_inference", "gnmt_inference_expert", 46.209),
    ],
)
def test_the_experts_splits_have_their_published_loads(name, expert, value_ms):
    problem = shared_problem("throughput", name)
    split = json.loads(shared_file("experts", expert).read_text())
    devices = problem.kernel_devices(split_from_json(problem, split))
    assert max_load_s(problem, devices) == pytest.approx(value_ms * MS, rel=1e-4)
    held = zip(problem.machine.devices, held_bytes(problem, devices), strict=True)
    assert all(d.memory_bytes is None or size <= d.memory_bytes for d, size in held)
    assert contiguity(problem, devices) == ()


@pytest.mark.parametrize(
    ("name", "value_ms"),
    [
        ("layer_bert24_inference", 924.06),
        ("layer_gnmt_inference", 1824.35),
        ("op_bert3_inference", 1099.93),
        ("op_resnet50_inference", 6666.67),
    ],
)
def test_the_cpu_alone_has_its_published_latency(name, value_ms):
    problem = shared_problem("latency", name)
    assert latency_s(problem, []) == pytest.approx(value_ms * MS, rel=1e-4)
    cpu = problem.machine.index["cpu:0"]
    calls = calls_of(problem, np.full(len(problem.kernels.ops), cpu))
    assert latency_s(problem, calls) == pytest.approx(value_ms * MS, rel=1e-4)


def test_moving_a_kernel_changes_only_the_devices_that_it_touches():
    for seed in SEEDS:
        problem = random_workload_problem(seed, num_nodes=9)
        devices = devices_at_random(problem, seed)
        before = loads_s(problem, devices)
        moved = devices.copy()
        k = random.Random(seed).randrange(len(devices))
        moved[k] = 0
        near = {k, *problem.kernels.successors[k], *problem.kernels.predecessors[k]}
        near |= {r for p in problem.kernels.predecessors[k] for r in problem.kernels.successors[p]}
        touched = {problem.machine.devices[d].name for n in near for d in (devices[n], moved[n])}
        for name, load in loads_s(problem, moved).items():
            if name not in touched:
                assert load == before[name], seed
