"""Workload files: what becomes of them, and files that must be refused in one clear sentence."""

import copy
import json
import math
from collections import Counter

import numpy as np
import pytest

from placement import make_problem, place
from placement.loaders import load, loader_for
from placement.loaders.workload import problem_from_workload
from tests.workloads import (
    diamond,
    edges,
    node,
    random_workload,
    shared_file,
    shared_problem,
    workload,
)


@pytest.fixture
def opened(tmp_path):
    def write_and_load(content):
        path = tmp_path / "small.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return load(str(path))

    return write_and_load


def refused(content, opened, *parts):
    with pytest.raises(ValueError) as error:
        opened(content)
    message = str(error.value)
    assert type(error.value) is ValueError
    assert "small.json" in message and message.endswith(".") and len(message) < 400, message
    assert "\n" not in message
    for part in parts:
        assert part in message, message


def changed(**fields):
    """The diamond with fields set by "nodes__0__size" and the like; an Ellipsis removes one."""
    content = copy.deepcopy(diamond())
    for path, value in fields.items():
        *way, last = [int(p) if p.isdigit() else p for p in path.split("__")]
        at = content
        for step in way:
            at = at[step]
        if value is ...:
            del at[last]
        else:
            at[last] = value
    return content


def test_a_small_file_by_hand(opened):
    content = workload(
        [
            node(5, 40, 4, 8, name="loss", colorClass=2),
            node(3, 10, 1, 16.5, name="first", colorClass=2),
            node(9, 20, 2, 4, name="grad", isBackwardNode=1, supportedOnFpga=0, colorClass=7),
        ],
        edges((3, 5, 0.25), (3, 9, 0.25), (5, 9, 1)),
        maxSizePerFPGA=64,
        maxCPUs=2,
    )
    model = opened(content)
    problem = model.problem
    ops, tensors = model.graph.ops, model.graph.tensors
    assert [(op.name, op.phase, op.param_bytes, op.colocation_group) for op in ops] == [
        ("first", "forward", 16.5, "2"),
        ("loss", "forward", 8, "2"),
        ("grad", "backward", 4, None),
    ]
    assert [op.attributes for op in ops] == [(("id", "3"),), (("id", "5"),), (("id", "9"),)]
    assert [(t.producer, t.consumers) for t in tensors] == [
        ("first", ("loss", "grad")),
        ("loss", ("grad",)),
    ]
    devices = problem.machine.devices
    assert [d.name for d in devices] == ["acc:0", "acc:1", "cpu:0", "cpu:1"]
    assert [d.on_host for d in devices] == [False, False, True, True]
    assert [d.memory_bytes for d in devices] == [64, 64, None, None]
    times_s = [[1e-3, 1e-3, 0.01, 0.01], [4e-3, 4e-3, 0.04, 0.04], [math.inf] * 2 + [0.02] * 2]
    np.testing.assert_allclose(problem.costs.compute_s, times_s)
    for src, dst, wanted in ((0, 2, 0.25e-3), (3, 1, 0.25e-3), (0, 1, 0.25e-3), (2, 3, 0.0)):
        assert problem.costs.transfer_s(src, dst, tensors[0].num_bytes) == pytest.approx(wanted)
    assert (problem.unit, problem.execution, problem.memory_model) == ("ms", "call", "sum")
    assert problem.costs.origin == "given" and model.executable is None
    assert make_problem(model, problem.machine, objective="throughput").unit == "ms"


@pytest.mark.parametrize("names", [["a", "a"], ["a", None], ["a", ""]])
def test_names_that_do_not_tell_nodes_apart_give_way_to_ids(names, opened):
    nodes = [node(i, 1, 1, name=name) for i, name in zip((4, 2), names, strict=True)]
    assert [op.name for op in opened(workload(nodes, [])).graph.ops] == ["node4", "node2"]


def test_two_edges_between_the_same_nodes_are_one(opened):
    content = workload([node(1, 1, 1), node(2, 1, 1)], edges((1, 2, 3), (1, 2, 3)))
    assert [t.consumers for t in opened(content).graph.tensors] == [("node2",)]


def test_the_same_file_gives_the_same_graph_in_any_order_of_edges():
    content = random_workload(3, num_nodes=12)
    first = problem_from_workload(content, "w")
    assert problem_from_workload(content, "w").graph.fingerprint == first.graph.fingerprint
    content["edges"].reverse()
    again = problem_from_workload(content, "w")
    assert again.graph.index == first.graph.index
    np.testing.assert_array_equal(again.costs.compute_s, first.costs.compute_s)


def test_edges_of_one_node_cost_the_same(opened):
    refused(changed(edges__1__cost=2.0), opened, "node 1", "1.0", "2.0", "one output")


@pytest.mark.parametrize("key", ["id", "supportedOnFpga", "cpuLatency", "fpgaLatency", "size"])
def test_nodes_say_what_is_needed(key, opened):
    refused(changed(**{f"nodes__1__{key}": ...}), opened, key, "None")


