"""Projects on disk: the chosen model and machine, and folders for placements and jobs.

What a person decided lives here and nowhere else, so a reloaded page, a second session and a
restarted server all find the same.
"""

import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from placement.api.results.value import Number, Text
from placement.core.decoding import decode
from placement.core.objective import PLAIN, CallRules, Objective
from placement.files import output
from placement.files.home import home
from studio.jobs import jobs
from studio.project import files as atomic
from studio.project.file_cache import parsed
from studio.project.files import NotWritten, names_in, write_bytes, write_json

DEFAULT_SAMPLE = "onnx-inception-v2"
# In an address this asks for a new project, whatever was worked on last.
NEW = "new"
LONGEST_NAME = 60
UNTOUCHED_DAYS = 7.0
DRAFT_HOURS = 24.0
_DRAFT = ".draft-"
_ID = re.compile(r"[a-z0-9]{10}")
_changing = threading.Lock()
Size = Annotated[int, Meta(ge=1, lt=2**31)]
# A setting of a model that is a word, such as its type of numbers.
Word = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,30}$")]


class Settings(Struct, frozen=True):
    """What `project.json` holds.

    `model_kind` is "sample", "file" (copied into the project) or "path" (left where it is).
    `machine` is "local", "local:" and a runtime, a preset's name or a file in the project; `lanes`
    splits the CPU of "local" and is None for the default. With `offload` weights may stream from
    host memory; `rules` say how the throughput of a workload file is charged. `touched` tells a
    project somebody works on from one merely looked at. `form` remembers what was last typed on the
    pages.
    """

    name: str
    created_at: Number
    model_kind: Literal["sample", "file", "path"] = "sample"
    model: Text = DEFAULT_SAMPLE
    dims: Annotated[Mapping[str, Size | Word], Meta(max_length=1_000)] = {}
    machine: str = "local"
    lanes: Annotated[int, Meta(ge=1, le=1024)] | None = None
    objective: Objective = Objective.LATENCY
    offload: bool = False
    rules: CallRules = PLAIN
    form: Mapping[str, object] = {}
    touched: bool = False


# What there is to look at where no project can be written: the sample, in memory alone.
_shown: dict[str, Settings] = {}


@dataclass(frozen=True)
class Project:
    """A project's folder; everything is read from it when asked for."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def settings(self) -> Settings:
        found = settings_in(self.folder) or _shown.get(self.id)
        if found is None:
            raise ValueError(f"Project {self.id} cannot be read; open a new one.")
        return found

    def change(self, *, touch: bool = True, **values: object) -> Settings:
        """Store changed settings; a change that counts as work marks the project as touched."""
        with _changing:
            settings = replace(self.settings, **values)
            if touch:
                settings = replace(settings, touched=True)
            self.write(settings)
        return settings

    def write(self, settings: Settings) -> None:
        write_json(self.folder / "project.json", settings)

    @property
    def changed_at(self) -> float:
        """When it was last worked on; every edit writes the settings anew."""
        return _changed_at(self.folder / "project.json")

    @property
    def source(self) -> str:
        """What to give a loader or the command line: a sample's name or a path."""
        settings = self.settings
        if settings.model_kind == "file":
            return str(self.folder / "model" / settings.model)
        return settings.model

    @property
    def machine_spec(self) -> str:
        """What to give `--machine`: "local", one runtime of it, a preset's name or a path."""
        settings = self.settings
        own = self.folder / "machines" / settings.machine
        is_own = settings.machine.endswith(".json") and own.is_file()
        return str(own) if is_own else settings.machine

    def keep_upload(self, name: str, content: bytes, folder: str = "model") -> str:
        """Copy an uploaded file into the project; the safe name that it has there."""
        safe = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(name).name).lstrip("._") or "upload"
        write_bytes(self.folder / folder / safe, content)
        return safe


def settings_in(folder: Path) -> Settings | None:
    """What a project's folder says; None where that cannot be read."""
    try:
        return parsed(folder / "project.json", _settings_in)
    except OSError:
        return None


