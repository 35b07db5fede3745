"""What-if conditions against their definitions, on random problems and small ones by hand."""

import dataclasses
import json

import numpy as np
import pytest

from placement import place, simulate
from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine
from placement.core.placement import Placement
from placement.core.problem import Problem, own_kernels
from placement.core.violations import violations
from placement.costs.what_if import UNCHANGED, Conditions, conditions_from_json, what_if
from placement.loaders.workload import problem_from_workload
from tests.instances import random_problem
from tests.workloads import diamond

SEEDS = range(6)


def everything_on(problem: Problem, device: str) -> Placement:
    return Placement(
        problem.graph.fingerprint, "any", {op.name: device for op in problem.graph.ops}
    )


def lone_device(execution: str = "segment") -> Problem:
    """Three kernels of 1, 2 and 4 s in a chain on the one device, whose calls take 0.5 s."""
    ops = tuple(Op(name, "op", param_bytes=100) for name in "abc")
    tensors = (Tensor("ab", "a", ("b",), 10), Tensor("bc", "b", ("c",), 10))
    graph = Graph("chain", ops, tensors)
    none = np.zeros((1, 1))
    costs = Costs(np.array([[1.0], [2.0], [4.0]]), np.array([0.5]), none, none, "measured")
    machine = Machine("one", (Device("cpu:0", memory_bytes=1000),))
    return Problem(graph, machine, costs, graph, own_kernels(graph), execution=execution)


def two_devices() -> Problem:
    """a on one device, b on the other: 1 s, then 1000 bytes over a link of 2 s + 1 s, then 4 s."""
    ops = (Op("a", "op"), Op("b", "op"))
    graph = Graph("pair", ops, (Tensor("ab", "a", ("b",), 1000),))
    away = 1.0 - np.eye(2)
    costs = Costs(
        np.array([[1.0, np.inf], [np.inf, 4.0]]), np.zeros(2), away * 2.0, away * 1e-3, "given"
    )
    links = tuple(Link(s, d, 2.0, 1e3) for s, d in (("cpu:0", "cpu:1"), ("cpu:1", "cpu:0")))
    machine = Machine("two", (Device("cpu:0"), Device("cpu:1")), links)
    return Problem(graph, machine, costs, graph, own_kernels(graph), execution="op")


THERE, BACK = ("cpu:0", "cpu:1"), ("cpu:1", "cpu:0")
SPLIT = Placement("", "two", {"a": "cpu:0", "b": "cpu:1"})


def step_s(problem: Problem, conditions: Conditions) -> float:
    return simulate(what_if(problem, conditions), SPLIT).value


@pytest.mark.parametrize("seed", SEEDS)
def test_factors_of_one_are_the_problem_itself(seed):
    problem = random_problem(seed)
    names = [d.name for d in problem.machine.devices]
    limits = {d.name: d.memory_bytes for d in problem.machine.devices}
    assert what_if(problem, UNCHANGED) is problem
    assert what_if(problem, Conditions(dict.fromkeys(names, 1.0), 1.0, 1.0, limits)) is problem


@pytest.mark.parametrize("execution", ["op", "segment"])
def test_half_the_speed_of_the_only_device_doubles_the_step(execution):
    problem = lone_device(execution)
    placement = everything_on(problem, "cpu:0")
    before = simulate(problem, placement).value
    assert before == 7.0 + 0.5 * (3 if execution == "op" else 1)
    slow = what_if(problem, Conditions({"cpu:0": 0.5}))
    assert simulate(slow, placement).value == 2 * before
    assert slow.costs.compute_s.tolist() == [[2.0], [4.0], [8.0]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_everything_as_many_times_as_fast_divides_every_step(seed, factor):
    problem = random_problem(seed)
    placement = place(problem, "heft").placement
    names = [d.name for d in problem.machine.devices]
    fast = what_if(problem, Conditions(dict.fromkeys(names, factor), factor, 1.0 / factor))
    expected = simulate(problem, placement).value / factor
    assert simulate(fast, placement).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_named_device_changes(seed):
    problem = random_problem(seed)
    name = problem.machine.devices[-1].name
    changed = what_if(problem, Conditions({name: 4.0}))
    before, after = problem.costs.compute_s, changed.costs.compute_s
    assert (after[:, :-1] == before[:, :-1]).all()
    assert (after[:, -1] == before[:, -1] / 4.0).all()
    assert (changed.costs.latency_s == problem.costs.latency_s).all()
    assert (changed.allowed == problem.allowed).all()


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (Conditions(), 1 + 2 + 1 + 4),
        (Conditions(bandwidth=0.5), 1 + 2 + 2 + 4),
        (Conditions(latency=4.0), 1 + 8 + 1 + 4),
        (Conditions({"cpu:1": 4.0}, bandwidth=2.0, latency=0.5), 1 + 1 + 0.5 + 1),
        (Conditions(link_bandwidth={THERE: 0.5}, link_latency={THERE: 4.0}), 1 + 8 + 2 + 4),
        (Conditions(link_bandwidth={BACK: 0.5}, link_latency={BACK: 4.0}), 1 + 2 + 1 + 4),
        (Conditions(bandwidth=0.5, link_bandwidth={THERE: 2.0}), 1 + 2 + 0.5 + 4),
        (Conditions(bandwidth=0.5, latency=4.0, link_bandwidth={THERE: 1.0}), 1 + 8 + 1 + 4),
    ],
)
def test_links_and_devices_by_hand(conditions, expected):
    assert step_s(two_devices(), conditions) == expected


