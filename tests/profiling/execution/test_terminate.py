"""A run that is cancelled (SIGTERM) ends at once and leaves nothing on the disk."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.profiling.live import diamond

ROOT = Path(__file__).parents[3]
# Where another thread is inside a call that does not end, and where the main one is: the handler
# of a signal that came right before a call must wait for its end.
IN_A_LANE = """
import threading, time
from placement import __main__
from placement.cli import verbs
from placement.core.machine import Device
from profiling.measuring.reference import release
from profiling.backends._ort.optimise import Folder
from profiling.backends.base import Program
from profiling.devices.lanes import Lane, Lanes

class Hanging(Program):
    def run(self, segment):
        print("\\"event\\": \\"span\\"", flush=True)
        time.sleep(3600)
    def outputs(self):
        return {}

def samples(options):
    folder, program = Folder(), Hanging()
    lanes = Lanes([Lane(Device("a"), (0,), ((),))], 1, program.run)
    try:
        lanes.step(3600.0)
    finally:
        release([program], [lanes])

verbs.samples = samples
__main__.main(["samples"])
"""
IN_THE_MAIN_THREAD = """
import ctypes
from placement import __main__
from placement.cli import verbs
from profiling.backends._ort.optimise import Folder

def samples(options):
    folder = Folder()
    library, lock = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    library.pthread_mutex_init(lock, None)
    library.pthread_mutex_lock(lock)
    print("\\"event\\": \\"span\\"", flush=True)
    # No signal ends this, and it takes no time of a processor.
    library.pthread_mutex_lock(lock)

verbs.samples = samples
__main__.main(["samples"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to be handled")
@pytest.mark.parametrize(
    "program",
    [None, IN_A_LANE, IN_THE_MAIN_THREAD],
    ids=["a run", "inside a lane's call", "inside a call of the main thread"],
)
def test_nothing_is_left_behind(tmp_path, program):
    diamond(tmp_path)
    path = str(tmp_path / "small.onnx")
    run = ("-m", "placement", "run", path, "--placer", "heft", "--analytic")
    arguments = ("-c", program) if program else (*run, "--steps", "1000000", "--jsonl")
    temporary, home = tmp_path / "tmp", tmp_path / "home"
    temporary.mkdir()
    process = subprocess.Popen(
        (sys.executable, *arguments),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary), "PLACEMENT_STUDIO_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert any('"event": "span"' in line for line in process.stdout), process.stderr.read()
        assert list(temporary.rglob("placement-ort-*"))
        assert program or (home / "measuring.json").exists()
        process.send_signal(signal.SIGTERM)
        # Long before the call that hangs would end by itself; a busy computer takes its time.
        _, said = process.communicate(timeout=300)
        assert process.returncode == 143 and "Traceback" not in said, said
        assert not list(temporary.glob("placement-ort-*"))
        assert not (home / "measuring.json").exists()
    finally:
        process.kill()
        process.communicate()
