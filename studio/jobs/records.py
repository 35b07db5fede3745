"""What is written down about the jobs of a project: one JSON file in the folder of each."""

from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from placement.core.decoding import decode
from placement.core.objective import Objective
from studio.project import former_names
from studio.project.files import names_in, read_json

RECORD = "job.json"


class About(Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"start": "from"}):
    """What a job is about: what it was asked, of which placement, and what became of it.

    `start` is the placement that a selection was placed in. `collected` jobs have ended and had
    their result taken over, `told` ones could not have it written. `screen` stands for what was
    on the screen when a method began; where that has changed meanwhile its result is put `aside`:
    among the placements, and not on the screen.
    """

    placer: str = ""
    placers: tuple[str, ...] = ()
    num_selected: int = 0
    num_pinned: int = 0
    start: str = ""
    shelf: str = ""
    objective: Objective | None = None
    time_limit_s: float | None = None
    path: str = ""
    placement: str = ""
    devices_key: str = ""
    model: str = ""
    machine: str = ""
    steps: int = 0
    warmup: int | None = None
    predicted_s: float | None = None
    collected: bool = False
    told: bool = False
    dismissed: bool = False
    imported: bool = False
    screen: str = ""
    aside: bool = False

    @property
    def goal(self) -> Objective:
        """What was asked for: where nobody said, the shortest step."""
        return self.objective or Objective.LATENCY


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job: what was started, by which process, and whether somebody asked it to end."""

    verb: str
    argv: tuple[str, ...]
    pid: int
    born_at: float
    started_at: float
    about: About
    cancelled: bool = False
    cancelled_at: float = 0.0


def read(folder: Path) -> Record | None:
    """The record in a job's folder; None where there is none or it is damaged."""
    content = read_json(folder / RECORD)
    if isinstance(content, dict) and isinstance(content.get("about"), dict):
        content = {**content, "about": former_names.in_record(content["about"])}
    try:
        return decode(content, Record)
    except ValueError:
        return None


def all_of(project: Path) -> dict[str, Record]:
    """The records of a project's jobs by id, the newest first, as far as they can be read."""
    found = {i: read(project / "jobs" / i) for i in _ids(project)}
    return {job_id: record for job_id, record in found.items() if record is not None}


def set_damaged_aside(project: Path) -> tuple[str, ...]:
    """Rename records that cannot be read, so that each is told of once; ids of their jobs."""
    found = []
    for job_id in _ids(project):
        path = project / "jobs" / job_id / RECORD
        if path.exists() and read(path.parent) is None:
            with suppress(OSError):
                path.rename(path.with_suffix(".damaged"))
                found.append(job_id)
    return tuple(found)


def _ids(project: Path) -> list[str]:
    return names_in(project / "jobs")[::-1]