def test_the_machine_states_the_changed_links():
    machine = what_if(two_devices(), Conditions(bandwidth=0.5, latency=4.0)).machine
    assert {(link.latency_s, link.bytes_per_s) for link in machine.links} == {(8.0, 500.0)}
    assert machine.name != "two"
    machine = what_if(two_devices(), Conditions(link_bandwidth={BACK: 2.0}, latency=0.5)).machine
    stated = {(link.src, link.dst): (link.latency_s, link.bytes_per_s) for link in machine.links}
    assert stated == {THERE: (1.0, 1e3), BACK: (1.0, 2e3)}


def test_a_link_like_all_others_is_no_condition_of_its_own():
    problem = two_devices()
    assert what_if(problem, Conditions(link_bandwidth={THERE: 1.0})) is problem
    same = what_if(problem, Conditions(bandwidth=2.0, link_bandwidth={THERE: 2.0}))
    assert same.fingerprint == what_if(problem, Conditions(bandwidth=2.0)).fingerprint


def test_a_memory_limit_is_checked_and_lifted():
    problem = lone_device()
    placement = everything_on(problem, "cpu:0")

    def broken(limit: int | None) -> tuple[str, ...]:
        changed = what_if(problem, Conditions(memory_bytes={"cpu:0": limit}))
        return violations(changed, simulate(changed, placement).schedule)

    assert "has 200" in broken(200)[0]
    assert broken(1000) == broken(None) == ()


def test_times_that_were_measured_are_measured_no_more():
    problem = lone_device()
    assert what_if(problem, Conditions({"cpu:0": 2.0})).costs.origin == "given"
    assert what_if(problem, Conditions(memory_bytes={"cpu:0": 500})).costs.origin == "measured"
    estimated = dataclasses.replace(
        problem, costs=dataclasses.replace(problem.costs, origin="analytic")
    )
    assert what_if(estimated, Conditions({"cpu:0": 2.0})).costs.origin == "analytic"


def test_a_workload_with_faster_accelerators():
    """One call of 1 + 2 + 3 + 4 ms on the accelerator; at twice the speed it takes half of it."""
    problem = problem_from_workload(diamond(), "small")
    placement = everything_on(problem, "acc:0")
    assert simulate(problem, placement).value == pytest.approx(0.010)
    fast = what_if(problem, Conditions({"acc:0": 2.0}))
    assert simulate(fast, placement).value == pytest.approx(0.005)
    assert fast.unit == "ms"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_fingerprint_tells_problems_apart(seed):
    problem = random_problem(seed)
    name = problem.machine.devices[0].name
    others = [
        what_if(problem, Conditions({name: 2.0})),
        what_if(problem, Conditions(memory_bytes={name: 1})),
        dataclasses.replace(problem, objective="throughput"),
        dataclasses.replace(problem, pins=((problem.graph.ops[0].name, name),)),
    ]
    assert dataclasses.replace(problem).fingerprint == problem.fingerprint
    assert len({problem.fingerprint, *(o.fingerprint for o in others)}) == 5


def test_conditions_survive_json():
    limits = {"cpu:0": None, "cpu:1": 64}
    conditions = Conditions({"cpu:0": 0.5}, 2.0, 3.0, limits, {THERE: 0.1}, {BACK: 4.0, THERE: 2.0})
    assert conditions_from_json(json.loads(json.dumps(conditions.to_json()))) == conditions
    assert conditions_from_json({}) == UNCHANGED
    bad_links = [{"links": links} for links in (3, [3], [{"src": "a", "bandwidth": 2}])]
    for bad in (
        None,
        [],
        {"speed": 3},
        {"bandwidth": None},
        {"memory_bytes": {"a": "x"}},
        *bad_links,
    ):
        with pytest.raises(ValueError, match="conditions are not understood"):
            conditions_from_json(bad)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Conditions({"cpu:0": 0.0}), "more than zero"),
        (lambda: Conditions(bandwidth=-1.0), "more than zero"),
        (lambda: Conditions(latency=float("nan")), "more than zero"),
        (lambda: Conditions(memory_bytes={"cpu:0": -1}), "number of bytes"),
        (lambda: what_if(lone_device(), Conditions({"gpu": 2.0})), "no device 'gpu'"),
        (lambda: Conditions(link_latency={THERE: 0.0}), "latency of the link 'cpu:0' to 'cpu:1'"),
        (
            lambda: what_if(two_devices(), Conditions(link_latency={("cpu:0", "x"): 2.0})),
            "no device 'x'",
        ),
        (
            lambda: what_if(two_devices(), Conditions(link_latency={("cpu:0", "cpu:0"): 2.0})),
            "no link from 'cpu:0' to 'cpu:0'",
        ),
    ],
)
def test_conditions_that_make_no_sense_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
