"""Learners followed in processes of their own: what comes back, how far they are, how they end."""

import dataclasses
import os
import re
import signal
from types import SimpleNamespace

import pytest

import placement as pl
from placement.advice.warming import word_of
from placement.compiled.cache import note_warm
from studio import following
from tests.instances import random_problem

PATIENCE_S = 120
LONG = {"max_iterations": 100_000}


@pytest.fixture
def problem():
    """The same content for each test, and nothing known of it."""
    posed = random_problem(1, num_ops=20, num_devices=3)
    yield posed
    for found in (following.find(posed, placer) for placer in ("mutation", "random_search")):
        if found is not None:
            following.forget(found)
            assert found.done.wait(PATIENCE_S)


def searching(problem, placer):
    """A search that goes on for minutes, once it has told of a batch."""
    found = following.start(problem, placer, 5, LONG)
    while not found.doing.startswith("batch"):
        assert not found.done.wait(0.02), found.result()
        assert following.start(problem, placer, 5, LONG) is found
    return found


def test_the_steps_are_those_of_this_process_and_are_kept(problem):
    found = following.start(problem, "mutation", 5, {"max_iterations": 3})
    # The same problem posed anew is the same walk, and no other is.
    posed = dataclasses.replace(problem)
    assert following.start(posed, "mutation", 5, {"max_iterations": 3}) is found
    device = problem.machine.devices[0].name
    pinned = dataclasses.replace(posed, pins=((problem.graph.ops[0].name, device),))
    renamed = dataclasses.replace(posed, machine=dataclasses.replace(posed.machine, name="other"))
    for other in (pinned, renamed, dataclasses.replace(posed, unit="ms")):
        assert following.find(other, "mutation") is None
    told = found.result()
    here = pl.steps(problem, "mutation", most=5, settings={"max_iterations": 3})
    assert (told.placer, told.pseudo_code, told.steps) == (
        here.placer,
        here.pseudo_code,
        here.steps,
    )
    assert told.problem is problem and told.placement == here.placement
    assert found.doing == f"step {len(told.steps)}" and told.seconds > 0
    placed = pl.place(problem, "mutation", settings={"max_iterations": 3})
    assert told.account == here.account == placed.account != ""
    assert told.bound_s == here.bound_s


def test_one_that_is_stopped_says_so_and_two_who_follow_it_again_share_one_search(problem):
    found = searching(problem, "mutation")
    assert 0 < found.share < 1 and re.fullmatch(r"batch \d+ of \d+", found.doing)
    found.stop()
    assert found.done.wait(PATIENCE_S) and not found.is_there
    with pytest.raises(ValueError, match="Stopped before it finished"):
        found.result()
    assert following.find(problem, "mutation") is found
    following.forget(found)
    assert following.find(problem, "mutation") is None
    again = following.start(problem, "mutation", 5, LONG)
    following.forget(found)
    assert following.start(problem, "mutation", 5, LONG) is again and not again.is_stopped
    following.forget(again)
    assert again.done.wait(PATIENCE_S) and again.is_stopped, "none goes on that is not known"
    assert following.find(problem, "mutation") is None


def test_a_process_that_is_gone_is_told_in_a_sentence(problem):
    found = searching(problem, "mutation")
    os.kill(found._process.pid, signal.SIGKILL)
    with pytest.raises(ValueError, match="'mutation' ended before it had steps to show"):
        found.result()
    following.forget(found)


def test_what_a_method_refuses_is_told_in_its_words(problem):
    found = following.start(problem, "mutation", 5, {"nonsense": 1})
    with pytest.raises(ValueError, match="has no setting 'nonsense'"):
        found.result()
    following.forget(found)


def test_a_search_that_nobody_looks_at_ends_where_another_goes_on(problem, monkeypatch):
    """What has ended by then lets it go on."""
    ended = following.start(problem, "random_search", 5, {"max_iterations": 1})
    assert ended.result().steps
    forgotten = searching(problem, "mutation")
    with monkeypatch.context() as patch:
        patch.setattr(following, "UNWATCHED_S", 0.0)
        assert following.start(problem, "random_search", 5, {"max_iterations": 1}) is ended
        assert not forgotten.is_stopped
    following.forget(ended)
    watched = following.start(problem, "random_search", 5, LONG)
    assert following.find(problem, "mutation") is forgotten, "it may be looked at again soon"
    assert not forgotten.is_stopped
    monkeypatch.setattr(following, "UNWATCHED_S", 0.0)
    assert following.start(problem, "random_search", 5, LONG) is watched
    assert forgotten.done.wait(PATIENCE_S) and not forgotten.is_there
    assert following.find(problem, "mutation") is None and not watched.is_stopped
    following.forget(watched)
    assert watched.done.wait(PATIENCE_S)


def test_a_search_goes_on_until_nobody_has_asked_for_long(problem, monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(following, "time", clock)
    monkeypatch.setattr(following, "ALONE_S", 0.1)
    left = following.start(problem, "mutation", 5, LONG)
    clock.monotonic = lambda: 0.08
    assert following.start(problem, "mutation", 5, LONG) is left
    clock.monotonic = lambda: 0.15
    assert not left.done.wait(0.3) and following.find(problem, "mutation") is left
    clock.monotonic = lambda: 0.2
    assert left.done.wait(PATIENCE_S) and not left.is_there
    assert following.find(problem, "mutation") is None, "who comes back begins anew"


def test_what_was_compiled_before_shows_its_steps_at_once(problem, tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kind = problem.objective, problem.execution
    # For its steps, as they were followed, or for placing, as `make run` does for all methods.
    for placer, word in (("etf", word_of("etf:steps", *kind)), ("peft", word_of("peft", *kind))):
        assert not following.is_compiled(problem, placer)
        note_warm(word)
        assert following.is_compiled(problem, placer)


def test_where_nothing_is_compiled_or_kept_no_process_is_worth_its_time(
    problem, tmp_path, monkeypatch
):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert following.is_compiled(problem, "cpop")
    monkeypatch.delenv("NUMBA_DISABLE_JIT")
    assert not following.is_compiled(problem, "cpop")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert following.is_compiled(problem, "cpop")
