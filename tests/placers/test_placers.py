"""Every placer there is, against definitions: valid, deterministic, never better than optimal."""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from placement import compare, list_placers, place, simulate
from placement.bounds.lower_bound import lower_bound
from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine, link_arrays
from placement.core.problem import Problem, own_kernels
from placement.core.problem_json import problem_from_json
from placement.core.verb_options import PlaceOptions
from placement.core.violations import violations
from placement.placers import FORMER_NAMES, current_name, names, placer_class
from placement.placers._lists.lanes_compiled import earliest_finish
from placement.placers._lists.lists import falling, lanes_for, placement_from, way_back_s
from placement.placers.base import build, describe
from placement.placers.heft import mean_upward_ranks
from placement.schedule.segments import make_schedule
from placement.simulator.flat import flatten
from tests.checker import timeline_faults
from tests.instances import canonical_file, random_problem
from tests.thorough import either
from tests.workloads import diamond, problem_from_workload, random_workload


def missing(name):
    """Libraries that a placer needs and that have no package for every computer."""
    return [need for need in placer_class(name).needs if importlib.util.find_spec(need) is None]


# One that needs a file has tests of its own.
PLACERS = tuple(name for name in names() if name != "expert" and not missing(name))
# Four have every number of devices, with and without groups and gaps.
SEEDS = range(either(4, 12))
KINDS = [
    (name, execution, objective)
    for name in PLACERS
    for execution in placer_class(name).executions
    for objective in placer_class(name).objectives
]
MODELS = sorted({name for name, execution, _ in KINDS if execution != "call"})
# What learns, searches on all cores or proves takes the longest: each of its kinds has a third of
# the seeds, or all.
SHARES = either(3, 1)


KINDS_OF = {name: [kind for kind in KINDS if kind[0] == name] for name in PLACERS}
LONG = {
    name
    for name in PLACERS
    for kind in [placer_class(name)]
    if kind.learns_live or kind.all_cores or kind.exact
}


def seeds_of(name, execution, objective):
    number = KINDS_OF[name].index((name, execution, objective))
    share = SHARES if name in LONG else 1
    return [seed for seed in SEEDS if (seed + number) % share == 0]


# Every placer; what takes long with a third of its kinds, or with one in `make test`.
HASHED = [
    kind
    for kind in KINDS
    if SEEDS[0] in seeds_of(*kind)
    and (kind == KINDS_OF[kind[0]][0] or kind[0] not in either(LONG, ()))
]
# Rounds and generations, or moves: validity and answers that are the same again need few.
ROUNDS, MOVES = 3, 500


def shortly(name):
    """A placer that learns or searches briefly in `make test`, and as it does in `make fuzz`."""
    kind = placer_class(name)
    has_rounds = kind.learns_live or name == "genetic"
    few = {"max_iterations": ROUNDS if has_rounds else MOVES} if kind.all_cores else {}
    return kind(**either(few, {}))


def instance(seed, execution, objective, **more):
    """A random problem of one kind; for calls one in the style of workload files."""
    if execution == "call":
        content = random_workload(seed, num_nodes=more.get("num_ops", 9))
        problem = problem_from_workload(content, "random")
    else:
        problem = random_problem(seed, execution=execution, **more)
    return replace(problem, objective=objective)


@pytest.mark.parametrize("name", names())
def test_what_a_placer_needs_is_installed(name):
    if missing(name):
        pytest.skip(f"{name} is not tested: {', '.join(missing(name))} is not installed")
    assert placer_class(name).summary


def best_by_force(problem):
    """Least simulated value over every assignment of units, in default order."""
    best = float("inf")
    choices = [
        [d for d in range(problem.num_devices) if problem.allowed[u, d]]
        for u in range(problem.num_units)
    ]
    for devices in itertools.product(*choices):
        best = min(best, simulate(problem, problem.placement_of(devices)).value)
    return best


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "execution", "objective"), KINDS)
def test_every_placement_is_valid_and_simulates_by_the_rules(name, execution, objective):
    for seed in seeds_of(name, execution, objective):
        problem = instance(
            seed,
            execution,
            objective,
            num_ops=either(10, 14),
            num_devices=1 + seed % 4,
            with_groups=seed % 2 == 1,
            with_gaps=seed % 3 == 1 and seed % 4 > 0,
        )
        placement = shortly(name).place(problem)
        schedule = make_schedule(problem, placement)
        assert violations(problem, schedule, placement.calls) == (), (name, seed)
        predicted = simulate(problem, placement)
        if execution != "call":
            assert timeline_faults(problem, schedule, predicted.timeline) == [], (name, seed)
        assert predicted.value >= lower_bound(problem) - 1e-9, (name, seed)