def test_what_no_accelerator_runs_needs_no_time_there(opened):
    content = changed(nodes__1__supportedOnFpga=False, nodes__1__fpgaLatency=...)
    assert np.isinf(opened(content).problem.costs.compute_s[1, :2]).all()


@pytest.mark.parametrize("key", ["maxSizePerFPGA", "maxFPGAs", "maxCPUs"])
def test_files_say_what_the_machine_has(key, opened):
    refused(changed(**{key: ...}), opened, key)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 1e300, "3", None, True, [1], 10**400])
@pytest.mark.parametrize(
    "path", ["nodes__2__size", "nodes__2__cpuLatency", "nodes__2__fpgaLatency", "edges__2__cost"]
)
def test_numbers_that_are_none(path, value, opened):
    refused(changed(**{path: value}), opened, path.rpartition("__")[2])


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"nodes": []}, ["no nodes"]),
        ({"nodes": {}}, ["nodes", "not a list"]),
        ({"nodes": [1]}, ["nodes", "not a list of objects"]),
        ({"edges": ...}, ["edges", "not a list"]),
        ({"edges": ["1-2"]}, ["edges", "not a list of objects"]),
        ({"nodes__0__id": 2}, ["two nodes", "id 2"]),
        ({"nodes__0__id": "1"}, ["'1'", "whole number"]),
        ({"nodes__0__id": True}, ["True", "whole number"]),
        ({"edges__0__sourceId": 77}, ["edge 0", "sourceId", "77"]),
        ({"edges__3__destId": None}, ["edge 3", "destId", "None"]),
        ({"edges__0__destId": 1}, ["cycle", "node 1"]),
        ({"nodes__0__colorClass": {}}, ["node 1", "colorClass"]),
        ({"nodes__0__isBackwardNode": "no"}, ["node 1", "isBackwardNode", "'no'"]),
        ({"nodes__0__supportedOnFpga": 2}, ["node 1", "supportedOnFpga", "2"]),
        ({"maxFPGAs": 1e9}, ["1000000000 accelerators", "256"]),
        ({"maxCPUs": 257}, ["257 CPUs", "256"]),
        ({"maxFPGAs": 1.5}, ["maxFPGAs", "1.5"]),
        ({"maxFPGAs": 0, "maxCPUs": 0}, ["0 accelerators and 0 CPUs"]),
        ({"nodes__0__supportedOnFpga": False, "maxCPUs": 0}, ["No device may run", "'node1'"]),
    ],
)
def test_wrong_files(fields, parts, opened):
    refused(changed(**fields), opened, *parts)


def test_a_cycle_is_named_by_a_node_on_it(opened):
    """2 -> 3 -> 4 -> 2 with 1 before it and 5 after it."""
    nodes = [node(i, 1, 1) for i in (5, 1, 2, 3, 4)]
    content = workload(nodes, edges((1, 2, 0), (2, 3, 0), (3, 4, 0), (4, 2, 0), (4, 5, 0)))
    with pytest.raises(ValueError, match=r"cycle through node [234];"):
        opened(content)


def test_the_loader_knows_its_files(tmp_path, opened):
    path = tmp_path / "small.json"
    opened(diamond())
    assert loader_for(path).name == "workload"
    with pytest.raises(ValueError, match="no symbolic dimensions"):
        load(str(path), {"batch": 4})


def test_values_are_stated_in_the_files_unit(opened):
    """All on one accelerator: 1 + 2 + 3 + 4 ms, and inside the program seconds."""
    problem = opened(diamond()).problem
    placed = place(problem, "manual", settings={"default": "acc:0"})
    assert placed.value == pytest.approx(0.010) and placed.unit == "ms"
    assert placed.violations == ()


@pytest.mark.parametrize(
    "name", ["layer_bert24_training", "op_bert3_training", "layer_resnet50_inference"]
)
def test_files_of_the_literature(name):
    problem = shared_problem("throughput", name)
    content = json.loads(shared_file("throughput", name).read_text())
    by_id = {dict(op.attributes)["id"]: op for op in problem.graph.ops}
    colours = Counter(row.get("colorClass") for row in content["nodes"])
    assert len(by_id) == len(content["nodes"])
    for row in content["nodes"]:
        op = by_id[str(row["id"])]
        assert (op.phase == "backward") == bool(row["isBackwardNode"])
        alone = row.get("colorClass") is None or colours[row["colorClass"]] == 1
        assert (op.colocation_group is None) == alone
        times_s = problem.costs.compute_s[problem.graph.index[op.name]]
        assert times_s[0] == pytest.approx(row["fpgaLatency"] * 1e-3)
        assert times_s[-1] == pytest.approx(row["cpuLatency"] * 1e-3)
    made = {t.producer: t for t in problem.graph.tensors}
    for row in content["edges"]:
        tensor = made[by_id[str(row["sourceId"])].name]
        assert by_id[str(row["destId"])].name in tensor.consumers
        assert problem.costs.transfer_s(0, 1, tensor.num_bytes) == pytest.approx(row["cost"] * 1e-3)
