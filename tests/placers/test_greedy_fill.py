"""The greedy baseline against its published values, and on problems where its rule shows."""

import re
from dataclasses import replace

import numpy as np
import pytest

from placement import place
from placement.loaders.workload import problem_from_workload
from placement.placers.greedy_fill import GreedyFill, _unit_successors, from_sinks, from_sources
from placement.simulator.call_costs import max_load_s
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


def test_memory_holds_wherever_a_cpu_takes_the_rest():
    for seed in range(40):
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
