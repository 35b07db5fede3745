"""Work in a process of its own: started here, written down in the project, read back by polling.

A job runs `python -m placement VERB ... --jsonl`. Its events go straight from the process into a
file, so they survive a reloaded page and a restarted server, and whoever reads later finds out from
the files and the process table what became of it.
"""

import re
import secrets
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from placement.api.results.running import RunResult
from placement.api.results.training import TrainResult
from placement.api.results.verbs import Result
from placement.files import output
from studio.jobs import event_log as events
from studio.jobs import process, records
from studio.jobs.event_log import Damaged, Event, Lost, Progress, Step, Waiting
from studio.jobs.records import About, Record
from studio.project.files import NotWritten, write_json

ROOT = Path(__file__).resolve().parents[2]
LIVE = ("running", "waiting")
# A method that is told to stop still has to compare what it has found.
GRACE_S = {"place": 20.0, "compare": 20.0, "what-if": 20.0}
# The process of a job that is being started has no number yet; that takes no longer than this.
NOT_YET, STARTING_S = 0, 30.0
E = TypeVar("E", bound=Event)
_NATIVE_LOG = re.compile(r"\[[VIWEF]:[a-z]+:")


@dataclass(frozen=True)
class Job:
    """One job as its files tell it at the moment of reading.

    `status` is "waiting" (for another measurement on this machine), "running", "done", "failed",
    "cancelled" or "interrupted" (the process is gone and left no result and no reason).
    """

    folder: Path
    verb: str
    argv: tuple[str, ...]
    started_at: float
    about: About
    events: tuple[Event, ...]
    num_garbled: int
    status: str
    message: str

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    @cached_property
    def result(self) -> Result | None:
        return next((e for e in reversed(self.events) if isinstance(e, Result)), None)

    @property
    def ran(self) -> RunResult | None:
        """The result of a run, or of a pipeline of samples."""
        return self.result if isinstance(self.result, RunResult) else None

    @property
    def trained(self) -> TrainResult | None:
        return self.result if isinstance(self.result, TrainResult) else None

    def last(self, kind: type[E]) -> E | None:
        return next((e for e in reversed(self.events) if isinstance(e, kind)), None)

    def all(self, kind: type[E]) -> list[E]:
        return [e for e in self.events if isinstance(e, kind)]

    @property
    def progress(self) -> tuple[float, str]:
        """Share done, 0 to 1, and a few words on what is being done."""
        num_steps, of_steps = len(self.steps), self.about.steps
        if num_steps and of_steps:
            one = self.about.goal.per.capitalize()
            return min(1.0, num_steps / of_steps), f"{one} {num_steps} of {of_steps}"
        latest = self.last(Progress) or Progress()
        step, of = latest.step or 0, latest.of or 0
        if latest.seconds is not None and not of:
            return self._search_progress(latest.seconds)
        share = min(1.0, max(0.0, step / of)) if of else 0.0
        words = latest.what.capitalize()
        return share, words or (f"{step} of {of}" if of else "Starting")

    @property
    def steps(self) -> list[Step]:
        """Steps so far; those of a run since it last began, for it may have lost devices."""
        anew = Lost if self.verb == "run" else ()
        began = max((i for i, e in enumerate(self.events, 1) if isinstance(e, anew)), default=0)
        return [event for event in self.events[began:] if isinstance(event, Step)]

    @property
    def is_searching(self) -> bool:
        """Whether it tells seconds of a search; what measures instead had better be left alone."""
        latest = next((e for e in reversed(self.events) if isinstance(e, Progress | Step)), None)
        return isinstance(latest, Progress) and latest.seconds is not None

    def _search_progress(self, seconds: float) -> tuple[float, str]:
        """Of a search that counts no steps: the share of its time that is gone."""
        limit_s = self.about.time_limit_s
        if not limit_s:
            return 0.0, f"{seconds:.0f} s"
        return min(1.0, seconds / limit_s), f"{min(seconds, limit_s):.0f} s of {limit_s:g} s"


def start(
    project: Path,
    verb: str,
    argv: Sequence[str],
    about: About | None = None,
    command: Sequence[str] = (sys.executable, "-m", "placement"),
) -> str:
    """Start a worker for one verb; the job's id. The process outlives this session.

    It is written down before it is started, so that no process works for a project unknown to it.
    """
    folder = project / "jobs" / f"{time.time_ns():020d}-{secrets.token_hex(2)}"
    record = Record(
        verb=verb,
        argv=tuple(argv),
        pid=NOT_YET,
        born_at=0.0,
        started_at=time.time(),
        about=about or About(),
    )
    pid = NOT_YET
    with output.refusals(folder / records.RECORD):
        try:
            write_json(folder / records.RECORD, record, is_change=False)
            pid = process.start(
                [*command, verb, *argv], folder / "events.jsonl", folder / "errors.txt", ROOT
            )
            numbered = replace(record, pid=pid, born_at=process.born_at(pid))
            write_json(folder / records.RECORD, numbered, is_change=False)
        except BaseException:
            if pid != NOT_YET:
                process.end(pid, process.born_at(pid), grace_s=0.0)
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder.name


