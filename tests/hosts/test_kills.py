"""Actors, nodes and heads killed at any moment: in runs, pipelines and trainings.

Where work is to go on it does, without them, else it ends: in one sentence, soon, either way.
"""

import random

import psutil
import pytest

from placement.api.resume import run_to_the_end
from placement.core.verb_options import RunOptions
from tests.hosts import kills, trainings
from tests.hosts.two_nodes import nodes
from tests.profiling.live import diamond, problem_of
from tests.thorough import either

# In `make test-hosts`, with pipelines, and channels that are made in a run and a training, all
# these are ten, and a head is killed under a run and a training at once.
RUNS, TRAININGS, HEADS = either((2, 1, 1), (5, 2, 5))
# To end with the head is no part of what a command does.
VERBS = either(("run",), ("train", "run"))
# From a kill to the sentence, and to the first step without the host: no hang.
SILENCE_S, GOES_ON_S = 10.0, 30.0


def is_told(told):
    """Whether one sentence has named the host in time."""
    is_one = "Host 'beta' left the cluster" in told.words and told.words.count(".") == 1
    return is_one and 0.0 < told.silence_s < SILENCE_S


@pytest.mark.parametrize("what", ["actor", "node"])
def test_runs_end_or_go_on_whoever_is_killed(cluster, tmp_path, capfd, what):
    model, chance = diamond(tmp_path), random.Random(0)
    for number in range(RUNS):
        resume = number % 2 == 0
        told = kills.during_a_run(cluster, what, model, chance, resume=resume)
        assert is_told(told), (number, told)
        assert 0.0 < told.goes_on_s < GOES_ON_S if resume else told.goes_on_s == 0.0
    assert "Unhandled error" not in capfd.readouterr().err, "Ray says it, too"


@pytest.mark.parametrize("what", ["actor", "node"])
def test_pipelines_end_or_go_on_whoever_is_killed(cluster, tmp_path, what):
    model, chance = diamond(tmp_path), random.Random(2)
    for resume in either((what == "node",), (False, True)):
        told = kills.during_a_stream(cluster, what, model, chance, resume=resume)
        assert is_told(told), told
        assert 0.0 < told.goes_on_s < GOES_ON_S if resume else told.goes_on_s == 0.0


@pytest.mark.parametrize("what", ["actor", "node"])
def test_trainings_lose_nothing_whoever_is_killed(cluster, what):
    model, chance, expected = trainings.opened(), random.Random(1), trainings.alone()
    for number in range(TRAININGS):
        resume = number % 2 == 0
        told, reached = kills.during_a_training(cluster, what, model, chance, resume=resume)
        assert is_told(told), (number, told)
        assert trainings.is_same(reached, expected) if resume else reached is None
        assert 0.0 < told.goes_on_s < GOES_ON_S if resume else told.goes_on_s == 0.0


@pytest.mark.parametrize("what", ["actor", "node"])
def test_whoever_connects_to_a_host_that_is_killed_goes_on(cluster, tmp_path, what):
    """Only the host that was killed is lost."""
    for work in either((goes_on_in_a_run,), (goes_on_in_a_run, goes_on_in_a_training)):
        work(cluster, what, tmp_path)


def goes_on_in_a_run(cluster, what, folder):
    victim = kills.when_hosts_connect(cluster, what)
    model, machine, heard = diamond(folder), cluster.machine(), []
    problem = problem_of(model, machine)
    apart = problem.placement_of([i % 2 for i in range(problem.num_units)])
    left, _, run = run_to_the_end(model, problem, apart, RunOptions(steps=2), emit=heard.append)
    names = {"alpha/cpu:0", "beta/cpu:0"} - lost_in(heard, what, victim)
    assert {d.name for d in left.machine.devices} == names and run.measured.outputs_match


def goes_on_in_a_training(cluster, what, folder):
    victim = kills.when_hosts_connect(cluster, what)
    opened, heard = trainings.opened(), []
    found = trainings.trained(opened, cluster.machine(), resume=True, seed=3, emit=heard.append)
    lost_in(heard, what, victim)
    assert trainings.is_same(found, trainings.alone())


def lost_in(heard, what, victim):
    """The devices that are told to be lost: those of beta, once, which was killed."""
    assert not victim.is_running() or victim.status() == psutil.STATUS_ZOMBIE
    told = [e["devices"] for e in heard if e["event"] == "lost"]
    # An actor goes on for a while after its node has ended, and a few steps are soon over.
    assert told == [["beta/cpu:0"]] or (what == "node" and not told)
    return {name for devices in told for name in devices}


@pytest.mark.parametrize("number", range(HEADS))
def test_what_runs_ends_with_the_head(copying, number):
    with nodes(settings=copying) as own:
        for told in kills.of_a_head(own, random.Random(number), VERBS):
            assert told.status == 2 and told.silence_s < SILENCE_S, told
            assert told.words.count("\n") == 1 and "The head of the Ray" in told.words, told
