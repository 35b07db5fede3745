"""Mutated files of every kind, the same at each run: opened, or refused in one sentence."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.cases import run_cases, shares
from tests.fuzz.kinds import KINDS, seeds_of
from tests.fuzz.worker import fault_of, write_case
from tests.thorough import either

# `make fuzz` tries these 2 000 as well, beside 20 000 fresh ones.
NUM_CASES = either(300, 2_000)
SEED = "1"


@pytest.mark.thorough
def test_mutated_files_are_opened_or_refused(tmp_path):
    """All kinds in one test: the processes that open them take cases of any kind."""
    faults = run_cases(shares(NUM_CASES), SEED, tmp_path)
    again = f"python -m tests.fuzz --seed {SEED} --kind"
    assert not [f"{again} {f.kind} --case {f.number}: {f.said}" for f in faults]


def test_cases_are_spread_over_all_kinds():
    numbers = {kind: [n for k, n in shares(NUM_CASES) if k == kind] for kind in KINDS}
    assert all(
        ns == list(range(len(ns))) and len(ns) >= NUM_CASES // len(KINDS) for ns in numbers.values()
    )


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("onnx", "pt2", "project")])
def test_an_unchanged_file_is_opened(kind, tmp_path, monkeypatch):
    """Else the mutated ones would be refused for something else."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"right{KINDS[kind].suffix}"
    path.write_bytes(seeds_of(kind)[0])
    KINDS[kind].use(KINDS[kind].read(path))


def test_a_case_is_the_same_under_any_hash_seed(tmp_path):
    """In a process with another one than this process has: its own, or a random one."""
    cases = [(kind, n) for kind in ("problem", "workload", "run", "inputs") for n in range(5)]
    here = [_digest(*case, tmp_path) for case in cases]
    script = (
        "import json, pathlib, sys; from tests.fuzz.test_mutated_files import _digest\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "digests = [_digest(*case, folder) for case in json.loads(sys.argv[2])]\n"
        "print(json.dumps([hash('placement'), digests]))"
    )
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    there = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), json.dumps(cases)],
        cwd=Path(__file__).parents[2],
        env={"PYTHONHASHSEED": hash_seed, "PLACEMENT_STUDIO_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    other_hash, digests = json.loads(there.stdout)
    assert other_hash != hash("placement"), "the hash seeds do not differ"
    assert digests == here
    assert len(set(here)) > 15, "the cases do not differ"


def _digest(kind, number, folder):
    return hashlib.sha256(write_case(kind, "7", number, folder).read_bytes()).hexdigest()


BAD = {
    "another exception": lambda path: {}["x"],
    "a subclass": lambda path: b"\xff".decode(),
    "two lines": lambda path: _refuse(f"{path.name} is bad\nvery bad"),
    "no name": lambda path: _refuse("it is bad"),
    "too long": lambda path: _refuse(path.name + "x" * 2_000),
    "nothing said": lambda path: _refuse(""),
}


def _refuse(said):
    raise ValueError(said)


@pytest.mark.parametrize("read", BAD.values(), ids=list(BAD))
def test_what_is_no_sentence_is_a_fault(read, tmp_path, monkeypatch):
    monkeypatch.setitem(vars(KINDS["names"]), "read", read)
    path = tmp_path / "x.json"
    path.write_text("[]")
    assert fault_of("names", path)


def test_one_sentence_with_the_name_is_none(tmp_path, monkeypatch):
    monkeypatch.setitem(vars(KINDS["names"]), "read", lambda path: _refuse(f"{path.name} is bad."))
    path = tmp_path / "x.json"
    path.write_text("[]")
    assert fault_of("names", path) == ""


ENDS = {
    "import os; os._exit(7)": "status 7",
    "import time; time.sleep(60)": "took more than",
    "while True: pass": "took more than",
    "x = bytearray(3 * 2**30)": "MemoryError",
}


@pytest.mark.parametrize("code", ENDS, ids=["dies", "sleeps", "hangs", "eats memory"])
def test_a_case_that_ends_its_process_is_told_and_the_next_one_runs(code, tmp_path, monkeypatch):
    """Case 1 of the kind misbehaves; its file is kept, and cases 0 and 2 are none the worse."""
    monkeypatch.setattr("tests.fuzz.cases.CASE_S", 0.3)
    monkeypatch.setattr("tests.fuzz.cases.WAIT_S", 5.0 if "sleep" in code else 60.0)
    monkeypatch.setattr("tests.fuzz.cases.PROGRAM", ["-c", _worker_that(code)])
    (fault,) = run_cases([("names", n) for n in range(3)], SEED, tmp_path)
    assert (fault.kind, fault.number) == ("names", 1) and ENDS[code] in fault.said
    right = write_case("names", SEED, 1, tmp_path / "..").read_bytes()
    assert (tmp_path / "names-1.json").read_bytes() == right


def _worker_that(code):
    """A worker in which reading the file of case 1 runs the code."""
    return (
        "import sys; from tests.fuzz import kinds, worker\n"
        "def read(path):\n"
        "    if path.stem == 'names-1':\n"
        f"        exec({json.dumps(code)})\n"
        "vars(kinds.KINDS['names'])['read'] = read\n"
        "vars(kinds.KINDS['names'])['use'] = lambda value: None\n"
        "worker.main(*sys.argv[1:])"
    )
