"""One measuring job at a time on this computer: two would slow each other and both be wrong.

The lock is the operating system's own on a file (through the filelock library, which speaks
`flock` on Unix and its counterpart on Windows), so a killed process holds nothing. A note beside it
tells the others who measures.
"""

import getpass
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from placement.core.events import say_nothing
from placement.files.home import home
from placement.files.output import write_text

if TYPE_CHECKING:
    from filelock import FileLock

_POLL_S = 0.1
_here = threading.local()


@dataclass(frozen=True)
class Holder:
    """Who measures: a process and what it says it does."""

    pid: int
    what: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.what})"


@contextmanager
def measuring(
    what: str,
    on_wait: Callable[[str], None] = say_nothing,
    *,
    folder: Path | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the measuring lock, waiting for it first where another job has it.

    `on_wait` is told who has it, at once and when another holder is known; an exception from it
    ends the waiting. A thread that holds the lock may ask again and goes straight through, so that
    a run which needs a profile can measure it.
    """
    if held():
        yield
        return
    folder = _lock_folder() if folder is None else _taking_a_lock(folder)
    if folder is None:
        # A disk that takes no file at all must not keep anybody from measuring.
        with held_already():
            yield
        return
    lock = _lock_in(folder)
    told = ""
    while not _taken(lock):
        who = holder_of(folder)
        message = f"Waiting for {who or 'another process'} to end measuring."
        # Whoever ends takes the note away before it lets go, so a missing note means no new holder.
        if message != told and (who or not told):
            on_wait(message)
            told = message
        sleep(_POLL_S)
    note = _note(folder)
    try:
        # It only tells others who measures.
        with suppress(OSError):
            write_text(note, json.dumps(asdict(Holder(os.getpid(), what))))
        with held_already():
            yield
    finally:
        with suppress(OSError):
            note.unlink(missing_ok=True)
        lock.release()


def held() -> bool:
    """Whether this thread has the measuring lock."""
    return bool(getattr(_here, "depth", 0))


@contextmanager
def held_already() -> Iterator[None]:
    """Let this thread ask and go straight through, for whoever waits for it has the lock."""
    _here.depth = 1
    try:
        yield
    finally:
        _here.depth = 0


def _lock_folder() -> Path | None:
    """Where the lock can be taken: at home, else in a temporary folder; None where nowhere."""
    with suppress(OSError):
        return _taking_a_lock(home())
    with suppress(OSError):
        user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
        temporary = Path(tempfile.gettempdir()) / f"placement-studio-{user}"
        temporary.mkdir(mode=0o700, exist_ok=True)
        # Everybody knows its name, so it may be somebody else's.
        if not hasattr(os, "getuid") or temporary.lstat().st_uid == user:
            return _taking_a_lock(temporary)
    return None


def _taking_a_lock(folder: Path) -> Path:
    """The folder, once it has a file to lock; an OSError where it takes none."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "measuring.lock").open("a").close()
    return folder


def holder(folder: Path | None = None) -> Holder | None:
    """Who measures now, None when nobody does.

    Asking by the lock takes it for a moment, in which a job that starts would hear that it must
    wait; so that is done only where a living process is noted, which nearly always has it.
    """
    import psutil

    folder = _lock_folder() if folder is None else folder
    found = None if folder is None else holder_of(folder)
    if folder is None or found is None or not psutil.pid_exists(found.pid):
        return None
    lock = _lock_in(folder)
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


def _lock_in(folder: Path) -> "FileLock":
    # A tenth of what a process takes to begin that only reads a file, and never measures.
    from filelock import FileLock

    return FileLock(folder / "measuring.lock", thread_local=False)


def _taken(lock: "FileLock") -> bool:
    from filelock import Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def _note(folder: Path) -> Path:
    return folder / "measuring.json"
