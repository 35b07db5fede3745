"""What is written down about the jobs of a project: one JSON file in the folder of each."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from studio.project import former_names
from studio.project.files import names_in, read_json

RECORD = "job.json"
_TYPES: dict[str, type | tuple[type, ...]] = {
    "verb": str,
    "argv": list,
    "pid": int,
    "born_at": (int, float),
    "started_at": (int, float),
    "about": dict,
}


def read(folder: Path) -> dict[str, Any] | None:
    """The record in a job's folder; None where there is none or it is damaged."""
    found = read_json(folder / RECORD)
    known = isinstance(found, dict) and all(isinstance(found.get(k), t) for k, t in _TYPES.items())
    if not known:
        return None
    return {**found, "about": former_names.in_record(found["about"])}


def all_of(project: Path) -> dict[str, dict[str, Any]]:
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
