"""The command line, the store and the lock on a disk that takes no more: one sentence, no loss."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import placement as pl
from placement.core.profile import profile_from_json
from placement.files.output import NotWritten, write_text
from profiling.measuring.lock import measuring
from profiling.measuring.store import ProfileStore
from studio.jobs import jobs
from tests.disks import files_up_to, without_rights
from tests.profiling.measuring.test_store import small

ROOT = Path(__file__).parents[1]
LIMIT_BYTES = 100
# Python lets a file that gets too large be an error instead of the end of the process. Its own
# compiled modules it would leave cut short.
LIMITED = f"""
import resource, runpy, sys
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT_BYTES}, {LIMIT_BYTES}))
sys.argv[0] = "placement"
runpy.run_module("placement", run_name="__main__")
"""
WITHOUT_RIGHTS = """
import runpy, sys
from pathlib import Path
from tests.disks import without_rights
with without_rights(Path(sys.argv.pop(1))):
    runpy.run_module("placement", run_name="__main__")
"""
CALL = 'runpy.run_module("placement", run_name="__main__")'
# The same command for each of two files that are named last, and the exit status of each.
FOR_EACH = """
import runpy, sys
def for_each():
    *given, first, second = sys.argv
    for out in (first, second):
        sys.argv = [*given, out]
        try:
            runpy.run_module("placement", run_name="__main__")
        except SystemExit as ended:
            print(ended.code)
"""
PLACE = ("place", "onnx-squeezenet", "--machine", "null-2", "--analytic", "--placer", "single")


def run(code, *arguments, **options):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, **options
    )


@pytest.mark.parametrize("kind", ["limit", "rights"])
def test_out_is_refused_in_a_sentence_and_what_stood_there_stays(tmp_path, kind):
    """One process writes over what is there, and then to where nothing is."""
    folder = tmp_path / "closed"
    folder.mkdir()
    outs = folder / "old.json", folder / "new.json"
    outs[0].write_text("old")
    given = (*PLACE, "--out", *outs)
    if kind == "limit":
        done = run(FOR_EACH + LIMITED.replace(CALL, "for_each()"), *given)
    else:
        done = run(FOR_EACH + WITHOUT_RIGHTS.replace(CALL, "for_each()"), folder, *given)
    assert (done.returncode, done.stdout.split()) == (0, ["2", "2"]), done.stderr
    cause = {"limit": "larger than files may be", "rights": "you have no right to"}[kind]
    for out, said in zip(outs, done.stderr.splitlines(), strict=True):
        assert str(out) in said and cause in said
    assert [p.name for p in folder.iterdir()] == ["old.json"]
    assert outs[0].read_text() == "old"


def test_an_answer_that_cannot_be_printed_is_one_sentence(tmp_path):
    with (tmp_path / "answer.json").open("w") as answer:
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, *PLACE, "--json"],
            cwd=ROOT,
            stdout=answer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert str(tmp_path / "answer.json") in done.stderr


def test_what_is_no_file_is_written_to_as_it_is(tmp_path):
    """Root could otherwise replace /dev/null by a file."""
    write_text(Path("/dev/null"), "text")
    assert Path("/dev/null").is_char_device()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "text"


def test_a_job_whose_events_are_cut_short_says_why(tmp_path):
    """Its events and the reason go to files that may not grow."""
    command = (sys.executable, "-c", LIMITED.replace(str(LIMIT_BYTES), "1000"))
    before = jobs.start(tmp_path, "place", ["onnx-squeezenet"], None, (sys.executable, "-c", SAYS))
    job_id = jobs.start(tmp_path, PLACE[0], [*PLACE[1:], "--jsonl"], None, command)
    while jobs.read(tmp_path, job_id).is_live or jobs.read(tmp_path, before).is_live:
        time.sleep(0.05)
    job = jobs.read(tmp_path, job_id)
    assert (job.status, job.result) == ("failed", None)
    events = tmp_path / "jobs" / job_id / "events.jsonl"
    assert str(events) in job.message and "larger than files may be here" in job.message
    assert jobs.read(tmp_path, before).result.value == 1


SAYS = 'print(\'{"event": "result", "value": 1, "unit": "s"}\')'


@pytest.fixture
def closed(tmp_path):
    """A home in which a profile was kept before nobody could write there any more."""
    store = ProfileStore(tmp_path / "home" / "profiles.sqlite")
    store.put(small())
    return store


def test_a_store_is_read_where_it_cannot_be_written(closed):
    with without_rights(closed.path.parent):
        assert closed.get("g", small().machine.fingerprint) == small()
        assert closed.others("g", "") == (small(),)
        with pytest.raises(NotWritten, match="you have no right to"):
            closed.put(small())
        assert ProfileStore(closed.path.parent / "sub" / "none.sqlite").get("g", "m") is None


def test_a_store_that_is_full_keeps_what_it_has(closed):
    with files_up_to(closed.path.stat().st_size), pytest.raises(NotWritten):
        for number in range(1000):
            closed.put(small(f"g{number}"))
    assert closed.get("g", small().machine.fingerprint) == small()


def test_what_cannot_be_kept_is_measured_all_the_same(tmp_path, monkeypatch, caplog):
    """It is used, told of, and handed to who listens: a page stores it once there is room."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(home))
    monkeypatch.setattr("profiling.measuring.kernels.profile", lambda *about: small())
    monkeypatch.setattr("placement.api.problems.require_present", lambda model, machine: None)
    model, told = pl.load("onnx-squeezenet"), []
    with without_rights(home):
        measured = pl.profile(model, small().machine, emit=told.append)
    assert measured == small()
    (event,) = (e for e in told if e["event"] == "not_kept")
    assert "you have no right to" in event["message"] and str(home) in caplog.text
    assert profile_from_json(json.loads(json.dumps(event["profile"]))) == small()