@pytest.mark.parametrize("name", MODELS)
def test_pins_hold(name):
    problem = random_problem(4, num_ops=8, num_devices=3)
    pinned = replace(problem, pins=(("op2", "d2"), ("op5", "d1")))
    placement = placer_class(name)().place(pinned)
    assert placement.device_of["op2"] == "d2", name
    assert placement.device_of["op5"] == "d1", name


@pytest.mark.thorough
@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_none_beats_brute_force_with_its_own_order_left_out(objective):
    """All placers in one test, since it takes longer to try every placement than to place."""
    for seed in range(either(2, 6)):
        problem = instance(seed, "op", objective, num_ops=either(6, 7), num_devices=2)
        best = best_by_force(problem)
        assert best >= lower_bound(problem) - 1e-9, seed
        asked = [name for name, *kind in KINDS if kind == ["op", objective]]
        assert len(asked) > 10
        for name in asked:
            found = shortly(name).place(problem)
            value = simulate(problem, replace(found, order=())).value
            assert value >= best - 1e-9, (name, seed)


@pytest.mark.parametrize("name", PLACERS)
def test_settings_have_help_and_build_from_text(name):
    described = describe(name, placer_class(name))
    assert described["summary"], name
    for key, field in described["settings"].items():
        assert field["help"], (name, key)
        assert field["type"] in ("int", "float", "bool", "str"), (name, key)
    texts = {key: str(f["default"]) for key, f in described["settings"].items()}
    assert (
        build(placer_class(name), PlaceOptions(placer=name, settings=texts)) == placer_class(name)()
    ), name
    with pytest.raises(ValueError, match="no setting 'nonsense'"):
        build(placer_class(name), PlaceOptions(placer=name, settings={"nonsense": "1"}))


def answers_and_hash():
    """What placers answer, a learner with its curve, and a hash that is this process's own."""
    answers = []
    for name, execution, objective in HASHED:
        p = instance(7, execution, objective, num_ops=12, num_devices=3, with_groups=True)
        curve = {}

        def hear(told, curve=curve):
            curve[told.evaluations] = (told.best_s, told.mean_s, told.entropy)
            return True

        found = shortly(name).place(p, hear).to_json()
        answers.append((name, found, curve if placer_class(name).learns_live else {}))
    return answers, hash("placement")


@pytest.mark.thorough
def test_the_same_answers_under_any_hash_seed():
    """All placers here and in one other process: starting a process costs more than placing.

    Of a learner the curve is the same, too, wherever it is told: how often depends on the clock.
    """
    program = (
        "import sys, json; sys.path.insert(0, '.')\n"
        "from tests.placers.test_placers import answers_and_hash\n"
        "print(json.dumps(answers_and_hash()))"
    )
    seed = "0" if os.environ.get("PYTHONHASHSEED") == "77" else "77"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        here = answers_and_hash()
        printed = other.communicate()[0]
    # As JSON has it on both sides, so that keys are text and tuples lists.
    (own, own_hash), (others, other_hash) = json.loads(json.dumps(here)), json.loads(printed)
    assert own_hash != other_hash
    answers = [own, others]
    assert len(answers[0]) == len(HASHED)
    assert {name for name, _, _ in answers[0]} == set(PLACERS)
    for (name, found, curve), (same_name, same, other_curve) in zip(*answers, strict=True):
        assert (name, found) == (same_name, same)
        told = curve.keys() & other_curve.keys()
        assert len(told) >= 2 * placer_class(name).learns_live, (name, curve, other_curve)
        assert {at: curve[at] for at in told} == {at: other_curve[at] for at in told}, name


def test_heft_on_the_canonical_example_is_the_published_schedule():
    """Makespan 80, and the processor of each task, as in figure 3(a) of the paper."""
    problem = problem_from_json(canonical_file(), "canonical")
    placed = place(problem, "heft")
    assert placed.value == 80.0
    assert dict(placed.placement.device_of) == {
        "n1": "P3",
        "n2": "P1",
        "n3": "P3",
        "n4": "P2",
        "n5": "P3",
        "n6": "P2",
        "n7": "P3",
        "n8": "P1",
        "n9": "P2",
        "n10": "P2",
    }
    ends = {s.name: (s.start_s, s.end_s) for s in placed.timeline.spans if s.kind == "compute"}
    assert ends["n1"] == (0.0, 9.0)
    assert ends["n4"] == (18.0, 26.0)
    assert ends["n10"] == (73.0, 80.0)


