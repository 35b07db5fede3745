"""What a confined process could not keep is compiled once, before it, outside."""

import json
import os
import signal
import subprocess
import sys
from argparse import Namespace

import pytest

from placement.cli import compiling, supervisor
from placement.cli.compiling import LANES
from placement.cli.options import make_parser
from placement.compiled.cache import note_warm
from profiling.sandbox import confinement


@pytest.fixture(autouse=True)
def compiled(tmp_path, monkeypatch):
    """A folder for compiled code that is empty, and numba at work."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    return tmp_path / "compiled"


def missing(*arguments):
    return compiling.missing(make_parser().parse_args(arguments))


def test_each_method_of_a_command_counts_at_its_kinds_of_problem():
    assert missing("place", "a.onnx") == ("heft:latency:segment", LANES)
    assert missing("place", "a.onnx", "--placer", "auto")[0] == "auto:latency:segment"
    compared = missing("compare", "a.pt2", "--placers", "heft,cpop", "--objective", "throughput")
    assert compared == ("heft:throughput:segment", "cpop:throughput:segment", LANES)
    assert missing("simulate", "a.onnx", "--placement", "p.json")[0] == "single:latency:segment"
    of_file = missing("place", "a.json", "--placer", "heft")
    assert of_file[:3] == tuple(f"heft:latency:{e}" for e in ("op", "segment", "call"))
    assert missing("placers") == ()


def test_what_was_compiled_is_not_compiled_again():
    for word in missing("place", "a.onnx"):
        note_warm(word)
    assert missing("place", "a.onnx") == ()
    assert missing("place", "a.onnx", "--placer", "cpop") == ("cpop:latency:segment",)


def test_where_nothing_is_compiled_or_kept_there_is_nothing_to_do(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert missing("place", "a.onnx") == ()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert missing("place", "a.onnx") == ()


@pytest.mark.parametrize(
    "word",
    [
        "single:latency:segment",
        pytest.param("single:throughput:call", marks=pytest.mark.only_thorough),
    ],
)
def test_the_process_notes_what_it_has_compiled(word, compiled):
    compiled.mkdir()
    # Uncompiled, as whether it is noted does not depend on it.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run(compiling.command(word), cwd=confinement.ROOT, env=environment, check=True)
    assert compiling.is_warm(word)


def test_it_is_told_meanwhile_and_what_fails_is_left_to_the_command(monkeypatch, capsys):
    monkeypatch.setattr(compiling, "missing", lambda options: ("heft:latency:segment", LANES))
    monkeypatch.setattr(compiling, "command", lambda word: [sys.executable, "-c", "1 / 0"])
    assert supervisor._compile_before(Namespace(jsonl=True)) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(event["step"], event["of"]) for event in told] == [(0, 2), (1, 2)]
    assert all("compiling, once" in event["what"] for event in told)


def test_a_command_that_is_told_to_end_meanwhile_ends(monkeypatch):
    ends = f"import os; os.kill(os.getpid(), {int(signal.SIGTERM)})"
    monkeypatch.setattr(compiling, "missing", lambda options: (LANES,))
    monkeypatch.setattr(compiling, "command", lambda word: [sys.executable, "-c", ends])
    assert supervisor._compile_before(Namespace(jsonl=False)) == 128 + signal.SIGTERM
