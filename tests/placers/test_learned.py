"""The shared course of learners and controls: levels, budgets, candidates, and how it ends."""

import math
from dataclasses import replace

import numpy as np
import pytest

from placement import place
from placement.learning.account import Trace, groups_of
from placement.learning.training import Learned, Trained
from placement.placers import placer_class
from placement.placers._learned import Study, at_most, chained, environment_of, itself, searched
from placement.search.feasible import final_s
from tests.instances import random_problem
from tests.workloads import (
    diamond,
    edges,
    node,
    problem_from_workload,
    random_workload,
    random_workload_problem,
    workload,
)

CONTROLS = ("random_search", "mutation")


def value(problem, name, **settings):
    return place(problem, name, settings=settings).value


def with_memory(problem, num_bytes):
    devices = tuple(replace(d, memory_bytes=num_bytes) for d in problem.machine.devices)
    return replace(problem, machine=replace(problem.machine, devices=devices))


def found_by(problem, find, **settings):
    about = {"seed": 0, "max_evaluations": 100, "time_limit_s": None, "candidates": ""}
    study = Study(find=find, **about | settings)
    return searched(problem, study, None, lambda progress: True, Trace())


def first_possible(environment, budget, tell, start):
    """A method that knows only the start, or everything on the first device."""
    devices = start if start is not None else np.zeros(environment.num_units, dtype=np.int64)
    return Learned(devices, math.inf, 1, ())


def test_levels_are_chains_or_the_finest_that_is_small_enough():
    problem = random_problem(0, num_ops=80, num_devices=2)
    units = environment_of(problem)
    assert itself(units) is units
    sizes = [units.num_units, chained(units).num_units]
    assert sizes[0] == problem.num_units > sizes[1] > 40
    assert at_most(sizes[0])(units) is units
    assert at_most(sizes[1])(units).num_units == sizes[1]
    assert 10 < at_most(40)(units).num_units <= 40
    coarsest = at_most(1)(units).num_units
    assert coarsest < 40 and at_most(coarsest)(units).num_units == coarsest


def test_units_of_workloads_stay_but_can_be_joined():
    units = environment_of(random_workload_problem(2, num_nodes=60))
    assert chained(units) is units
    assert at_most(30)(units).num_units <= 30 < units.num_units


@pytest.mark.parametrize("name", CONTROLS)
def test_more_placements_are_never_worse_and_candidates_stand_beside(name):
    problem = random_problem(3, num_ops=30, num_devices=3)
    few, many = (value(problem, name, candidates="", max_iterations=n) for n in (1, 40))
    alone = min(value(problem, other) for other in ("heft", "single"))
    assert many <= few
    assert value(problem, name, max_iterations=1) == min(few, alone)


def test_mutation_finds_the_optimum_of_a_diamond():
    """Everything on one accelerator takes 10 ms, both as calls and as the largest load."""
    for objective in ("latency", "throughput"):
        problem = replace(problem_from_workload(diamond(), "diamond"), objective=objective)
        assert value(problem, "mutation", candidates="") == pytest.approx(10e-3)


def test_the_order_is_chosen_anew_for_what_was_found():
    """The answer is no worse than the same devices in the order that all of them were tried in."""
    for seed in range(8):
        problem = random_problem(seed, num_ops=25, num_devices=3)
        environment = chained(environment_of(problem))
        devices = np.random.default_rng(seed).integers(3, size=environment.num_units)
        answer = found_by(problem, lambda *_, rows=devices: Learned(rows, 1.0, 1, ()))
        assert answer.device_of == environment.placement_of(devices).device_of
        assert final_s(problem, answer) <= final_s(problem, environment.placement_of(devices))


def test_what_was_found_keeps_the_order_in_which_it_was_found():
    """The last level's own order may be better than any that is tried from the first one."""
    kept = 0
    for seed in range(8):
        problem = random_problem(seed, num_ops=25, num_devices=3)
        environment = environment_of(problem)
        devices = np.random.default_rng(seed).integers(3, size=environment.num_units)
        suited = environment
        for _ in range(3):
            suited = suited.suited(devices)
        found = Learned(devices, 1.0, 1, (), environment=suited)
        answer = found_by(problem, lambda *_, found=found: found)
        own_s = suited.values_s(devices[None])[0]
        assert final_s(problem, answer) <= own_s * (1 + 1e-9)
        kept += own_s < environment.values_s(devices[None])[0] * (1 - 1e-9)
    assert kept, "no order was better than the first one"


def test_local_search_goes_on_from_what_was_found():
    problem = random_problem(1, num_ops=30, num_devices=3)
    plain, improved = (found_by(problem, first_possible, search=share) for share in (0.0, 0.5))
    assert final_s(problem, improved) < final_s(problem, plain)


def test_the_budget_is_shared_with_local_search_and_the_seed_decides():
    problem = random_problem(1, num_ops=30, num_devices=3)
    seen = []

    def find(environment, budget, tell, start):
        seen.append((budget.max_evaluations, budget.time_limit_s, start))
        return first_possible(environment, budget, tell, start)

    found_by(problem, find, max_evaluations=1_000)
    found_by(problem, find, max_evaluations=1_000, search=0.25)
    found_by(problem, find, max_evaluations=0)
    found_by(problem, find, max_evaluations=0, time_limit_s=0.5, search=0.5)
    assert seen[:2] == [(1_000, None, None), (750, None, None)]
    # By default a hundred placements for each other device of each of the 30 ops, and a timed
    # search has less than its share, for something is kept for the choice.
    assert seen[2][0] == 6_000
    assert seen[3][0] == 0 and seen[3][1] < 0.25


