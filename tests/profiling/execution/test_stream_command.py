"""`run --objective throughput` on the command line: its answer, its events, and cancelling it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from placement.__main__ import main
from profiling.devices.cores import usable_cores
from tests.profiling.live import diamond
from tests.studio.opened_once import opened_once

__all__ = ["opened_once"]

ROOT = Path(__file__).parents[3]
RUN = (sys.executable, "-m", "placement", "run")
THROUGHPUT = ("--placer", "local_search", "--objective", "throughput")


def started(tmp_path, *arguments):
    home = {"PLACEMENT_STUDIO_HOME": str(tmp_path / "home")}
    return subprocess.Popen(
        (*RUN, *arguments, *THROUGHPUT),
        cwd=ROOT,
        env={**os.environ, **home},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def answer(tmp_path, capsys):
    """Calls the command with a small model; what it prints as JSON lines."""

    def call(*arguments):
        diamond(tmp_path)
        status = main(["run", str(tmp_path / "small.onnx"), *arguments, *THROUGHPUT, "--jsonl"])
        printed = capsys.readouterr()
        assert status == 0, printed.err
        return [json.loads(line) for line in printed.out.splitlines()]

    return call


@pytest.mark.skipif(len(usable_cores()) < 2, reason="two lanes need two cores")
def test_the_answer_of_a_live_pipeline(answer):
    events = answer("--machine", "two-lanes", "--steps", "200")
    result = events[-1]
    assert result["event"] == "result" and not result["emulated"]
    assert result["outputs_match"] is True and result["bit_equal"] is True
    assert result["samples"] == 200 and not result["cancelled"]
    assert result["samples_per_s"] > 0 and result["predicted_samples_per_s"] > 0
    assert result["bottleneck"] in result["actual_devices"]
    assert result["lanes_note"] == "Lanes ran natively, without the interpreter's lock."
    wanted_s = result["predicted_s"] / result["step_s"]["median"] - 1
    assert result["error"] == pytest.approx(wanted_s)
    assert result["predicted_s"] == pytest.approx(1 / result["predicted_samples_per_s"])
    assert result["step_s"]["p5"] <= result["step_s"]["median"] <= result["step_s"]["p95"]
    assert set(result["busy_s"]) == {"cpu:0", "cpu:1"} <= set(result["loads_s"])
    assert [e["index"] for e in events if e["event"] == "step"] == list(range(200))


def test_the_answer_on_a_virtual_clock(answer):
    events = answer("--machine", "null-2", "--steps", "7")
    result = events[-1]
    assert result["emulated"] and result["outputs_match"] is None
    assert result["samples_per_s"] == pytest.approx(result["predicted_samples_per_s"])
    assert result["error"] == pytest.approx(0.0)
    assert [e["index"] for e in events if e["event"] == "step"] == list(range(7))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to be handled")
def test_cancelled_in_the_middle_it_tells_of_the_samples_that_came_out(tmp_path):
    diamond(tmp_path)
    process = started(tmp_path, str(tmp_path / "small.onnx"), "--steps", "1000000", "--jsonl")
    events = []
    try:
        for line in process.stdout:
            events.append(json.loads(line))
            if events[-1].get("index") == 500:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGTERM)  # Who asks twice wants no less.
                break
        # Not by `communicate`, which skips what is buffered behind the lines read so far.
        events += [json.loads(line) for line in process.stdout]
        said = process.stderr.read()
        process.wait(timeout=30)
    finally:
        process.kill()
        process.communicate()
    steps = [e["index"] for e in events if e["event"] == "step"]
    assert process.returncode == 143 and "Traceback" not in said, said
    assert len(steps) > 500 and steps == list(range(len(steps)))
    result = events[-1]
    assert result["event"] == "result" and result["cancelled"]
    assert result["samples"] == len(steps) < 1_000_000
    assert result["outputs_match"] is True and result["outputs_compared"] > len(steps)
    assert result["samples_per_s"] > 0 and result["baseline_s"] == {}
    assert not (tmp_path / "home" / "measuring.json").exists()


PATIENT = """
import time
from placement.remote.signals import Stop, partly
stop = Stop()
with partly(stop, lambda event: print(event["event"], flush=True), patience_s=0.2) as emit:
    emit({"event": EVENT})
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to be handled")
@pytest.mark.parametrize("event", ["progress", "step"])
def test_what_does_not_come_to_its_end_is_ended(event):
    """Before the first step at once, after it when patience runs out."""
    code = PATIENT.replace("EVENT", repr(event))
    process = subprocess.Popen(
        (sys.executable, "-c", code), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline().strip() == event
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == -signal.SIGTERM
    finally:
        process.kill()
        process.communicate()
