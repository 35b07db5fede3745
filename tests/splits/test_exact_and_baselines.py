"""Placers of workload files: exact answers, baselines on files, and what cannot be met."""

from dataclasses import replace

import numpy as np
import pytest

from placement import place
from placement.advice import warming
from placement.bounds.lower_bound import split_bound_s
from placement.loaders.workload import problem_from_workload
from placement.placers import names, placer_class
from placement.splits.exact.program import silent_solver
from placement.splits.model.instance import from_problem
from tests.contiguity import contiguity
from tests.splits import force
from tests.splits.test_ideals import OPTIMA_MS
from tests.splits.test_split_placers import problem, workload
from tests.thorough import either
from tests.workloads import node, shared_problem
from tests.workloads import workload as small

CONTIGUOUS = ("linear_dp", "pipedream")
BASELINES = ("greedy_fill", "kahip", "linear_dp", "metis", "pipedream")
# Layers and ops, inference and training.
FEW_FILES = ("layer_gnmt_training", "op_bert3_inference")
LATENCY_FILES = (
    "layer_bert24_inference",
    "layer_gnmt_inference",
    "op_bert3_inference",
    "op_resnet50_inference",
)
CALL_PLACERS = tuple(
    name for name in names() if "call" in placer_class(name).executions and name != "expert"
)


@pytest.fixture
def without_warming(monkeypatch):
    """Nobody looks at times where nothing fits, for which a method would be run ahead."""
    monkeypatch.setattr(warming, "warm_up", lambda placer, problem: None)


def briefly(name):
    """Settings with which a learner ends soon: whether something fits its rounds do not change."""
    return {"max_iterations": 2} if placer_class(name).learns_live else {}


def optimum_s(given):
    """Of a small problem by brute force, in its objective."""
    instance = from_problem(given)
    if given.objective == "latency":
        return force.best_latency_s(instance)
    return force.loads_s(instance, force.splits(instance)).max(axis=1).min()


@pytest.mark.thorough
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("objective", ["throughput", "latency"])
def test_branch_and_bound_equals_brute_force(training, objective):
    for seed in range(either(3, 6)):
        given = problem(seed, objective, training=training, limit=24.0)
        placed = place(given, "branch_and_bound", settings={"max_iterations": 20_000})
        assert placed.violations == (), seed
        optimum = optimum_s(given)
        assert placed.lower_bound <= optimum * (1 + 1e-9), seed
        assert placed.value >= optimum * (1 - 1e-9), seed
        assert placed.value == pytest.approx(optimum, rel=1e-9), seed
        assert placed.proven_optimal, seed


@pytest.mark.parametrize("name", ["layer_bert24_inference", "layer_bert24_training"])
def test_branch_and_bound_proves_bert(name):
    given = replace(shared_problem("throughput", name), objective="throughput")
    placed = place(given, "branch_and_bound", settings={"max_iterations": 400_000})
    assert placed.violations == ()
    assert placed.proven_optimal
    assert placed.account == "proven optimal"
    assert placed.lower_bound == pytest.approx(placed.value, rel=1e-6)


def test_branch_and_bound_ends_when_told_and_keeps_what_it_has():
    given = problem(1, "throughput")
    heard = []
    placement = placer_class("branch_and_bound")().place(given, lambda p: bool(heard.append(p)))
    assert len(heard) >= 1
    assert set(placement.device_of) == {op.name for op in given.graph.ops}


@pytest.mark.thorough
@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("file", either(FEW_FILES, [*OPTIMA_MS]))
def test_baselines_are_feasible_and_not_below_the_optimum(name, file):
    given = replace(shared_problem("throughput", file), objective="throughput")
    placed = place(given, name)
    assert placed.violations == ()
    assert placed.value >= split_bound_s(given) * (1 - 1e-9)
    if name in CONTIGUOUS:
        assert contiguity(given, given.kernel_devices(placed.placement)) == ()
        assert placed.value >= OPTIMA_MS[file] * 1e-3 * (1 - 1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [n for n in BASELINES if n != "pipedream"])