def _settings_in(path: Path) -> Settings | None:
    try:
        return decode(json.loads(path.read_text()), Settings)
    except ValueError:
        return None


def create(name: str = DEFAULT_SAMPLE) -> Project:
    """A new project with the default sample; long untouched ones make room."""
    prune()
    project = Project(folder() / secrets.token_hex(5))
    with output.refusals(project.folder, "The project was not made."):
        atomic.made(project.folder)
        project.write(Settings(name=name, created_at=time.time()))
    return project


def create_or_show() -> Project:
    """A new project; where none can be written one to look at, which `settle` writes later."""
    try:
        return create()
    except NotWritten:
        if not _shown:
            _shown[secrets.token_hex(5)] = Settings(DEFAULT_SAMPLE, created_at=time.time())
        return Project(folder() / next(iter(_shown)))


def settle(project: Project) -> None:
    """Write a project that was only there to be looked at; nothing for any other."""
    if project.id in _shown:
        project.write(_shown[project.id])
        del _shown[project.id]


def find(project_id: str) -> Project | None:
    """The project with this id; None where there is none (or the id is no id at all)."""
    if not is_id(project_id):
        return None
    project = Project(folder() / project_id)
    if project_id in _shown:
        return project
    return None if settings_in(project.folder) is None else project


def is_id(text: str) -> bool:
    return bool(_ID.fullmatch(text))


def recent(limit: int | None = 20, *, untouched: bool = False) -> tuple[Project, ...]:
    """Touched projects, the last changed first; the `untouched` ones after them, if wanted."""
    found = [(not p.settings.touched, -p.changed_at, p.id, p) for p in _all()]
    kept = sorted(row for row in found if untouched or not row[0])
    return tuple(row[-1] for row in kept[:limit])


def copy(project: Project) -> Project:
    """A project of its own with everything in it but the jobs that still run and the owner."""
    living = [i for i in jobs.open_ones(project.folder) if jobs.read(project.folder, i).is_live]
    skipped = shutil.ignore_patterns("owner.json", "incoming", ".*", *living)
    with drafted("The project was not copied.") as draft:
        shutil.copytree(project.folder, draft.folder, ignore=skipped, dirs_exist_ok=True)
        name = f"{project.settings.name[: LONGEST_NAME - 7]} (copy)"
        draft.change(name=name, created_at=time.time())
        return finished(draft)


@contextmanager
def drafted(lost: str) -> Iterator[Project]:
    """A project under construction, which nobody sees; `finished` makes it one.

    Nothing of it stays where that fails; `lost` says so for whom the disk is in the way.
    """
    draft = Project(folder() / f"{_DRAFT}{secrets.token_hex(5)}")
    with output.refusals(draft.folder / "project.json", lost):
        try:
            draft.folder.mkdir(parents=True)
            yield draft
        except BaseException:
            shutil.rmtree(draft.folder, ignore_errors=True)
            raise


def finished(draft: Project) -> Project:
    """The draft under an id of its own, whole from its first moment on."""
    project = Project(folder() / draft.id.removeprefix(_DRAFT))
    os.rename(draft.folder, project.folder)
    return project


def folder() -> Path:
    return home() / "projects"


def _all() -> list[Project]:
    return [p for p in map(find, names_in(folder())) if p is not None and p.id not in _shown]


def prune() -> None:
    """Remove what nobody worked on nor opened for days, and drafts of a server that is gone."""
    for project in _all():
        old = time.time() - project.changed_at > UNTOUCHED_DAYS * 86_400
        if old and not project.settings.touched:
            shutil.rmtree(project.folder, ignore_errors=True)
    for name in names_in(folder()):
        draft = folder() / name
        if name.startswith(_DRAFT) and time.time() - _changed_at(draft) > DRAFT_HOURS * 3_600:
            shutil.rmtree(draft, ignore_errors=True)


def _changed_at(path: Path) -> float:
    """When a file or folder was changed last; now where it is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()
