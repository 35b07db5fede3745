"""Who may change a project: one session at a time, so that two tabs never overwrite each other.

A session is alive while its own server says so. A session of another server process on this
computer counts as alive while that process runs and has renewed its claim lately. A page that is
loaded again is another session: for a while after the first one's end those that were looking on
leave the project to whoever comes.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from msgspec import Struct

from studio.project.files import read, write_json

STALE_AFTER_S = 30.0
# A page that the browser keeps for its Back button stays connected, but renews nothing any more; a
# tab in the background renews once a minute.
FROZEN_AFTER_S = 90.0
# For how long onlookers wait once a session has ended.
RELOAD_S = 10.0
_claiming = threading.Lock()
# By a project's folder: who looked on while another session had it, and since when that is gone.
_onlookers: dict[Path, set[str]] = {}
_gone_since: dict[Path, tuple[str, float]] = {}


class Claim(Struct, frozen=True):
    """`server` is process id and start time: a reused process id is another server."""

    session: str
    server: str
    renewed_at: float


def this_server() -> str:
    return f"{os.getpid()}-{psutil.Process().create_time():.2f}"


def holder(folder: Path) -> Claim | None:
    return read(folder / "owner.json", Claim)


def is_alive(claim: Claim, connected: Callable[[str], bool], now: float) -> bool:
    """Whether the claiming session still exists; `connected` answers for this server's own."""
    if claim.server == this_server():
        return connected(claim.session) and now - claim.renewed_at < FROZEN_AFTER_S
    return now - claim.renewed_at < STALE_AFTER_S and _server_runs(claim.server)


def claim(
    folder: Path, session: str, connected: Callable[[str], bool], *, force: bool = False
) -> bool:
    """Take or renew a project for a session; False where another living session has it.

    So it is where the project's folder is gone: to make it anew would be in the way of a restore.
    With `force` it is taken from the other session, which finds out at its next renewal. NotWritten
    says why nobody can write there.
    """
    with _claiming:
        if not force and not is_free(folder, session, connected):
            return False
        mine = Claim(session, this_server(), time.time())
        try:
            write_json(folder / "owner.json", mine, make_folder=False, is_change=False)
        except FileNotFoundError:
            return False
        _onlookers.get(folder, set()).discard(session)
        _gone_since.pop(folder, None)
        return True


def is_free(folder: Path, session: str, connected: Callable[[str], bool]) -> bool:
    """Whether a session could take a project: it has it already, or no other living one has."""
    other = holder(folder)
    if other is None or (other.session, other.server) == (session, this_server()):
        return True
    if is_alive(other, connected, time.time()):
        _onlookers.setdefault(folder, set()).add(session)
        _gone_since.pop(folder, None)
        return False
    return session not in _onlookers.get(folder, ()) or _has_been_gone(folder, other)


def _has_been_gone(folder: Path, other: Claim) -> bool:
    """Whether a session that has ended had the time to come back, by when its end was noticed.

    One of another server was silent for longer than that.
    """
    if other.server != this_server():
        return True
    who, since_s = _gone_since.get(folder, ("", 0.0))
    if who != other.session:
        since_s = time.time()
        _gone_since[folder] = other.session, since_s
    return time.time() - since_s >= RELOAD_S


def _server_runs(server: str) -> bool:
    pid, _, started = server.partition("-")
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" == started
    except (psutil.Error, ValueError):
        return False
