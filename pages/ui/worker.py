"""Worker processes: start one, ask whether it still lives, end it.

A process is known by its id and the moment it was born, because ids are given out again.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

GRACE_S = 5.0
# Set aside for the reason of an end, so that a disk that is full by then does not hide it.
REASON_BYTES = 2048
_children: dict[int, subprocess.Popen[bytes]] = {}
_exit_codes: dict[int, int] = {}
_ending: dict[tuple[int, float], float] = {}


def start(command: Sequence[str], out: Path, errors: Path, folder: Path) -> int:
    """Run a command that writes into two files and outlives this process; its process id."""
    errors.write_bytes(b"\n" * REASON_BYTES)
    with open(out, "wb") as out_file, open(errors, "r+b") as errors_file:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=errors_file,
            cwd=folder,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    _children[child.pid] = child
    _exit_codes.pop(child.pid, None)
    return child.pid


def born_at(pid: int) -> float:
    """When the process was started; 0 where there is none."""
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0


def is_alive(pid: int, born: float) -> bool:
    child = _children.get(pid)
    if child is not None:
        # Only its own poll says how a child ended, so nothing else may say that it did.
        code = child.poll()
        if code is not None:
            _exit_codes[pid] = code
            _children.pop(pid, None)
        return code is None
    if pid <= 0:
        return False
    try:
        process = psutil.Process(pid)
        return bool(process.create_time() == born and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def exit_code(pid: int) -> int | None:
    """How a process of ours ended; None where it was started by an earlier server."""
    return _exit_codes.get(pid)


def end(pid: int, born: float, grace_s: float = GRACE_S) -> None:
    """Ask a process and its children to end, and end them after a grace period; does not wait.

    One that has just been asked is not asked again: a second signal would cut its end short.
    """
    now_s = time.monotonic()
    if _ending.get((pid, born), -grace_s) + grace_s > now_s:
        return
    _ending[pid, born] = now_s
    threading.Thread(target=_end, args=(pid, born, grace_s), daemon=True).start()


def _end(pid: int, born: float, grace_s: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + grace_s
        try:
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):
            return
        while time.monotonic() < until:
            if not is_alive(pid, born):
                return
            time.sleep(0.05)
