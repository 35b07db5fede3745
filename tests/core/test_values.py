"""Core values: checked where they are made, hashed by content, the same after JSON."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.core.decoding import decode
from placement.core.graph import Graph, Op, Tensor, graph_to_json
from placement.core.machine import Device, Link, Machine, link_arrays, machine_from_json
from placement.core.placement import Placement, placement_from_json
from placement.core.problem_json import problem_from_json, problem_to_json
from placement.core.profile import Profile, profile_from_json
from placement.core.schedule import Schedule
from placement.core.timeline import Timeline
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import simulate
from tests.instances import canonical_file, random_devices, random_problem


def through_json(content):
    return json.loads(json.dumps(content, allow_nan=False))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(1, 4), st.booleans())
def test_values_survive_json(seed, num_ops, num_devices, groups):
    problem = random_problem(
        seed, num_ops=num_ops, num_devices=num_devices, execution="op", with_groups=groups
    )
    graph = problem.graph
    assert decode(through_json(graph_to_json(graph)), Graph) == graph
    assert machine_from_json(through_json(problem.machine.to_json())) == problem.machine
    placement = problem.placement_of(random_devices(problem, seed), range(num_ops))
    assert placement_from_json(through_json(placement.to_json())) == placement
    schedule = make_schedule(problem, placement)
    assert decode(through_json(schedule.to_json()), Schedule) == schedule
    timeline = simulate(problem, schedule)
    assert decode(through_json(timeline.to_json()), Timeline) == timeline


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(2, 4), st.booleans())
def test_a_problem_file_written_and_read_is_the_same(seed, num_ops, num_devices, groups):
    problem = random_problem(
        seed, num_ops=num_ops, num_devices=num_devices, with_groups=groups, with_gaps=True
    )
    first = through_json(problem_to_json(problem))
    again = problem_from_json(first, "again")
    assert problem_to_json(again) == first
    assert (again.costs.compute_s == problem.costs.compute_s).all()
    assert (again.costs.latency_s == problem.costs.latency_s).all()
    assert (again.unit_of_kernel == problem.unit_of_kernel).all()


def test_the_canonical_file_is_written_back_as_it_was():
    content = canonical_file()
    assert problem_to_json(problem_from_json(content, "canonical")) == content


def test_a_profile_survives_json_and_gives_costs():
    problem = random_problem(5, num_ops=6)
    profile = Profile(
        graph=problem.graph.fingerprint,
        machine=problem.machine,
        kernels=problem.kernels,
        sources=tuple((op.name,) for op in problem.graph.ops),
        compute_s=tuple(((1.0 + i, None) if i == 2 else (1.0, 2.0)) for i in range(6)),
        spread=((0.1, 0.2),) * 6,
        call_s=(0.5, 0.25),
        step_s=(7.0, None),
        contention=0.125,
        measured_at="2026-01-01T00:00:00+00:00",
    )
    assert profile_from_json(through_json(profile.to_json())) == profile
    costs = profile.costs()
    assert costs.compute_s[2].tolist() == [3.0, float("inf")]
    assert costs.transfer_s(0, 1, 10) == pytest.approx(
        problem.machine.links[0].latency_s + 10 / problem.machine.links[0].bytes_per_s
    )
    assert profile.coverage == pytest.approx(11 / 12)


def test_fingerprints_follow_content_and_nothing_else():
    graph = random_problem(1).graph
    assert replace(graph, name="other").fingerprint == graph.fingerprint
    changed = (replace(graph.ops[0], kind="Gemm"), *graph.ops[1:])
    assert replace(graph, ops=changed).fingerprint != graph.fingerprint
    program = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.instances import random_problem\n"
        "p = random_problem(1); print(p.graph.fingerprint, p.machine.fingerprint)"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "5")
    }
    assert len(answers) == 1
    assert graph.fingerprint in answers.pop()


def test_machine_fingerprints_ignore_measured_numbers():
    machine = random_problem(1).machine
    faster = tuple(replace(link, latency_s=link.latency_s / 2) for link in machine.links)
    assert replace(machine, links=faster).fingerprint == machine.fingerprint
    newer = replace(machine, libraries=(("onnxruntime", "9.9"),))
    assert newer.fingerprint != machine.fingerprint


def make_graph(ops, tensors):
    return Graph("g", ops, tensors)


A, B = Op("a", "X"), Op("b", "X")
LINK = {"src": "P1", "dst": "P2", "latency_s": 0.0, "bytes_per_s": 1.0}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Op("", "X"), "empty name"),
        (lambda: Op("a", "X", phase="sideways"), "phase 'sideways'"),
        (lambda: Tensor("t", "a", ("b", "b"), 1), "twice"),
        (lambda: Tensor("t", "a", (), -1), "-1 bytes"),
        (lambda: make_graph((A, A), ()), "two ops named 'a'"),
        (lambda: make_graph((A,), (Tensor("t", "z", (), 1),)), "'z', which is not an op"),
        (lambda: make_graph((A, B), (Tensor("t", "b", ("a",), 1),)), "topological order"),
        (lambda: Machine("m", ()), "no devices"),
        (lambda: Machine("m", (Device("d"), Device("d"))), "twice"),
        (lambda: Machine("m", (Device("d"),), (Link("d", "e", 0, 1),)), "'e', which is not"),
        (lambda: Link("a", "b", -1, 1), "latency_s -1"),
        (lambda: Link("a", "b", 0, 0), "bytes_per_s 0"),
        (lambda: link_arrays(Machine("m", (Device("d"), Device("e")))), "no link from 'd' to 'e'"),
        (lambda: placement_from_json([]), "device_of"),
        (lambda: placement_from_json({"device_of": {"a": 3}}), "op 'a' the device 3"),
        (lambda: placement_from_json({"device_of": {}, "machin": "m"}), "unknown field 'machin'"),
        (lambda: machine_from_json({}), "devices"),
        (lambda: machine_from_json({"devices": [{"name": "d"}], "link": []}), "field 'link'"),
        (
            lambda: machine_from_json({"devices": [{"name": "d"}, {"name": "e", "speed": 1}]}),
            "devices[1]: object contains unknown field 'speed'",
        ),
        (lambda: problem_from_json(broken(ops_=[]), "p"), "unknown field 'ops_'"),
        (
            lambda: problem_from_json(broken(links=[{**LINK, "rate": 1}]), "p"),
            "links[0]: object contains unknown field 'rate'; docs/teaching.md shows one.",
        ),
        (lambda: profile_from_json({}), "placement-profile"),
    ],
)
def test_wrong_values_are_refused_with_one_sentence(make, words):
    with pytest.raises(ValueError, match=r".") as caught:
        make()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def broken(**changes):
    return {**canonical_file(), **changes}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "not a problem file"),
        (broken(devices=[]), "lists no devices"),
        (broken(ops="x"), "ops: expected a list, got a text"),
        (broken(ops=[{"name": "a", "times_s": [1]}]), "list of 3 times"),
        (broken(ops=[{"name": "a", "times_s": [1, -1, 2]}]), "-1"),
        (broken(link_contention="no"), "link_contention"),
        (broken(execution="magic"), "'magic'"),
        (broken(tensors=[{"producer": "q", "consumers": [], "bytes": 1}]), "'q'"),
        (
            broken(tensors=[{"producer": "n1", "consumers": ["n1"], "bytes": 1}]),
            "cycle",
        ),
        (
            broken(ops=[{"name": "a", "times_s": [None] * 3}], tensors=[]),
            "No device may run op 'a'",
        ),
    ],
)
def test_wrong_problem_files_are_refused_with_one_sentence(content, words):
    with pytest.raises(ValueError, match=r".") as caught:
        problem_from_json(content, "file")
    assert words in str(caught.value)


def test_a_placement_that_does_not_fit_is_refused_by_name():
    problem = random_problem(1, num_ops=6, with_groups=False)
    whole = dict.fromkeys((f"op{i}" for i in range(6)), "d0")

    def refused(words, device_of, graph=""):
        with pytest.raises(ValueError, match=r".") as caught:
            problem.kernel_devices(Placement(graph, "m", device_of))
        assert words in str(caught.value)

    refused("another graph", whole, "0123")
    refused("'op3' no device", {k: v for k, v in whole.items() if k != "op3"})
    refused("'tpu'", {**whole, "op2": "tpu"})
    refused("op 'extra'", {**whole, "extra": "d0"})
    grouped = replace(problem, groups=(("op1", "op4"),))
    with pytest.raises(ValueError, match="'op1' and 'op4' run as one"):
        grouped.kernel_devices(Placement("", "m", {**whole, "op4": "d1"}))


def test_a_link_s_overhead_is_a_share_and_stands_where_there_is_one():
    link = Link("a", "b", 1.0, 2.0, send_overhead=0.25, receive_overhead=0.5)
    machine = Machine("m", (Device("a"), Device("b")), (link, Link("b", "a", 1.0, 2.0)))
    told = machine.to_json()["links"]
    assert (told[0]["send_overhead"], told[0]["receive_overhead"]) == (0.25, 0.5)
    assert not {"send_overhead", "receive_overhead"} & set(told[1])
    assert machine_from_json(json.loads(json.dumps(machine.to_json()))) == machine
    assert machine.overheads.tolist() == [[[0.0, 0.25], [0.0, 0.0]], [[0.0, 0.5], [0.0, 0.0]]]
    for wrong in (-0.1, 0.6, 1.1, float("nan")):
        with pytest.raises(ValueError, match="together 0 to 1"):
            replace(link, send_overhead=wrong)
        with pytest.raises(ValueError, match="together 0 to 1"):
            replace(link, send_overhead=0.6, receive_overhead=wrong)


def test_an_overhead_makes_another_problem_and_none_keeps_the_fingerprint():
    problem = random_problem(3)
    held_up = np.zeros((2, 2, 2))
    held_up[1, 0, 1] = 0.5
    other = replace(problem, costs=replace(problem.costs, overhead=held_up))
    same = replace(problem, costs=replace(problem.costs, overhead=np.zeros((2, 2, 2))))
    assert other.fingerprint != problem.fingerprint == same.fingerprint
    with pytest.raises(ValueError, match="use 0 to 1"):
        replace(problem.costs, overhead=2 * held_up + 1)
