"""The list policy: without learning, with it, and from file to file."""

from dataclasses import replace

import numpy as np
import pytest

from placement.core.machine import Machine
from placement.learning.checkpoint import BUNDLED, path_of
from placement.placers.list_policy import LEARNER, ListPolicy, weights_of
from placement.search.feasible import final_s
from tests.instances import random_problem


def value_s(problem, **settings):
    return final_s(problem, ListPolicy(candidates="", **settings).place(problem))


def test_more_batches_are_never_worse():
    for seed in range(4):
        problem = random_problem(seed, num_ops=30, num_devices=4, execution="op")
        reports = []
        for batches in (1, 20):
            heard = []
            placer = ListPolicy(candidates="", max_iterations=batches)
            placer.place(problem, lambda progress, heard=heard: heard.append(progress) or True)
            reports.append(min(p.best_s for p in heard[:-1]))
            assert heard[-1].evaluations == 64 * batches
        assert reports[1] <= reports[0]


def test_a_policy_goes_on_from_its_file(tmp_path):
    problem = random_problem(1, num_ops=30, num_devices=4)
    path = tmp_path / "policy.safetensors"
    ListPolicy(max_iterations=3, policy="", save=str(path)).place(problem)
    found = weights_of(str(path))
    assert not np.array_equal(found, weights_of(""))
    assert np.abs(found - weights_of("")).max() < 3 * 0.1
    once = ListPolicy(max_iterations=1, policy=str(path), save=str(path))
    once.place(problem)
    assert np.array_equal(weights_of(str(path)), found), "one batch learns nothing"


def test_the_bundled_policy_is_small_and_readable():
    path = path_of(BUNDLED, LEARNER)
    assert path is not None and path.stat().st_size < 100_000
    assert np.isfinite(weights_of(BUNDLED)).all()
    assert ListPolicy().policy == BUNDLED


def test_a_file_that_is_no_policy_is_one_sentence(tmp_path):
    path = tmp_path / "policy.safetensors"
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"The policy 'policy\.safetensors' cannot be used"):
        ListPolicy(policy=str(path)).place(random_problem(1))


def test_one_device_and_one_op_are_answered():
    one = random_problem(1, num_ops=1, num_devices=1)
    assert set(ListPolicy().place(one).device_of.values()) == {"d0"}


def test_weights_that_fit_nowhere_are_one_sentence():
    problem = random_problem(1, num_ops=8, num_devices=2)
    devices = tuple(replace(d, memory_bytes=1) for d in problem.machine.devices)
    machine = Machine("tiny", devices, problem.machine.links)
    with pytest.raises(ValueError, match="memory"):
        ListPolicy().place(replace(problem, machine=machine))