@pytest.mark.parametrize("is_there", [True, False])
def test_measuring_is_possible_where_no_lock_can_be_written(tmp_path, monkeypatch, is_there):
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(home if is_there else home / "studio"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))
    waited = []

    def give_up(message):
        waited.append(message)
        raise TimeoutError

    with without_rights(home), measuring("first"):
        # Another process still waits for it, because the lock lies among temporary files.
        code = (
            "import sys, tempfile; from pathlib import Path\n"
            "tempfile.gettempdir = lambda: sys.argv[2]\n"
            "from tests.disks import without_rights\n"
            "from profiling.measuring.lock import measuring\n"
            "def told(message): print(message); sys.exit(3)\n"
            "with without_rights(Path(sys.argv[1])), measuring('second', told): pass\n"
        )
        done = run(code, home, temporary)
        assert done.returncode == 3 and "(first)" in done.stdout, done.stderr
    with without_rights(home), without_rights(temporary), measuring("third", give_up):
        assert not waited


FAST = """
from placement.compiled.jit import jit

@jit
def double(number):
    return 2 * number
"""


@pytest.mark.parametrize("kind", ["limit", "rights"])
def test_what_is_compiled_runs_where_it_cannot_be_kept(tmp_path, kind):
    """Neither beside the source nor among the user's files."""
    (tmp_path / "probe.py").write_text(FAST)
    call = "sys.path.insert(0, sys.argv[1]); import probe; print(probe.double(21))"
    if kind == "limit":
        code = LIMITED.replace(CALL, call)
    else:
        code = WITHOUT_RIGHTS.replace(CALL, call)
        code = code.replace("sys.argv.pop(1)", "sys.argv[1]")
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = run(code, tmp_path, env={**os.environ, **home, "PYTHONDONTWRITEBYTECODE": "1"})
    assert (done.returncode, done.stdout.strip()) == (0, "42"), done.stderr
    assert not list(tmp_path.rglob("*.nb[ic]"))
