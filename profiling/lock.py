"""One measuring job at a time on this computer: two would slow each other and both be wrong.

The lock is the operating system's own on a file (through the filelock library, which speaks
`flock` on Unix and its counterpart on Windows), so a killed process holds nothing. A note beside it
tells the others who measures.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from profiling.home import home

_POLL_S = 0.1
_here = threading.local()


@dataclass(frozen=True)
class Holder:
    """Who measures: a process and what it says it does."""

    pid: int
    what: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.what})"


def say_nothing(message: str) -> None:
    """The default `on_wait`."""


@contextmanager
def measuring(
    what: str,
    on_wait: Callable[[str], None] = say_nothing,
    *,
    folder: Path | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the measuring lock, waiting for it first where another job has it.

    `on_wait` is told who has it, at once and whenever that changes; an exception from it ends the
    waiting. A thread that holds the lock may ask again and goes straight through, so that a run
    which needs a profile can measure it.
    """
    if getattr(_here, "depth", 0):
        yield
        return
    folder = home() if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "measuring.lock", thread_local=False)
    told = ""
    while not _taken(lock):
        message = f"Waiting for {holder_of(folder) or 'another process'} to end measuring."
        if message != told:
            on_wait(message)
            told = message
        sleep(_POLL_S)
    note = _note(folder)
    try:
        _write(note, Holder(os.getpid(), what))
        _here.depth = 1
        yield
    finally:
        _here.depth = 0
        note.unlink(missing_ok=True)
        lock.release()


def holder(folder: Path | None = None) -> Holder | None:
    """Who measures now, None when nobody does.

    Asking by the lock takes it for a moment, in which a job that starts would hear that it must
    wait; so that is done only where a living process is noted, which nearly always has it.
    """
    import psutil

    folder = home() if folder is None else folder
    found = holder_of(folder)
    if found is None or not psutil.pid_exists(found.pid):
        return None
    lock = FileLock(folder / "measuring.lock", thread_local=False)
    if _taken(lock):
        lock.release()
        return None
    return found


def holder_of(folder: Path) -> Holder | None:
    """Who left the note; None where there is none (yet) or it cannot be read."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads(_note(folder).read_text())
        return Holder(int(content["pid"]), str(content["what"]))
    return None


def _taken(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def _note(folder: Path) -> Path:
    return folder / "measuring.json"


def _write(path: Path, who: Holder) -> None:
    """Replace the note in one step, so that a reader never sees half of it."""
    fresh = path.with_suffix(f".{who.pid}")
    fresh.write_text(json.dumps(asdict(who)))
    fresh.replace(path)
