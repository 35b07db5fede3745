"""Confined processes: what they may not do is tried, by a process that does it."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from profiling.sandbox import confinement, landlock, seccomp
from profiling.sandbox.confinement import Limits

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock is of Linux")
TIMEOUT_S = 120


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.onnx").write_text("a model")
    (tmp_path / "secret").write_text("a secret")
    return tmp_path


def tried(folder, what, value, **changed):
    """What came of an attempt by a process that is confined to the model in `folder`."""
    path = str(folder / "model" / "model.onnx")
    limits = confinement.limits_for(path, writable=changed.pop("writable", ()))
    limits = Limits(
        changed.get("memory_bytes", limits.memory_bytes),
        changed.get("cpu_s", limits.cpu_s),
        limits.readable,
        limits.writable,
    )
    with confinement.own_folder() as (_, environment):
        command = confinement.command(
            limits, "tests.profiling.sandbox.confined_probe", (what, str(value))
        )
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
        )


def answer(*arguments, **changed):
    done = tried(*arguments, **changed)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.strip()


def answers(folder, *attempts, **changed):
    """What came of several attempts by one such process, each a name and a value."""
    named = [(what, str(value)) for what, value in attempts]
    return answer(folder, "each", json.dumps(named), **changed).splitlines()


needs_landlock = pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")


@needs_landlock
def test_it_reads_the_models_folder_and_no_other(folder):
    link = folder / "model" / "link"
    link.symlink_to(folder / "secret")
    paths = (folder / "model" / "model.onnx", folder / "secret", link)
    found = answers(folder, *(("read", path) for path in paths))
    assert found == ["a model", "PermissionError", "PermissionError"]


@on_linux
def test_the_folder_it_is_started_in_is_no_folder_of_code(folder, monkeypatch):
    """It may be one of downloads, with a module of the standard library's name beside the model."""
    downloads = folder / "downloads"
    downloads.mkdir()
    (downloads / "json.py").write_text("raise SystemExit('code of a stranger')")
    (downloads / "other").write_text("a secret")
    monkeypatch.chdir(downloads)
    assert answer(folder, "read", folder / "model" / "model.onnx") == "a model"
    if landlock.version():
        assert answer(folder, "read", downloads / "other") == "PermissionError"


@needs_landlock
def test_it_writes_only_where_it_was_told_to(folder):
    (folder / "out").mkdir()
    target = folder / "out" / "new"
    refused = (folder / "model" / "new", folder / "model" / "model.onnx", target)
    found = answers(folder, *(("write", path) for path in refused))
    assert found == ["PermissionError"] * 3
    assert answer(folder, "write", target, writable=(str(folder / "out"),)) == "written"
    assert target.read_text() == "written"


@needs_landlock
def test_it_may_not_change_what_others_load_as_code(folder, tmp_path, monkeypatch):
    compiled = tmp_path / "compiled"
    compiled.mkdir()
    (compiled / "index").write_text("code")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(compiled))
    assert answer(folder, "write", compiled / "index") == "PermissionError"
    with confinement.own_folder() as (own, environment):
        assert Path(environment["NUMBA_CACHE_DIR"]).is_relative_to(own)


def test_what_others_have_compiled_is_found_and_left_alone(folder, tmp_path, monkeypatch):
    shared = tmp_path / "compiled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(shared))
    assert answer(folder, "compiled", 7) == "0 found, 1 made"
    assert not shared.exists()
    program = "from tests.profiling.sandbox.confined_probe import compiled; print(compiled(7))"
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=confinement.ROOT, capture_output=True, text=True
    )
    assert run.stdout.strip() == "0 found, 1 made", run.stderr
    before = {path: path.stat().st_mtime_ns for path in shared.rglob("*")}
    assert answer(folder, "compiled", 7) == "1 found, 0 made"
    assert {path: path.stat().st_mtime_ns for path in shared.rglob("*")} == before


@pytest.mark.skipif(landlock.version() < 4, reason="Landlock knows networks from version 4 on")
def test_it_opens_no_connection(folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = answers(folder, ("connect", port), ("listen", 0))
    assert found == ["PermissionError"] * 2


@pytest.mark.skipif(not seccomp.is_known(), reason="no filter for this processor")
def test_it_opens_no_socket_and_types_nothing(folder):
    with socket.socket(socket.AF_UNIX) as bus:
        bus.bind(str(folder / "bus"))
        bus.listen()
        found = answers(
            folder,
            ("speak", folder / "bus"),
            ("send", 9),
            ("type_in", "x"),
            ("ring", 8),
            ("pair", "to itself"),
        )
    assert found == [*["PermissionError"] * 4, "to itself"]


@pytest.mark.skipif(landlock.version() < 6, reason="Landlock knows signals from version 6 on")
def test_it_signals_nobody_else(folder):
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert answer(folder, "end", other.pid) == "PermissionError"
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@on_linux
def test_memory_has_a_limit_until_the_file_is_read(folder):
    assert answer(folder, "allocate", 2**26) == str(2**26)
    assert answer(folder, "allocate", 2**28, memory_bytes=2**27) == "MemoryError"
    assert answer(folder, "after_reading", 2**28, memory_bytes=2**27) == str(2**28)
    assert answer(folder, "far_too_much", 2**20) == "MemoryError"


def test_the_processors_time_has_a_limit(folder):
    done = tried(folder, "spin", 30, cpu_s=0.5)
    assert done.returncode == -signal.SIGPROF
    assert "too long" in confinement.ending(done.returncode, "model.onnx")


def test_a_deadline_ends_a_native_call_too(folder):
    done = tried(folder, "hang", 0.5)
    assert done.returncode == -signal.SIGALRM
    assert "time limit" in confinement.ending(done.returncode, "model.onnx")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGKILL])
def test_a_crash_is_one_sentence(folder, number):
    done = tried(folder, "crash", int(number))
    assert done.returncode == -number and done.stderr == ""
    said = confinement.ending(done.returncode, "model.onnx")
    assert "'model.onnx'" in said and "\n" not in said and said.endswith(".")


def test_native_logs_are_not_heard_and_ours_are(folder):
    done = tried(folder, "log", "text")
    assert done.stdout.strip() == "logged" and done.stderr == "ours text\n"


@on_linux
@pytest.mark.parametrize("is_up", [False, True], ids=["before it is confined", "afterwards"])
def test_it_ends_with_who_started_it(is_up, folder):
    """Its work takes a minute; nobody waits for that."""
    code = (
        "import subprocess, sys, time; from profiling.sandbox import confinement as c;"
        f"limits = c.limits_for({str(folder / 'model' / 'model.onnx')!r});"
        "command = c.command(limits, 'tests.profiling.sandbox.confined_probe', ('hang', '600'));"
        "environment = c.own_folder().__enter__()[1];"
        "print(subprocess.Popen(command, env=environment).pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = psutil.Process(int(parent.stdout.readline()))
    if is_up:
        assert parent.stdout.readline() == "hangs\n"
    parent.kill()
    parent.wait()
    child.wait(timeout=30)
    parent.stdout.close()


def test_limits_grow_with_the_file(folder):
    small = confinement.limits_for(str(folder / "model" / "model.onnx"))
    (folder / "large.onnx").write_bytes(b"\0")
    os.truncate(folder / "large.onnx", 10**9)
    large = confinement.limits_for(str(folder / "large.onnx"))
    assert large.memory_bytes > small.memory_bytes + 10**9 and large.cpu_s > small.cpu_s
    assert small.memory_bytes < 2 * 10**9, "a small file gets little"