def listed(project: Path, verb: str | None = None) -> tuple[str, ...]:
    """Ids of the project's jobs, the newest first; records that are damaged are left out."""
    return tuple(i for i, r in records.all_of(project).items() if verb in (None, r.verb))


def open_ones(project: Path) -> tuple[str, ...]:
    """Ids of jobs that live, or whose end nobody has taken note of yet, the newest first."""
    return tuple(i for i, r in records.all_of(project).items() if not r.about.collected)


def latest(project: Path, verb: str) -> Job | None:
    ids = listed(project, verb)
    return read(project, ids[0]) if ids else None


def is_live(project: Path, verb: str) -> bool:
    """Whether a job of a kind is going on."""
    found = latest(project, verb)
    return found is not None and found.is_live


def read(project: Path, job_id: str) -> Job:
    """The job as it stands now; a ValueError where there is no such job."""
    folder = project / "jobs" / job_id
    record = records.read(folder)
    if record is None:
        raise ValueError(f"There is no job {job_id!r} in this project.")
    # The process is looked at first: what it wrote before it ended is then in the file.
    alive = _is_alive(record)
    told, num_garbled = events.read(folder / "events.jsonl", record.verb)
    status, message = _status(record, folder, told, alive)
    return Job(
        folder,
        record.verb,
        record.argv,
        record.started_at,
        record.about,
        told,
        num_garbled,
        status,
        message,
    )


def _is_alive(record: Record) -> bool:
    """Whether the process lives, or is about to: a server may be killed before it has a number."""
    if record.pid == NOT_YET:
        return time.time() - record.started_at < STARTING_S
    return process.is_alive(record.pid, record.born_at)


def stop(project: Path, job_id: str) -> None:
    """Ask a job to end, and end it after a grace period if it does not.

    It is asked once: a second signal would keep it from giving what it has found so far.
    """
    path = project / "jobs" / job_id / records.RECORD
    record = records.read(path.parent)
    if record is None or not process.is_alive(record.pid, record.born_at):
        return
    grace_s = GRACE_S.get(record.verb, process.GRACE_S)
    if time.time() - record.cancelled_at > grace_s:
        # To stop a job may be what makes room on a full disk, so it must not need any.
        with suppress(NotWritten):
            stopped = replace(record, cancelled=True, cancelled_at=time.time())
            write_json(path, stopped)
        process.end(record.pid, record.born_at, grace_s)


def note(project: Path, job_id: str, **facts: bool) -> None:
    """Write down something about a job, such as that its result has been taken over."""
    path = project / "jobs" / job_id / records.RECORD
    record = records.read(path.parent)
    if record is not None:
        write_json(path, replace(record, about=replace(record.about, **facts)))


def _status(record: Record, folder: Path, told: tuple[Event, ...], alive: bool) -> tuple[str, str]:
    latest = told[-1] if told else None
    if alive and not record.cancelled:
        if isinstance(latest, Waiting):
            return "waiting", latest.holder or "Waiting for another measurement."
        return "running", ""
    if alive:
        return "running", "Stopping."
    if any(isinstance(e, Result) for e in told):
        return "done", ""
    damaged = next((e for e in told if isinstance(e, Damaged)), None)
    if damaged is not None:
        return "failed", f"What it wrote is damaged; start it again. {damaged.why}"
    if record.cancelled:
        return "cancelled", "Stopped before it finished."
    exit_code = process.exit_code(record.pid)
    reason = _reason(folder / "errors.txt")
    if reason and (exit_code is None or exit_code > 0):
        return "failed", reason
    ended = f" by signal {-exit_code}" if exit_code is not None and exit_code < 0 else ""
    return "interrupted", (
        f"The {record.verb} process was ended{ended} before it had a result"
        " (a crash, or somebody stopped it); start it again."
    )


def _reason(path: Path) -> str:
    """The one clear line on standard error; a crash is summed up instead of shown."""
    try:
        lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    # Native libraries log there too, with a severity in brackets.
    lines = [line for line in lines if line and not _NATIVE_LOG.search(line)]
    if not lines:
        return ""
    if "Traceback (most recent call last):" in lines:
        return f"The worker met a fault of the studio itself: {lines[-1][:300]}"
    return lines[-1][:500]
