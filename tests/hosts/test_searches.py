"""Searches on the hosts of a cluster: the answers of this computer, whoever is killed meanwhile."""

import math
import threading
import time
from dataclasses import replace

import pytest

import placement as pl
from placement.core.problem import Objective
from placement.parallel.calls import Call
from placement.placers import placer_class
from profiling.backends.ray import BACKEND
from tests.command import answer, refused
from tests.hosts import stubborn
from tests.hosts.two_nodes import kill, nodes
from tests.instances import random_problem
from tests.profiling.live import diamond, problem_of
from tests.thorough import either
from tests.workloads import random_workload_problem

# Longer than anything here takes, on any computer.
WAIT_S = 120.0
# Work that no clock ends.
FIXED = {
    "annealing": {"max_iterations": 2_000},
    "auto": {"max_iterations": 2_000},
    "genetic": {"max_iterations": 2, "population": 8},
    "local_search": {"max_iterations": 2_000},
    "list_policy": {"max_iterations": 2, "batch": 8},
    "random_search": {"max_iterations": 2, "batch": 8},
}
SPLITS = {
    "annealing_split": {"max_iterations": 100_000},
    "branch_and_bound": {"max_iterations": 100_000},
}


def model_problem():
    return random_problem(2, num_ops=40, num_devices=3)


@pytest.fixture
def said():
    return []


@pytest.fixture
def executor(cluster, said):
    """All nodes, every batch of placements shared out among them."""
    # Nodes that another test has killed are started anew.
    cluster.replace()
    return BACKEND.executor("", said.append, worth_visits=1)


@pytest.fixture(scope="module", autouse=True)
def relays():
    yield
    BACKEND.close_farm()


@pytest.mark.parametrize("name", FIXED)
def test_a_search_on_two_nodes_finds_what_one_computer_finds(executor, said, name):
    kind, problem = placer_class(name), model_problem()
    assert executor.num_lanes == 2
    for seed in range(either(1, 2)):
        there = kind(seed=seed, executor=executor, **FIXED[name]).place(problem)
        assert there == kind(seed=seed, **FIXED[name]).place(problem)
    assert not said


@pytest.mark.parametrize("objective", either([Objective.LATENCY], list(Objective)))
@pytest.mark.parametrize("name", SPLITS)
def test_splits_on_two_nodes_are_those_of_one_computer(executor, said, name, objective):
    kind = placer_class(name)
    problem = replace(random_workload_problem(5, num_nodes=14), objective=objective)
    there = kind(seed=1, executor=executor, **SPLITS[name]).place(problem)
    assert there == kind(seed=1, **SPLITS[name]).place(problem)
    assert not said


def interrupted(executor, interrupt):
    """What annealing finds while it is interrupted in the middle of a turn, and alone."""
    timers = []

    def report(progress):
        if progress.step == 3 and not timers:
            timers.append(threading.Timer(0.1, interrupt))
            timers[0].start()
        elif timers:
            # However quick, the turn is not over before that.
            timers[0].join()
        return True

    problem, asked = model_problem(), {"seed": 3, "max_iterations": 200_000}
    placer = placer_class("annealing")(executor=executor, **asked)
    there = placer.place(problem, report)
    return there, placer_class("annealing")(**asked).place(problem)


def test_a_search_goes_on_without_a_node_that_is_killed(cluster, executor, said):
    there, here = interrupted(executor, lambda: kill(cluster.raylet("beta")))
    assert there == here
    (sentence,) = said
    assert "Host 'beta' left the cluster" in sentence and sentence.count(".") == 1
    assert executor.num_lanes == 1


def test_a_search_goes_on_here_once_the_cluster_is_no_more(cluster, said):
    """The head and all that it started, and with them whoever is connected."""
    BACKEND.close_farm()
    with nodes(("gamma",)) as own:
        executor = BACKEND.executor("", said.append)

        def end():
            for process in own.processes("gamma"):
                kill(process)

        there, here = interrupted(executor, end)
    BACKEND.close_farm()
    assert there == here
    (sentence,) = said
    assert "The Ray cluster ended" in sentence and sentence.count(".") == 1


def test_what_takes_too_long_is_ended_and_the_best_so_far_is_kept(executor):
    problem, since_s = model_problem(), time.monotonic()
    placer = placer_class("local_search")(executor=executor, max_iterations=10**9)
    found = placer.place(problem, lambda progress: time.monotonic() < since_s + 1.0)
    assert set(found.device_of.values()) <= set(problem.machine.index)


def test_the_lanes_of_tasks_that_do_not_notice_their_end_are_free_again(cluster, tmp_path):
    """An interrupt may be lost in what a library calls, and a lane would be busy for ever."""
    cluster.replace()
    farm = BACKEND.farm()
    for turn in ("first", "second"):
        farm.prepared.add(("work", b""))
        files = [tmp_path / f"{turn}-{lane}" for lane in range(farm.num_lanes)]
        asked = [farm.ask(Call(stubborn.work_on, (), (str(f),)), math.inf, False) for f in files]
        until_s = time.monotonic() + WAIT_S
        while not all(file.exists() for file in files) and time.monotonic() < until_s:
            time.sleep(0.05)
        farm.cancel([number for number, _ in asked])
        assert all(file.exists() for file in files), turn
    until_s = time.monotonic() + WAIT_S
    while farm.prepared and time.monotonic() < until_s:
        time.sleep(0.05)
    assert farm.is_whole and not farm.prepared, "processes in their place have compiled nothing"


def test_a_comparison_has_a_task_for_each_placer_and_the_rows_of_one_computer(
    cluster, tmp_path, monkeypatch
):
    cluster.replace()
    model = diamond(tmp_path)
    problem = pl.make_problem(model, pl.machine("desktop-2x24gb"))
    heard = []
    asked = {"placers": ["heft", "auto", "peft", "genetic", "manual"], "seed": 2}
    there = pl.compare(model, problem, search_on="ray", emit=heard.append, **asked)
    here = pl.compare(model, problem, **asked)
    assert [replace_seconds(row) for row in there] == [replace_seconds(row) for row in here]
    rows = [event for event in heard if event["event"] == "row"]
    assert sorted(row["placer"] for row in rows) == sorted(asked["placers"])


def replace_seconds(row):
    return {key: value for key, value in row.to_json().items() if key != "seconds"}


def test_the_command_line_searches_on_a_cluster(cluster, tmp_path):
    cluster.replace()
    diamond(tmp_path)
    model = tmp_path / "small.onnx"
    how = ("--machine", "desktop-2x24gb", "--placer", "auto", "--seed", "4")
    there = answer("place", model, *how, "--search-on", "ray")
    here = answer("place", model, *how, "--search-on", "local")
    for told in (there, here):
        told.pop("seconds")
    assert there == here
    words = refused("place", model, *how, "--search-on", "elsewhere")
    assert "use local, ray, or ray://HOST:PORT" in words


def test_devices_of_a_cluster_are_searched_for_on_it_and_run_after_that(machine, tmp_path):
    """Who was connected for the machine leaves the cluster for the search, and comes back."""
    model = diamond(tmp_path)
    problem = problem_of(model, machine)
    there = pl.place(problem, "auto", seed=1)
    assert BACKEND.farm().is_whole
    assert there.placement == pl.place(problem, "auto", seed=1, search_on="local").placement
    assert pl.run(model, problem, there.placement, steps=2, warmup=1).measured.outputs_match
