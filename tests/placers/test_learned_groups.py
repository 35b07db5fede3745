"""The learners by groups: presets, what they find, limits of memory, and who stops listening."""

from dataclasses import replace

import pytest

from placement.core.machine import Machine
from placement.placers import placer_class
from placement.search.feasible import final_s
from tests.instances import random_problem
from tests.placers.test_placers import best_by_force, instance

NAMES = ("group_pg", "hierarchical", "rnn")
SMALL = {"group_pg": {}, "hierarchical": {"placing_hidden": 16}, "rnn": {"hidden": 16}}


def placer(name, **more):
    return placer_class(name)(**{**SMALL[name], "candidates": "", **more})


@pytest.mark.parametrize("name", NAMES)
def test_without_candidates_the_best_of_a_small_problem_is_found(name):
    problem = random_problem(2, num_ops=6, num_devices=2, execution="op")
    found = placer(name, max_iterations=12, batch=32).place(problem)
    assert final_s(problem, found) <= best_by_force(problem) * (1 + 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_papers_preset_places_too(name):
    for execution in ("segment", "call"):
        problem = instance(3, execution, "latency", num_ops=9)
        found = placer(name, preset="paper", max_iterations=3).place(problem)
        assert final_s(problem, found) < float("inf")


@pytest.mark.parametrize("name", NAMES)
def test_one_op_and_one_device_are_answered(name):
    one_op = random_problem(0, num_ops=1, num_devices=2)
    assert placer(name, max_iterations=2).place(one_op).device_of
    one_device = random_problem(0, num_ops=5, num_devices=1)
    assert set(placer(name, max_iterations=2).place(one_device).device_of.values()) == {"d0"}


@pytest.mark.parametrize("name", NAMES)
def test_a_joint_limit_of_memory_is_kept_to_or_named(name):
    problem = random_problem(7, num_ops=10, num_devices=3)
    total = float(problem.kernels.arrays.param_bytes.sum())
    for share, fits in ((0.6, True), (0.1, False)):
        devices = tuple(
            replace(device, memory_bytes=int(total * share)) for device in problem.machine.devices
        )
        machine = Machine("tight", devices, problem.machine.links)
        tight = replace(problem, machine=machine, memory_model="sum")
        if fits:
            found = placer(name, max_iterations=4).place(tight)
            assert final_s(tight, found) < float("inf")
        else:
            with pytest.raises(ValueError, match=r"\d B\b"):
                placer(name, max_iterations=4).place(tight)


@pytest.mark.parametrize("name", NAMES)
def test_whoever_stops_listening_gets_an_answer(name):
    problem = random_problem(4, num_ops=10, num_devices=3)
    found = placer(name, max_iterations=1_000_000).place(problem, lambda progress: False)
    assert final_s(problem, found) < float("inf")


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_placements_is_that_of_iterations_and_batch(name):
    heard = []
    problem = random_problem(4, num_ops=10, num_devices=3)

    def hear(progress):
        heard.append(progress.evaluations)
        return True

    placer(name, max_iterations=3, batch=8).place(problem, hear)
    assert heard[-1] == 24
