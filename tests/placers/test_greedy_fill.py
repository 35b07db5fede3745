"""The greedy baseline against its published values, and on problems where its rule shows."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from placement import place
from placement.loaders.workload import problem_from_workload
from placement.placers.greedy_fill import (
    GreedyFill,
    _filling,
    _unit_successors,
    from_sinks,
    from_sources,
)
from placement.simulator.call_costs import max_load_s
from tests.instances import random_problem
from tests.thorough import either
from tests.workloads import edges, node, random_workload_problem, shared_problem, workload


@pytest.mark.parametrize(
    ("name", "value_ms"),
    [
        ("layer_bert24_inference", 100.219),
        ("layer_gnmt_inference", 268.5),
        ("op_bert3_inference", 416.204),
        ("op_resnet50_inference", 839.536),
    ],
)
def test_latency_as_published(name, value_ms):
    placed = place(shared_problem("latency", name), "greedy_fill")
    assert placed.value == pytest.approx(value_ms * 1e-3, rel=1e-5)
    assert placed.violations == ()


@pytest.mark.parametrize(
    ("name", "best_ms"),
    [("layer_bert24_inference", 17.714), ("layer_gnmt_training", 86.103)],
)
def test_throughput_is_feasible_and_not_below_the_bound(name, best_ms):
    problem = replace(shared_problem("throughput", name), objective="throughput")
    placed = place(problem, "greedy_fill")
    assert placed.violations == ()
    assert best_ms * 1e-3 <= placed.value <= 1.2 * best_ms * 1e-3


def chain(**limits):
    nodes = [node(i, 10, 1, size=4) for i in range(6)]
    return workload(nodes, edges(*((i, i + 1, 0) for i in range(5))), **limits)


def test_memory_is_filled_device_by_device_and_the_rest_goes_to_the_cpu():
    problem = problem_from_workload(chain(maxSizePerFPGA=8), "chain")
    placed = place(problem, "greedy_fill")
    assert placed.placement.ops_per_device() == {"acc:0": 2, "acc:1": 2, "cpu:0": 2}
    assert placed.value == pytest.approx(0.024)


def filled(problem, order, most_s, scale):
    """The rule as it is said, all devices looked at for every unit."""
    memory = problem.machine.places.weights
    size = np.zeros(problem.num_units)
    np.add.at(size, problem.unit_of_kernel, problem.kernels.arrays.resident_bytes)
    room, left_s = scale * problem.machine.limit_bytes, np.full(problem.num_devices, most_s)
    found, at_hand = {}, 0
    for unit in order:
        may = np.flatnonzero(problem.allowed[unit]).tolist()
        unit_s = problem.unit_s[unit]
        fits = [d for d in may if size[unit] <= room[memory[d]] and unit_s[d] <= left_s[d]]
        d = ([d for d in fits if d >= at_hand] or fits or may[-1:])[0]
        at_hand = max(at_hand, d) if at_hand in may else at_hand
        room[memory[d]] -= size[unit]
        left_s[d] -= unit_s[d]
        found[unit] = d
    return found


@pytest.mark.parametrize("memory_bytes", [60, 150, 1000])
@pytest.mark.parametrize("most_s", [15.0, 60.0, math.inf])
def test_devices_are_filled_one_after_another(memory_bytes, most_s):
    for seed in range(12):
        problem = random_problem(seed, num_ops=24, num_devices=4, with_gaps=seed % 2 == 0)
        devices = tuple(replace(d, memory_bytes=memory_bytes) for d in problem.machine.devices)
        problem = replace(problem, machine=replace(problem.machine, devices=devices))
        order = from_sources(problem, _unit_successors(problem))
        ways = {e.unit: e.device for e in _filling(problem, order, most_s, 0.9)}
        assert ways == filled(problem, order, most_s, 0.9)


def test_load_is_shared():
    problem = problem_from_workload(chain(), "chain")
    placed = place(replace(problem, objective="throughput"), "greedy_fill")
    assert placed.placement.ops_per_device() == {"acc:0": 3, "acc:1": 3}
    assert placed.value == pytest.approx(0.003)


def test_orders_are_topological_where_units_have_no_cycle():
    for seed in range(40):
        problem = random_workload_problem(seed, num_nodes=12, training=True)
        single = replace(
            problem,
            graph=replace(
                problem.graph,
                ops=tuple(replace(op, colocation_group=None) for op in problem.graph.ops),
            ),
        )
        after = _unit_successors(single)
        for order in (from_sources(single, after), from_sinks(single, after)):
            position = {u: i for i, u in enumerate(order)}
            assert len(position) == single.num_units, seed
            assert all(position[u] < position[v] for u, a in enumerate(after) for v in a), seed


@pytest.mark.thorough
def test_memory_holds_wherever_a_cpu_takes_the_rest():
    for seed in range(either(16, 40)):
        problem = random_workload_problem(seed, num_nodes=10, training=seed % 2 == 1)
        tight = replace(
            problem,
            machine=replace(
                problem.machine,
                devices=tuple(
                    d if d.on_host else replace(d, memory_bytes=9) for d in problem.machine.devices
                ),
            ),
            objective="throughput",
        )
        placed = place(tight, "greedy_fill")
        assert placed.violations == (), seed
        devices = tight.kernel_devices(placed.placement)
        cpu = np.full(len(devices), tight.machine.index["cpu:0"])
        assert max_load_s(tight, devices) <= max_load_s(tight, cpu) + 1e-12, seed


def test_each_step_says_why_the_device_at_hand_did_or_did_not_take_it():
    """What may not run on the device at hand closes nothing; what has no room closes it."""
    content = chain(maxSizePerFPGA=12)
    content["nodes"][1]["supportedOnFpga"] = False
    steps = GreedyFill().steps(problem_from_workload(content, "chain"), 100)
    said = [(step.focus, step.why) for step in steps if " at hand" in step.why]
    assert [why.partition(" ")[0] for _, why in said].count("acc:0,") == 2
    whole = " ".join(why for _, why in said)
    assert re.search(r"acc:0, which is at hand, may not run .*?, so it goes to cpu:0\.", whole)
    assert re.search(r"acc:0, which is at hand, has no room for .*?, so it goes to acc:1\.", whole)
    assert len(re.findall(r"goes to acc:0, which is at hand and has room for it", whole)) == 3
