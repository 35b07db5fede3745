"""The placers over splits, from problem to placement, by the project's own evaluators."""

from dataclasses import replace

import numpy as np
import pytest

from placement import place, simulate
from placement.bounds.lower_bound import split_bound_s
from placement.loaders.workload import problem_from_workload
from placement.placers import placer_class
from placement.schedule.calls import make_call_schedule
from placement.splits.exact.branch_calls import CallBranchSearch
from placement.splits.model.instance import from_problem
from tests.contiguity import contiguity
from tests.instances import random_problem
from tests.thorough import either

PLACERS = ("ideals_dp", "linear_dp", "annealing_split")


def workload(seed, *, training=False, limit=1e9, num_accelerators=2, num_cpus=1, unsupported=()):
    """A workload file's content: a random graph of 14 nodes with colour classes."""
    rng = np.random.default_rng(seed)
    nodes = [
        {
            "id": i,
            "supportedOnFpga": int(i not in unsupported),
            "cpuLatency": float(rng.uniform(2, 20)),
            "fpgaLatency": float(rng.uniform(0.5, 2)),
            "isBackwardNode": int(training and i >= 7),
            "colorClass": int(i % 7 if training else i // 2),
            "size": float(rng.integers(1, 5)),
        }
        for i in range(14)
    ]
    edges = []
    for i in range(13):
        cost = float(rng.uniform(0.1, 1.0))
        targets = {i + 1} | {int(j) for j in rng.integers(i + 1, 14, 1)}
        edges += [{"sourceId": i, "destId": j, "cost": cost} for j in sorted(targets)]
    return {
        "maxSizePerFPGA": limit,
        "maxFPGAs": num_accelerators,
        "maxCPUs": num_cpus,
        "nodes": nodes,
        "edges": edges,
    }


def problem(seed, objective, **content):
    return replace(problem_from_workload(workload(seed, **content), "w"), objective=objective)


def settings(name):
    return {"max_iterations": 20_000, "chains": 1} if name == "annealing_split" else {}


def built(name, **changes):
    return placer_class(name)(**(settings(name) | changes))


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLACERS)
@pytest.mark.parametrize("training", [False, True])
def test_throughput_placements_are_valid_and_not_below_the_bound(name, training):
    for seed in range(either(4, 8)):
        given = problem(seed, "throughput", training=training, limit=24.0)
        placed = place(given, name, settings=settings(name))
        assert placed.violations == (), (name, seed)
        assert placed.value >= split_bound_s(given) * (1 - 1e-9), (name, seed)
        if name != "annealing_split":
            devices = given.kernel_devices(placed.placement)
            assert contiguity(given, devices) == (), (name, seed)


def test_reported_value_is_the_evaluators():
    heard = []
    for name in PLACERS:
        given = problem(3, "throughput")
        placement = built(name).place(given, lambda p: not heard.append(p))
        assert heard[-1].best_s == pytest.approx(simulate(given, placement).value), name


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["linear_dp", "annealing_split"])
def test_latency_placements_are_valid_and_not_below_the_bound(name):
    for seed in range(either(4, 8)):
        given = problem(seed, "latency", limit=20.0)
        placed = place(given, name, settings=settings(name))
        assert placed.violations == (), (name, seed)
        assert placed.value >= split_bound_s(given) * (1 - 1e-9), (name, seed)
        on_cpu = sum(given.costs.compute_s[:, -1])
        assert placed.value <= on_cpu, (name, seed)


@pytest.mark.thorough
def test_more_calls_are_never_worse():
    better = 0
    for seed in range(either(5, 12)):
        given = problem(seed, "latency", num_accelerators=1, limit=40.0, unsupported=(6, 7))
        values = []
        for calls in (1, 2, 3):
            chosen = settings("annealing_split") | {"calls": calls, "max_iterations": calls * 9000}
            placed = place(given, "annealing_split", settings=chosen)
            assert placed.violations == (), seed
            count = sum(
                segment.device.startswith("acc")
                for segment in make_call_schedule(given, placed.placement).segments
            )
            assert count <= calls, seed
            values.append(placed.value)
        assert values[1] <= values[0] * (1 + 1e-9), seed
        better += values[2] < values[0] * (1 - 1e-6)
    assert better > 0


@pytest.mark.thorough
def test_several_calls_are_exact_and_run_as_they_were_found():
    """Value, bound and schedule of up to two calls each, against branch and bound on its own."""
    saved = 0
    for seed in range(either(5, 12)):
        content = workload(seed, num_accelerators=1, limit=40.0, unsupported=(6, 7))
        given = problem_from_workload(content, "w")
        search = CallBranchSearch(from_problem(given), calls_each=2)
        search.go_on(10**7)
        assert search.complete, seed
        chosen = {"calls": 2, "max_iterations": 3_000}
        placed = place(given, "branch_and_bound", settings=chosen)
        assert placed.violations == (), seed
        assert placed.proven_optimal, seed
        assert placed.value == pytest.approx(search.best_s), seed
        one = place(given, "branch_and_bound", settings={"max_iterations": 3_000})
        saved += placed.value < one.value * (1 - 1e-6)
    assert saved > 0


@pytest.mark.parametrize("name", PLACERS)
def test_pins_hold(name):
    given = problem(1, "throughput")
    ops = [op.name for op in given.graph.ops]
    pins = ((ops[0], "acc:1"), (ops[-1], "acc:0"))
    placed = place(replace(given, pins=pins), name, settings=settings(name))
    assert placed.placement.device_of[ops[0]] == "acc:1"
    assert placed.placement.device_of[ops[-1]] == "acc:0"
    assert placed.violations == ()


@pytest.mark.parametrize("name", PLACERS)
def test_too_little_memory_is_said_with_figures(name):
    content = workload(2, limit=4.0, num_cpus=0)
    with pytest.raises(ValueError, match=r" B, \d+ B more than"):
        place(
            replace(problem_from_workload(content, "w"), objective="throughput"),
            name,
            settings=settings(name),
        )
    content = workload(2, limit=12.0, num_cpus=0)
    with pytest.raises(ValueError, match=r"needs \d+ B, \d+ B more than the 2 accelerators"):
        place(
            replace(problem_from_workload(content, "w"), objective="throughput"),
            name,
            settings=settings(name),
        )


@pytest.mark.parametrize("name", PLACERS)
def test_other_problems_are_refused(name):
    given = random_problem(1, num_ops=5, num_devices=2, execution="op")
    given = replace(given, objective="throughput")
    with pytest.raises(ValueError, match="workload files"):
        built(name).place(given)


def test_a_graph_with_too_many_ideals_is_linearised_and_says_so():
    heard = []
    given = problem(4, "throughput")
    placement = built("ideals_dp", max_ideals=3).place(given, lambda p: not heard.append(p))
    assert "more than 3 downward-closed sets" in heard[-1].note
    assert contiguity(given, given.kernel_devices(placement)) == ()
