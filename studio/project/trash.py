"""Deleted projects: kept whole for a while, so that every deletion can be undone."""

import math
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from placement.files import output
from placement.files.home import home
from studio.jobs import jobs
from studio.project import store
from studio.project.files import names_in, read, write_json
from studio.project.store import Project

KEEP_DAYS = 30


@dataclass(frozen=True)
class Trashed:
    """A deleted project: its name and model, and when it was deleted."""

    id: str
    name: str
    model: str
    deleted_at: float

    @property
    def days_left(self) -> int:
        """Days until it is gone, rounded up."""
        return max(0, math.ceil(KEEP_DAYS - (time.time() - self.deleted_at) / 86_400))


def throw_away(project: Project) -> Trashed:
    """Move a project to the trash; its jobs are stopped. One rename, so it is here or there."""
    for job_id in jobs.open_ones(project.folder):
        jobs.stop(project.folder, job_id)
    with output.refusals(project.folder, "The project was not deleted."):
        # To delete is what makes room on a full disk, so it must not need any.
        with suppress(OSError):
            write_json(project.folder / "deleted.json", {"deleted_at": time.time()})
        _folder().mkdir(parents=True, exist_ok=True)
        os.rename(project.folder, _folder() / project.id)
    with suppress(OSError):
        (_folder() / project.id / "owner.json").unlink()
    found = find(project.id)
    assert found is not None
    return found


def find(project_id: str) -> Trashed | None:
    """The deleted project that had this id; None where there is none."""
    if not store.is_id(project_id):
        return None
    folder = _folder() / project_id
    if not folder.is_dir():
        return None
    settings = store.settings_in(folder)
    noted = read(folder / "deleted.json", dict[str, float]) or {}
    deleted_at = noted.get("deleted_at", folder.stat().st_mtime)
    if settings is None:
        return Trashed(project_id, project_id, "unreadable", deleted_at)
    return Trashed(project_id, settings.name, Path(settings.model).name, deleted_at)


def listed() -> tuple[Trashed, ...]:
    """What is in the trash, the last deleted first."""
    found = [t for t in map(find, names_in(_folder())) if t is not None]
    return tuple(sorted(found, key=lambda t: (-t.deleted_at, t.id)))


def restore(project_id: str) -> Project:
    """Take a project back out of the trash, as it was; a ValueError says why it cannot be."""
    if find(project_id) is None:
        raise ValueError("This project is no longer in the trash.")
    project = Project(store.folder() / project_id)
    try:
        project.folder.parent.mkdir(parents=True, exist_ok=True)
        if not (project.folder / "project.json").exists():
            # What a page that was still open left there is no project, but in the way of one.
            shutil.rmtree(project.folder, ignore_errors=True)
        os.rename(_folder() / project_id, project.folder)
    except OSError as error:
        why = error.strerror or error
        raise ValueError(f"The project could not be restored: {why}. Try it again.") from None
    # It is back already; what follows only makes it the one that was worked on last.
    with suppress(OSError):
        (project.folder / "deleted.json").unlink(missing_ok=True)
        project.change()
    return project


def empty(*, only_old: bool = False) -> int:
    """Remove for good all that is in the trash, or what has been there for `KEEP_DAYS`."""
    limit = time.time() - KEEP_DAYS * 86_400 if only_old else time.time() + 1
    gone = [t for t in listed() if t.deleted_at < limit]
    for trashed in gone:
        with output.refusals(_folder() / trashed.id, "The trash was not emptied."):
            shutil.rmtree(_folder() / trashed.id, ignore_errors=only_old)
    return len(gone)


def _folder() -> Path:
    return home() / "trash"
