"""Searching a large graph window by window: valid, better than a poor start, and the same again."""

from dataclasses import replace

import numpy as np
import pytest

from placement import place
from placement.placers import auto
from placement.search import windows
from placement.search.chain import start_of
from placement.search.progress import quiet
from placement.simulator.evaluator import Evaluator
from tests.instances import random_devices, random_problem


def started(problem, seed=0):
    return start_of(problem, problem.placement_of(random_devices(problem, seed)))


@pytest.mark.parametrize("seed", range(5))
def test_one_window_of_everything_never_ends_above_its_start(seed):
    problem = random_problem(seed, num_ops=30, num_devices=3, with_groups=True, with_gaps=True)
    start = started(problem, seed)
    devices = windows.along(problem, start, seed=seed, num_moves=300)
    own = Evaluator(problem, start.order)
    began_s = own.value_s(start.devices)
    assert own.value_s(devices) < began_s
    assert problem.allowed[np.arange(problem.num_units), devices].all()


def test_many_windows_make_a_poor_placement_better_and_the_same_again(monkeypatch):
    monkeypatch.setattr(windows, "WINDOW", 40)
    monkeypatch.setattr(windows, "NEXT", 20)
    problem = random_problem(1, num_ops=400, num_devices=4)
    start = started(problem)
    asked = {"max_iterations": 4000, "num_parts": 2}
    devices, again = (
        windows.improve_along(problem, start, quiet, seed=3, **asked) for _ in range(2)
    )
    other = windows.improve_along(problem, start, quiet, seed=4, **asked)
    own = Evaluator(problem, start.order)
    assert own.value_s(devices) < 0.9 * own.value_s(start.devices)
    assert devices.tolist() == again.tolist()
    assert devices.tolist() != other.tolist()
    assert start.devices.tolist() == started(problem).devices.tolist()


def test_whoever_says_stop_gets_what_there_is():
    problem = random_problem(1, num_ops=400, num_devices=4)
    start = started(problem)
    assert windows.along(problem, start, seed=0, num_moves=50, stop=lambda: True).tolist() == (
        start.devices.tolist()
    )


def test_auto_searches_a_large_graph_by_windows(monkeypatch):
    begun, search = [], windows.improve_along

    def noted(problem, start, report, **asked):
        begun.append(start)
        return search(problem, start, report, **asked)

    monkeypatch.setattr(auto, "WINDOWS_FROM", 100)
    monkeypatch.setattr(windows, "WINDOW", 40)
    monkeypatch.setattr(windows, "NEXT", 20)
    monkeypatch.setattr(windows, "improve_along", noted)
    problem = random_problem(1, num_ops=110, num_devices=3)
    roomy = tuple(replace(d, memory_bytes=10**6) for d in problem.machine.devices)
    problem = replace(problem, machine=replace(problem.machine, devices=roomy))
    found, again = (place(problem, "auto", settings={"max_iterations": 1000}) for _ in range(2))
    assert len(begun) == 2
    assert found.violations == ()
    assert found.value <= min(place(problem, name).value for name in ("heft", "peft"))
    assert again.placement.device_of == found.placement.device_of


def test_windows_are_for_steps_whose_memory_never_runs_short():
    problem = random_problem(1, num_ops=100)
    assert windows.fits(problem)
    assert not windows.fits(replace(problem, objective="throughput"))
    assert not windows.fits(random_problem(1, num_ops=100, contention=0.2))
