"""Cases dealt out to processes with limits, and what became of them."""

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.fuzz.kinds import KINDS

ROOT = Path(__file__).parents[2]
# Of a processor, so that a busy computer is no fault; and of the clock, for one that only waits.
CASE_S = 30.0
WAIT_S = 240.0
# The first case of a process also has to import and compile.
FIRST_CASE_S = 600.0
_LOOK_S = 0.5
NUM_WORKERS = 2
PROGRAM = ["-m", "tests.fuzz.worker"]
# Of one process: a library that keeps memory must not make the last case fail for the first.
MOST_CASES = 1_000
# One thread per library: 2 GB are for what a file makes the program do, not for stacks.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

Case = tuple[str, int]


@dataclass(frozen=True)
class Fault:
    """A case that went wrong, and how."""

    kind: str
    number: int
    said: str


def shares(num_cases: int, kinds: Sequence[str] = ()) -> list[Case]:
    """That many cases in equal shares over the kinds, the first numbers of each."""
    names = tuple(kinds) or tuple(KINDS)
    return [(names[i % len(names)], i // len(names)) for i in range(num_cases)]


def run_cases(
    cases: Iterable[Case],
    seed: str,
    folder: Path,
    told: Callable[[Fault], object] = lambda fault: None,
) -> list[Fault]:
    """The faults among cases, in order of kind and number; their files are copied to `folder`."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(KINDS[case[0]].group, []).append(case)
    blocks = [
        group[begin : begin + MOST_CASES]
        for group in groups.values()
        for begin in range(0, len(group), MOST_CASES)
    ]
    faults: list[Fault] = []

    def work(block: Sequence[Case]) -> None:
        for fault in _faults_of(block, seed, folder):
            told(fault)
            faults.append(fault)

    with ThreadPoolExecutor(NUM_WORKERS) as threads:
        list(threads.map(work, blocks))
    order = list(KINDS)
    return sorted(faults, key=lambda fault: (order.index(fault.kind), fault.number))


def _faults_of(block: Sequence[Case], seed: str, kept: Path) -> Iterable[Fault]:
    """Run a block of cases in one process, and after one that ended it in another."""
    left = list(block)
    while left:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, _Worker(seed, folder) as worker:
            is_first = True
            while left:
                kind, number = left.pop(0)
                said = worker.answer(kind, number, FIRST_CASE_S if is_first else CASE_S)
                is_first = False
                if said:
                    _keep(Path(folder), kind, number, kept)
                    yield Fault(kind, number, said)
                if worker.has_ended:
                    break


def _keep(folder: Path, kind: str, number: int, kept: Path) -> None:
    """Copy the file of the last case of this kind: under its own name if it ended the process."""
    suffix = KINDS[kind].suffix
    path = folder / f"{kind}-{number}{suffix}"
    path = path if path.exists() else folder / f"last-{kind}{suffix}"
    if path.exists():
        shutil.copy(path, kept / f"{kind}-{number}{suffix}")


def _computed_s(process: psutil.Process) -> float:
    """Seconds of a processor that a process has used, and those of its own that have ended."""
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return times.user + times.system + times.children_user + times.children_system
    return 0.0


class _Worker:
    """A process of `tests.fuzz.worker`."""

    def __init__(self, seed: str, folder: str) -> None:
        self._log = (Path(folder) / "stderr.txt").open("w+b")
        self._process = subprocess.Popen(
            [sys.executable, *PROGRAM, seed, folder],
            cwd=ROOT,
            env={**os.environ, **ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.has_ended = False

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def answer(self, kind: str, number: int, patience_s: float) -> str:
        """What went wrong with a case; a process that dies or takes too long has ended."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(f"{kind} {number}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._ended()
        if not self._answers_within(patience_s):
            self.has_ended = True
            return f"took more than {patience_s:g} s"
        line = self._process.stdout.readline()
        return json.loads(line) if line else self._ended()

    def _answers_within(self, patience_s: float) -> bool:
        """Whether there is an answer before the process has computed or waited for too long."""
        process, begun_s = psutil.Process(self._process.pid), time.monotonic()
        computed_s = _computed_s(process)
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not selector.select(_LOOK_S):
                is_late = time.monotonic() - begun_s > max(WAIT_S, patience_s)
                if is_late or _computed_s(process) - computed_s > patience_s:
                    return False
        return True

    def _ended(self) -> str:
        self.has_ended = True
        status = self._process.wait()
        self._log.seek(0)
        last = self._log.read()[-300:].decode(errors="replace").strip().splitlines()[-1:]
        return f"the process ended with status {status} {last}"
