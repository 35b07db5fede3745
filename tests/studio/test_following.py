"""Learners followed in processes of their own: what comes back, how far they are, how they end."""

import os
import re
import signal

import pytest

import placement as pl
from studio import following
from tests.instances import random_problem

PATIENCE_S = 120
LONG = {"max_iterations": 100_000}


@pytest.fixture
def problem():
    return random_problem(1, num_ops=20, num_devices=3)


def searching(problem, placer):
    """A search that goes on for minutes, once it has told of a batch."""
    found = following.start(problem, placer, 5, LONG)
    while not found.doing.startswith("batch"):
        assert not found.done.wait(0.02), found.result()
    return found


def test_the_steps_are_those_of_this_process_and_are_kept(problem):
    found = following.start(problem, "mutation", 5, {"max_iterations": 3})
    assert following.start(problem, "mutation", 5, {"max_iterations": 3}) is found
    told = found.result()
    here = pl.steps(problem, "mutation", most=5, settings={"max_iterations": 3})
    assert (told.placer, told.pseudo_code, told.steps) == (
        here.placer,
        here.pseudo_code,
        here.steps,
    )
    assert told.problem is problem and told.placement == here.placement
    assert found.doing == f"step {len(told.steps)}" and found.seconds > 0
    placed = pl.place(problem, "mutation", settings={"max_iterations": 3})
    assert found.account == placed.account


def test_one_that_is_stopped_says_so_and_can_be_followed_again(problem):
    found = searching(problem, "mutation")
    assert 0 < found.share < 1 and re.fullmatch(r"batch \d+ of \d+", found.doing)
    found.stop()
    assert found.done.wait(PATIENCE_S) and not found.is_there
    with pytest.raises(ValueError, match="Stopped before it finished"):
        found.result()
    assert following.find(problem, "mutation") is found
    following.forget(problem, "mutation")
    assert following.find(problem, "mutation") is None


def test_a_process_that_is_gone_is_told_in_a_sentence(problem):
    found = searching(problem, "mutation")
    os.kill(found._process.pid, signal.SIGKILL)
    with pytest.raises(ValueError, match="'mutation' ended before it had steps to show"):
        found.result()
    following.forget(problem, "mutation")


def test_what_a_method_refuses_is_told_in_its_words(problem):
    found = following.start(problem, "mutation", 5, {"nonsense": 1})
    with pytest.raises(ValueError, match="has no setting 'nonsense'"):
        found.result()
    following.forget(problem, "mutation")


def test_a_search_that_nobody_looks_at_ends_when_another_begins(problem, monkeypatch):
    forgotten = searching(problem, "mutation")
    watched = following.start(problem, "random_search", 5, LONG)
    assert following.find(problem, "mutation") is forgotten, "it may be looked at again soon"
    monkeypatch.setattr(following, "UNWATCHED_S", 0.0)
    other = random_problem(2, num_ops=20, num_devices=3)
    last = following.start(other, "mutation", 5, {"max_iterations": 1})
    assert forgotten.done.wait(PATIENCE_S) and not forgotten.is_there
    assert watched.is_stopped and last.result().steps