def test_heft_ranks_are_the_published_ones():
    problem = problem_from_json(canonical_file(), "canonical")
    ranks = [round(r, 3) for r in mean_upward_ranks(flatten(problem))]
    assert ranks == [108.0, 77.0, 80.0, 80.0, 69.0, 63.333, 42.667, 35.667, 44.333, 14.667]


def test_heft_keeps_within_memory_where_time_alone_would_not():
    content = canonical_file()
    for row in content["ops"]:
        row["memory_bytes"] = 10
    for device in content["devices"]:
        device["memory_bytes"] = 40
    placed = place(problem_from_json(content, "tight"), "heft")
    assert placed.violations == ()
    assert max(placed.placement.ops_per_device().values()) <= 4


def test_manual_rules_place_by_type_scope_and_name():
    problem = random_problem(2, num_ops=12, num_devices=3)
    rules = "Conv=d1; block2=d2; op0=d0"
    placement = place(problem, "manual", settings={"rules": rules}).placement
    for op in problem.graph.ops:
        wanted = "d1" if op.kind == "Conv" else "d0"
        wanted = "d2" if op.scope == "block2" else wanted
        wanted = "d0" if op.name == "op0" else wanted
        assert placement.device_of[op.name] == wanted
    with pytest.raises(ValueError, match="matches no op"):
        place(problem, "manual", settings={"rules": "Nothing*=d1"})


def test_heft_counts_the_way_of_inputs_and_outputs():
    """A GPU that is twice as fast is no use behind a link that takes 100 s each way."""
    devices = (Device("cpu:0"), Device("gpu:0", kind="gpu"))
    links = (Link("cpu:0", "gpu:0", 0.0, 10.0), Link("gpu:0", "cpu:0", 0.0, 10.0))
    machine = Machine("slow link", devices, links)
    graph = Graph(
        "two",
        (Op("a", "Conv"), Op("b", "Conv")),
        (
            Tensor("in", None, ("a",), 1000),
            Tensor("ab", "a", ("b",), 1000),
            Tensor("out", "b", (), 1000, is_output=True),
        ),
    )
    latency_s, s_per_byte = link_arrays(machine)
    costs = Costs(np.array([[2.0, 1.0], [2.0, 1.0]]), np.zeros(2), latency_s, s_per_byte, "given")
    problem = Problem(graph, machine, costs, graph, own_kernels(graph))
    assert place(problem, "heft").value == 4.0


@pytest.mark.parametrize("seed", range(40))
def test_heft_predicts_its_own_makespan_on_devices_of_their_own(seed):
    """With execution "op" the order HEFT fixes is simulated to no later than HEFT counted."""
    problem = random_problem(seed, num_ops=14, num_devices=3, execution="op")
    flat = flatten(problem)
    lanes = lanes_for(flat, insertion=True)
    back_s = way_back_s(flat)
    anywhere = np.full(14, -1, dtype=np.int64)
    earliest_finish(flat, lanes, falling(problem, mean_upward_ranks(flat)), back_s, anywhere)
    counted = max(lanes.end_s[k] + back_s[k, lanes.device[k]] for k in range(14))
    loose = replace(
        problem,
        link_contention=False,
        costs=replace(problem.costs, call_s=np.zeros(problem.num_devices)),
    )
    placement = placement_from(problem, lanes)
    assert simulate(loose, placement).value <= counted + 1e-9


@pytest.mark.parametrize("old", FORMER_NAMES)
def test_a_former_name_still_works_and_the_answer_has_the_present_one(old):
    new = current_name(old)
    assert old not in names() and new in names()
    assert placer_class(old) is placer_class(new)
    problem = problem_from_workload(diamond(), "small")
    assert place(problem, old, settings={"max_iterations": 100}).placer == new
    rows = compare(None, problem, [old], time_limit_s=0.1)
    assert [row.placer for row in rows] == [new]
    listed = [row["name"] for row in list_placers() if row["name"] in (old, new)]
    assert listed == [new]
