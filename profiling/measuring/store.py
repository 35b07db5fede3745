"""Profiles on disk, under the fingerprints of graph and machine: a second opening is instant.

SQLite, one connection per call and one statement per transaction, so that page and command line
may use it at once. The journal is SQLite's own: going over to write-ahead mode is refused without a
wait where another process does so, too. Content is the profile's JSON, compressed; a row that this
version cannot read counts as missing, and a file that is no database is moved aside: a cache must
never stop the work. For that it is also read where it cannot be written, and who measures goes on
where it takes nothing.
"""

import errno
import json
import logging
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from placement.core.formatting import counted
from placement.core.machine import Machine
from placement.core.profile import Profile, profile_from_json
from placement.files.home import home
from placement.files.output import NotWritten

_TABLE = """
CREATE TABLE IF NOT EXISTS profiles (
    graph TEXT NOT NULL,
    machine TEXT NOT NULL,
    measured_at TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (graph, machine)
)
"""
_KEY = "graph = ? AND machine = ?"
_WAIT_S = 30.0
_log = logging.getLogger(__name__)
T = TypeVar("T")


class ProfileStore:
    """The profiles in one SQLite file, by default in the studio's home folder."""

    def __init__(
        self, path: Path | None = None, *, warn: Callable[[str], object] = _log.warning
    ) -> None:
        self.path = home() / "profiles.sqlite" if path is None else Path(path)
        self._warn = warn

    def get(self, graph_fp: str, machine_fp: str) -> Profile | None:
        """The profile of a graph on a machine, None where there is none that can be read."""
        return next(self._found(_KEY, graph_fp, machine_fp), None)

    def put(self, profile: Profile) -> None:
        """Keep a profile, in place of an older one for the same graph and machine."""
        row = (profile.graph, profile.machine.fingerprint, profile.measured_at, _packed(profile))
        self._do(lambda db: db.execute("INSERT OR REPLACE INTO profiles VALUES (?, ?, ?, ?)", row))

    def change(
        self, graph_fp: str, machine_fp: str, work: Callable[[Profile], Profile]
    ) -> Profile | None:
        """Put what `work` makes of a profile in its place; None where there is none to be read.

        Where somebody has changed it meanwhile, `work` is asked again with what stands there then,
        so that no change is lost; the file is not locked while it works.
        """
        while True:
            content = next(iter(self._rows(_KEY, graph_fp, machine_fp)), b"")
            before = self._read(content) if content else None
            if before is None:
                return None
            after = work(before)
            if after == before or self._swap(content, after):
                return after

    def others(self, graph_fp: str, machine_fp: str) -> tuple[Profile, ...]:
        """Profiles of a graph on every machine but this one, the newest first."""
        which = "graph = ? AND machine <> ? ORDER BY measured_at DESC, machine"
        return tuple(self._found(which, graph_fp, machine_fp))

    def clear(self, graph_fp: str | None = None) -> int:
        """Forget the profiles of a graph, or all; returns how many there were."""
        where, values = ("", ()) if graph_fp is None else (" WHERE graph = ?", (graph_fp,))
        return self._do(lambda db: db.execute(f"DELETE FROM profiles{where}", values).rowcount)

    def _found(self, which: str, *values: str) -> Iterator[Profile]:
        rows = self._rows(which, *values)
        return (profile for row in rows if (profile := self._read(row)) is not None)

    def _rows(self, which: str, *values: str) -> list[bytes]:
        query = f"SELECT content FROM profiles WHERE {which}"
        return [row[0] for row in self._look(lambda db: db.execute(query, values).fetchall())]

    def _swap(self, content: bytes, profile: Profile) -> bool:
        """Keep a profile in place of this very content; whether that still stood there."""
        query = f"UPDATE profiles SET measured_at = ?, content = ? WHERE {_KEY} AND content = ?"
        key = (profile.graph, profile.machine.fingerprint)
        values = (profile.measured_at, _packed(profile), *key, content)
        return self._do(lambda db: db.execute(query, values).rowcount) > 0

    def _read(self, content: bytes) -> Profile | None:
        try:
            return profile_from_json(json.loads(zlib.decompress(content)))
        except (zlib.error, ValueError, TypeError, AttributeError) as error:
            self._warn(f"A profile in {self.path} cannot be read ({error}); measure it again.")
            return None

    def _look(self, work: Callable[[sqlite3.Connection], list[T]]) -> list[T]:
        """What stands there, also where nothing can be written; nothing where it cannot be read.

        Reading, too, makes files beside the database, unless it is said that nobody changes it.
        """
        if not self.path.exists():
            return []
        try:
            return self._do(work)
        except NotWritten:
            for how in ("mode=ro", "mode=ro&immutable=1"):
                with suppress(sqlite3.Error):
                    address = f"{self.path.absolute().as_uri()}?{how}"
                    with closing(sqlite3.connect(address, uri=True)) as db:
                        return work(db)
            return []

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Work in one transaction; after a broken file, once more on a new one."""
        try:
            try:
                with self._open() as db:
                    return work(db)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                self._move_aside(error)
                with self._open() as db:
                    return work(db)
        except (OSError, sqlite3.Error) as error:
            raise NotWritten(self.path, _as_system_says(error)) from None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=_WAIT_S)) as db, db:
            db.execute(_TABLE)
            yield db

    def _move_aside(self, error: sqlite3.DatabaseError) -> None:
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.broken-{number}")).exists():
            number += 1
        for suffix in ("", "-journal", "-wal", "-shm"):
            part = self.path.with_name(self.path.name + suffix)
            with suppress(FileNotFoundError):
                part.replace(aside.with_name(aside.name + suffix))
        self._warn(f"The profile store {self.path} was unreadable ({error}); moved to {aside}.")


def _as_system_says(error: OSError | sqlite3.Error) -> OSError:
    """A refusal of the database with the number that the system has for its reason."""
    if isinstance(error, OSError):
        return error
    number = {
        sqlite3.SQLITE_FULL: errno.ENOSPC,
        sqlite3.SQLITE_READONLY: errno.EACCES,
        sqlite3.SQLITE_CANTOPEN: errno.EACCES,
        sqlite3.SQLITE_PERM: errno.EACCES,
    }.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, 0)
    return OSError(number, str(error))


def age_s(profile: Profile, now: datetime | None = None) -> float | None:
    """Seconds since a profile was measured; None where it does not say."""
    try:
        measured = datetime.fromisoformat(profile.measured_at)
    except ValueError:
        return None
    if measured.tzinfo is None:
        measured = measured.replace(tzinfo=UTC)
    return max(0.0, ((now or datetime.now(UTC)) - measured).total_seconds())


def changes(old: Machine, new: Machine) -> tuple[str, ...]:
    """What differs between two machines for a person: "onnxruntime 1.30 -> 1.31", devices."""
    before, after = dict(old.libraries), dict(new.libraries)
    found = [
        f"{name} {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
    was, now = (
        {d.name: f"{d.label or d.kind}, {counted(d.cores, 'core')}" for d in machine.devices}
        for machine in (old, new)
    )
    found += [
        f"{name}: {was.get(name, 'absent')} -> {now.get(name, 'absent')}"
        for name in dict.fromkeys((*was, *now))
        if was.get(name) != now.get(name)
    ]
    return tuple(found)


def _packed(profile: Profile) -> bytes:
    return zlib.compress(json.dumps(profile.to_json(), separators=(",", ":")).encode())
