"""Projects on disk: the chosen model and machine, and folders for placements and jobs.

What a person decided lives here and nowhere else, so a reloaded page, a second session and a
restarted server all find the same.
"""

import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pages.ui.atomic import read_json, write_bytes, write_json
from profiling.home import home

DEFAULT_SAMPLE = "onnx-inception-v2"
UNTOUCHED_DAYS = 7.0
_ID = re.compile(r"[a-z0-9]{10}")


@dataclass(frozen=True)
class Settings:
    """What `project.json` holds.

    `model_kind` is "sample", "file" (copied into the project) or "path" (left where it is).
    `machine` is "local", a preset's name or a file in the project; `lanes` splits this CPU and is
    None for the default. `touched` tells a project somebody works on from one merely looked at.
    `form` remembers what was last typed on the pages.
    """

    name: str
    created_at: float
    model_kind: str = "sample"
    model: str = DEFAULT_SAMPLE
    dims: Mapping[str, int] = field(default_factory=dict)
    machine: str = "local"
    lanes: int | None = None
    objective: str = "latency"
    form: Mapping[str, Any] = field(default_factory=dict)
    touched: bool = False


@dataclass(frozen=True)
class Project:
    """A project's folder; everything is read from it when asked for."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def settings(self) -> Settings:
        content = read_json(self.folder / "project.json")
        if not isinstance(content, dict):
            raise ValueError(f"Project {self.id} cannot be read; open a new one.")
        known = Settings.__dataclass_fields__
        return Settings(**{k: v for k, v in content.items() if k in known})

    def change(self, *, touch: bool = True, **values: Any) -> Settings:
        """Store changed settings; a change that counts as work marks the project as touched."""
        settings = replace(self.settings, **values)
        if touch:
            settings = replace(settings, touched=True)
        write_json(self.folder / "project.json", {**vars(settings), "dims": dict(settings.dims)})
        return settings

    @property
    def source(self) -> str:
        """What to give a loader or the command line: a sample's name or a path."""
        settings = self.settings
        if settings.model_kind == "file":
            return str(self.folder / "model" / settings.model)
        return settings.model

    @property
    def machine_spec(self) -> str:
        """What to give `--machine`: "local", a preset's name or a path."""
        settings = self.settings
        own = self.folder / "machines" / settings.machine
        is_own = settings.machine.endswith(".json") and own.is_file()
        return str(own) if is_own else settings.machine

    def keep_upload(self, name: str, content: bytes, folder: str = "model") -> str:
        """Copy an uploaded file into the project; the safe name that it has there."""
        safe = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(name).name).lstrip("._") or "upload"
        write_bytes(self.folder / folder / safe, content)
        return safe


def create(name: str = "Untitled") -> Project:
    """A new project with the default sample; long untouched ones make room."""
    _prune()
    project = Project(home() / "projects" / secrets.token_hex(5))
    settings = Settings(name=name, created_at=time.time())
    write_json(project.folder / "project.json", {**vars(settings)})
    return project


def find(project_id: str) -> Project | None:
    """The project with this id; None where there is none (or the id is no id at all)."""
    if not _ID.fullmatch(project_id):
        return None
    project = Project(home() / "projects" / project_id)
    return project if isinstance(read_json(project.folder / "project.json"), dict) else None


def recent(limit: int = 20) -> tuple[Project, ...]:
    """Touched projects, the last changed first."""
    found = [p for p in _all() if p.settings.touched]
    return tuple(sorted(found, key=lambda p: (-_changed_at(p), p.id))[:limit])


def copy(project: Project) -> Project:
    """A project of its own with everything in it but the running jobs and the owner."""
    twin = Project(home() / "projects" / secrets.token_hex(5))
    skipped = shutil.ignore_patterns("owner.json", "jobs", ".*")
    shutil.copytree(project.folder, twin.folder, ignore=skipped)
    twin.change(name=f"{project.settings.name} (copy)")
    return twin


def _all() -> list[Project]:
    folder = home() / "projects"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [p for p in map(find, names) if p is not None]


def _changed_at(project: Project) -> float:
    return (project.folder / "project.json").stat().st_mtime


def _prune() -> None:
    """Remove projects that nobody ever worked on and that nobody opened for days."""
    for project in _all():
        old = time.time() - _changed_at(project) > UNTOUCHED_DAYS * 86_400
        if old and not project.settings.touched:
            shutil.rmtree(project.folder, ignore_errors=True)
