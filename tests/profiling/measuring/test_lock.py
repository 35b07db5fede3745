"""One measuring job at a time, across threads and processes, and none left by the dead."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from profiling.measuring.lock import holder, measuring

ROOT = Path(__file__).parents[3]
HOLD = """
import sys, pathlib
from profiling.measuring.lock import measuring
with measuring("a long run", folder=pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the lock until it reads a line."""
    process = subprocess.Popen(
        (sys.executable, "-c", HOLD, str(tmp_path)),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_waits_and_hears_for_whom(tmp_path, other):
    told = []

    def on_wait(message: str) -> None:
        told.append(message)
        other.stdin.write("go\n")
        other.stdin.flush()

    with measuring("mine", on_wait, folder=tmp_path):
        assert told == [f"Waiting for process {other.pid} (a long run) to end measuring."]
        assert other.wait() == 0
    assert holder(tmp_path) is None


def test_one_who_has_taken_its_note_away_and_not_let_go_yet_is_nobody_else(tmp_path):
    told, moments = [], iter(["takes its note away", "lets go"])
    first = FileLock(tmp_path / "measuring.lock")
    first.acquire()
    note = tmp_path / "measuring.json"
    note.write_text('{"pid": 7, "what": "a long run"}')

    def pass_a_moment(_: float) -> None:
        if next(moments) == "lets go":
            first.release()
        else:
            note.unlink()

    with measuring("mine", told.append, folder=tmp_path, sleep=pass_a_moment):
        assert told == ["Waiting for process 7 (a long run) to end measuring."]


def test_a_killed_process_holds_nothing(tmp_path, other):
    assert holder(tmp_path).what == "a long run"
    with measuring("mine", lambda message: other.kill(), folder=tmp_path):
        assert holder(tmp_path).what == "mine"


def test_waiting_can_be_given_up(tmp_path, other):
    class Cancelled(Exception):
        pass

    def cancel(message: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled), measuring("mine", cancel, folder=tmp_path):
        raise AssertionError("the other process still measures")
    assert holder(tmp_path).pid == other.pid


def test_threads_take_turns(tmp_path):
    inside, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal inside, most
        with measuring("work", folder=tmp_path, sleep=lambda s: threading.Event().wait(0.001)):
            with lock:
                inside += 1
                most = max(most, inside)
            threading.Event().wait(0.005)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, inside) == (1, 0)


def test_a_holder_may_ask_again_and_an_error_frees_the_lock(tmp_path):
    with pytest.raises(RuntimeError), measuring("outer", folder=tmp_path):
        with measuring("inner", folder=tmp_path):
            pass
        assert holder(tmp_path).what == "outer"
        raise RuntimeError
    assert holder(tmp_path) is None


def test_nobody_measures_where_nobody_ever_did(tmp_path):
    assert holder(tmp_path / "never") is None


@pytest.mark.parametrize("note", [None, '{"pid": 2147483647, "what": "dead"}'])
def test_asking_does_not_touch_the_lock_where_nobody_lives(tmp_path, monkeypatch, note):
    """It would make a job that starts in that moment wait."""
    if note is not None:
        (tmp_path / "measuring.json").write_text(note)

    def taken(lock):
        raise AssertionError("the lock was tried")

    monkeypatch.setattr("profiling.measuring.lock._taken", taken)
    assert holder(tmp_path) is None
