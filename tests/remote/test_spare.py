"""A process that waits for a file: confined as every other, and no slower to say what is wrong."""

import os
import signal
import subprocess
import sys
import time

import pytest

import placement as pl
from placement import loaders
from placement.remote import spare
from profiling.sandbox import confinement, landlock
from tests.remote.test_remote import model_file, same

__all__ = ["model_file"]
PATIENCE_S = 60
READING = """
import sys
def main():
    try:
        print(open(sys.stdin.readline().strip()).read())
    except OSError as error:
        print(type(error).__name__)
"""
THREADED = (
    "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
)


@pytest.fixture
def kept(monkeypatch):
    monkeypatch.setattr(spare, "REST_S", 0.0)
    spare.keep()
    wait()
    yield
    spare.stop()
    assert not spare.is_ready()


def wait():
    end_s = time.monotonic() + PATIENCE_S
    while not spare.is_ready():
        assert time.monotonic() < end_s, "no process waits"
        time.sleep(0.05)


def test_it_reads_one_file_and_another_takes_its_place(kept, model_file, tmp_path):
    for _ in range(2):
        wait()
        same(pl.load(str(model_file)), loaders.load(str(model_file)))
    wait()
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model at all")
    with pytest.raises(ValueError, match=r"broken\.onnx"):
        pl.load(str(broken))


def waiting(folder, text):
    """A waiting process for a module with this text, and what it says first."""
    (folder / "code").mkdir()
    (folder / "code" / "a_module.py").write_text(text)
    child = subprocess.Popen(
        confinement.waiting_command("a_module", ()),
        env={**confinement.waiting_variables(os.environ), "PYTHONPATH": path(folder / "code")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    return child, child.stdout.read(1)


def path(folder):
    return os.pathsep.join((str(folder), str(confinement.ROOT)))


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize(("name", "found"), [("model/m.onnx", "a model"), ("secret", "Permission")])
def test_it_is_confined_once_it_has_its_file(tmp_path, name, found):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "m.onnx").write_text("a model")
    (tmp_path / "secret").write_text("a secret")
    child, said = waiting(tmp_path, READING)
    assert said == confinement.READY
    limits = confinement.limits_for(str(tmp_path / "model" / "m.onnx"))
    out, _ = child.communicate(confinement.told(limits) + str(tmp_path / name).encode(), PATIENCE_S)
    assert out.decode().startswith(found)


@pytest.mark.skipif(sys.platform != "linux", reason="only there limits bind threads one by one")
def test_one_with_threads_does_not_wait(tmp_path):
    child, said = waiting(tmp_path, THREADED)
    _, error = child.communicate(timeout=PATIENCE_S)
    assert said == b"" and child.returncode and b"threads" in error


def test_it_ends_with_who_would_have_sent_it_a_file(tmp_path):
    child, said = waiting(tmp_path, READING)
    child.send_signal(signal.SIGINT)
    out, error = child.communicate(timeout=PATIENCE_S)
    assert said == confinement.READY and (out, error, child.returncode) == (b"", b"", 0)


def test_it_ends_quietly_where_nobody_waits_for_it_any_more(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    (tmp_path / "a_module.py").write_text(READING)
    done = subprocess.run(
        confinement.waiting_command("a_module", ()),
        env={**confinement.waiting_variables(os.environ), "PYTHONPATH": path(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