def test_where_random_placements_are_not_possible_a_start_is_given():
    """In a long chain of calls on two accelerators, almost all placements wait for themselves."""
    nodes = [node(i, 10, 1) for i in range(60)]
    links = edges(*((i, i + 1, 1) for i in range(59)), *((i, i + 2, 1) for i in range(58)))
    problem = problem_from_workload(workload(nodes, links), "chain")
    starts = []

    def find(environment, budget, tell, start):
        starts.append(start)
        return first_possible(environment, budget, tell, start)

    answer = found_by(replace(problem, objective="latency"), find)
    assert starts[0] is not None
    assert final_s(replace(problem, objective="latency"), answer) == pytest.approx(60e-3)
    found_by(replace(problem, objective="throughput"), find)
    assert starts[1] is None


@pytest.mark.parametrize("name", CONTROLS)
def test_memory_that_only_just_suffices_is_kept_to(name):
    for seed in range(4):
        problem = replace(random_problem(seed, num_ops=12, num_devices=3), memory_model="sum")
        weights = problem.kernels.arrays.param_bytes.sum()
        tight = with_memory(problem, int(weights / 3 * 1.1) + 1)
        assert place(tight, name, settings={"candidates": ""}).violations == ()


@pytest.mark.parametrize("name", CONTROLS)
def test_where_nothing_fits_a_sentence_says_what_to_do(name):
    """Five ops of 30 bytes do not divide over two devices of 80, and are too many for two of 70."""
    problem = random_problem(1, num_ops=5, num_devices=2)
    ops = tuple(replace(op, param_bytes=30) for op in problem.graph.ops)
    graph = replace(problem.graph, ops=ops)
    full = replace(problem, graph=graph, kernels=graph, memory_model="sum")
    with pytest.raises(ValueError, match=r"No placement within all limits was found; give the"):
        place(with_memory(full, 80), name)
    with pytest.raises(ValueError, match=r"The weights need 150 B, all devices together"):
        place(with_memory(full, 70), name)


@pytest.mark.parametrize("name", CONTROLS)
def test_one_op_and_one_device_are_answered(name):
    for num_ops, num_devices in ((1, 1), (1, 3), (6, 1)):
        problem = random_problem(0, num_ops=num_ops, num_devices=num_devices)
        answer = place(problem, name, settings={"candidates": ""})
        assert answer.violations == () and answer.value <= value(problem, "single") + 1e-9


def test_a_report_hears_of_the_search_and_may_end_it():
    problem, heard = random_problem(2, num_ops=20, num_devices=3), []

    def stop(progress):
        heard.append(progress)
        return False

    placer = placer_class("mutation")(max_iterations=10_000)
    placement = placer.place(problem, stop)
    assert heard[0].evaluations == placer.batch and heard[0].best_s < math.inf
    assert " is the best of 128 placements tried" in heard[-1].note
    assert "; the best of heft and single is " in heard[-1].note
    assert heard[-1].best_s == final_s(problem, placement)


def test_a_candidate_that_is_unknown_or_for_other_problems():
    with pytest.raises(ValueError, match="There is no placer 'nobody'"):
        place(random_problem(0), "mutation", settings={"candidates": "nobody"})
    problem = problem_from_workload(diamond(), "diamond")
    assert value(problem, "mutation", candidates="heft, single") == pytest.approx(10e-3)


@pytest.mark.parametrize("name", ["hsdag", "group_pg"])
def test_the_groups_that_were_formed_are_told_by_op(name):
    problem = random_problem(3, num_ops=20, num_devices=3)
    groups = place(problem, name, settings={"max_iterations": 2}).groups
    assert len(groups) == len(problem.graph.ops) and 1 < len(set(groups)) < problem.num_units
    for ops in problem.ops_of_unit:
        assert len({groups[i] for i in ops}) == 1
    assert place(problem, "heft").groups is None


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_groups_of_a_workload_are_those_of_its_ops_whatever_the_units(objective):
    """Units of the splits are fewer, and in another order, where nodes compute nothing."""
    workload = random_workload(1, num_nodes=12)
    for idle in workload["nodes"][:3]:
        idle.update(cpuLatency=0.0, fpgaLatency=0.0)
    problem = replace(problem_from_workload(workload, "idle"), objective=objective)
    found = place(problem, "group_pg", settings={"max_iterations": 2, "groups": 3})
    assert found.groups is None or len(found.groups) == len(problem.graph.ops)
    environment = environment_of(problem)
    trained = Trained(Grouped(np.arange(environment.num_units) % 2), environment)
    learned = Learned(np.zeros(environment.num_units, int), 1.0, 1, (), trained)
    groups = groups_of(problem, learned)
    for kernel, unit in enumerate(problem.unit_of_kernel):
        for op in np.flatnonzero(problem.unit_of_op == unit):
            assert groups[op] == environment.unit_of_kernel[kernel] % 2


class Grouped:
    """A policy that has formed these groups."""

    def __init__(self, groups):
        self._groups = groups

    def groups(self):
        return self._groups