@pytest.mark.parametrize("file", either(LATENCY_FILES[1:2], LATENCY_FILES))
def test_baselines_for_latency(name, file):
    given = shared_problem("latency", file)
    placed = place(given, name)
    assert placed.violations == ()
    assert placed.value >= split_bound_s(given) * (1 - 1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("name", BASELINES)
def test_baselines_keep_pins_and_memory(name):
    for seed in range(either(3, 6)):
        given = problem(seed, "throughput", limit=24.0)
        ops = [op.name for op in given.graph.ops]
        pinned = replace(given, pins=((ops[0], "acc:1"),))
        placed = place(pinned, name)
        assert placed.violations == (), seed
        assert placed.placement.device_of[ops[0]] == "acc:1", seed


@pytest.mark.parametrize("training", [False, True])
def test_pipedream_cuts_a_chain_as_well_as_can_be(training):
    """On a chain without colour classes the chain of layers is the graph."""
    for seed in range(6):
        content = workload(seed, num_accelerators=3)
        for row in content["nodes"]:
            del row["colorClass"]
        content["edges"] = [e for e in content["edges"] if e["destId"] == e["sourceId"] + 1]
        given = replace(problem_from_workload(content, "chain"), objective="throughput")
        assert place(given, "pipedream").value == pytest.approx(place(given, "ideals_dp").value)


@pytest.mark.parametrize("name", ["metis", "kahip"])
def test_a_missing_partitioner_says_what_to_install(name, monkeypatch):
    library = placer_class(name).needs[0]
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(ValueError, match=f"needs: pip install {library}"):
        placer_class(name)().place(problem(1, "throughput"))


@pytest.mark.usefixtures("without_warming")
@pytest.mark.parametrize("name", CALL_PLACERS)
def test_a_group_larger_than_any_accelerator_is_told_with_figures(name):
    nodes = [node(i, 10, 1, 7.0, colorClass=1) for i in (1, 2)]
    nodes = [*nodes, node(3, 10, 1, 1.0)]
    edges = [{"sourceId": i, "destId": i + 1, "cost": 1.0} for i in (1, 2)]
    content = small(nodes, edges, maxSizePerFPGA=10.0, maxCPUs=0)
    for objective in placer_class(name).objectives:
        given = replace(problem_from_workload(content, "w"), objective=objective)
        with pytest.raises(ValueError, match=r"14 B|lacks \d+ B"):
            place(given, name, settings=briefly(name))


@pytest.mark.usefixtures("without_warming")
@pytest.mark.parametrize("name", CALL_PLACERS)
def test_too_little_memory_in_all_is_told_with_figures(name):
    nodes = [node(i, 10, 1, 6.0) for i in (1, 2, 3, 4)]
    edges = [{"sourceId": i, "destId": i + 1, "cost": 1.0} for i in (1, 2, 3)]
    content = small(nodes, edges, maxSizePerFPGA=10.0, maxCPUs=0)
    for objective in placer_class(name).objectives:
        given = replace(problem_from_workload(content, "w"), objective=objective)
        with pytest.raises(ValueError, match=r"24 B|lacks \d+ B"):
            place(given, name, settings=briefly(name))


def test_speeds_decide_how_many_devices_get_a_part():
    """Two fast accelerators and a CPU a hundred times slower: it gets nothing."""
    nodes = [node(i, 100, 1) for i in range(1, 9)]
    edges = [{"sourceId": i, "destId": i + 1, "cost": 0.01} for i in range(1, 8)]
    given = replace(problem_from_workload(small(nodes, edges), "w"), objective="throughput")
    for name in ("metis", "kahip"):
        placed = place(given, name)
        counts = np.array(sorted(placed.placement.ops_per_device().values()))
        assert counts.tolist() == [4, 4], name


def test_the_solver_says_nothing_from_its_birth(capfd):
    solver = silent_solver()
    solver.addCol(1.0, 0.0, 1.0, 0, [], [])
    solver.run()
    assert capfd.readouterr() == ("", "")
