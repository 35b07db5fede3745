"""HSDAG as a placer: its presets, its optimum on small problems, and how it ends."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from placement.core.problem import Objective
from placement.placers.hsdag import Hsdag, against_mean
from placement.search.feasible import final_s
from tests.instances import random_problem
from tests.workloads import problem_from_workload, random_workload


def told(placer, problem, stop_at=math.inf):
    """The placement, and all that was reported; from the given report on it is told to end."""
    reports = []

    def report(progress):
        reports.append(progress)
        return len(reports) < stop_at

    return placer.place(problem, report), reports


def test_rewards_of_the_paper_are_inverse_latencies_against_their_mean():
    assert against_mean(np.array([0.5, 0.25, np.inf])) == pytest.approx([0.0, 2.0, -2.0])


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("execution", ["op", "segment"])
def test_no_placement_of_a_small_problem_is_better(execution, objective):
    problem = random_problem(3, num_ops=6, num_devices=2, execution=execution)
    problem = replace(problem, objective=objective)
    choices = [np.flatnonzero(row).tolist() for row in problem.allowed]
    best_s = min(
        final_s(problem, problem.placement_of(devices)) for devices in itertools.product(*choices)
    )
    found = Hsdag(candidates="", max_iterations=4).place(problem)
    assert final_s(problem, found) <= best_s


def test_an_iteration_is_an_update_after_as_many_placements_as_the_preset_says():
    problem = random_problem(1, num_ops=20, num_devices=3)
    for preset, per_update in (("paper", 20), ("tuned", 256)):
        _, reports = told(Hsdag(preset=preset, max_iterations=4), problem)
        assert reports[-1].evaluations == 4 * per_update


def test_it_ends_with_the_best_so_far_when_told_to():
    problem = random_problem(1, num_ops=20, num_devices=3)
    placement, reports = told(Hsdag(candidates="", max_iterations=50), problem, stop_at=1)
    assert reports[-1].evaluations == 256
    assert final_s(problem, placement) == reports[-1].best_s


@pytest.mark.parametrize("part", ["shape", "id", "structure"])
def test_parts_of_the_features_can_be_left_out(part):
    problem = random_problem(5, num_ops=12, num_devices=3)
    placement = Hsdag(without=part, max_iterations=2, candidates="").place(problem)
    assert math.isfinite(final_s(problem, placement))


def test_nodes_of_a_workload_have_features_too():
    problem = problem_from_workload(random_workload(2, num_nodes=12), "random")
    for preset in ("paper", "tuned"):
        placement = Hsdag(preset=preset, max_iterations=2, candidates="").place(problem)
        assert math.isfinite(final_s(problem, placement))
