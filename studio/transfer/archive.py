"""A project as one file: a zip of JSON files, and the model where the project has a copy of it.

Whoever imports one trusts nobody: names come from a short list of patterns, sizes are checked
before anything is unpacked, and every JSON file is read into its value and written anew, so that
nothing lands in a project that the studio could not have written itself. Removed placements stay
behind. Finished runs and what-if answers travel; the runs are marked as made elsewhere. So does a
lesson, with the answers to it.
"""

import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import structs

from placement.core import formatting
from placement.core.machine import Machine
from placement.files.input import json_value
from placement.lessons.reading import MOST_BYTES as MOST_LESSON_BYTES
from placement.lessons.reading import lesson_of
from studio import lesson
from studio.jobs import jobs, records, runs
from studio.project import store
from studio.project.files import read_json, write_bytes, write_json, write_text
from studio.project.placements import LISTS
from studio.project.store import Project
from studio.transfer import answer_schema, run_schema, schema
from studio.transfer.safe_zip import Archive, Kind

R = TypeVar("R")
FORMAT = "placement-studio-project"
VERSION = 1
NOTE = "studio-project.json"
MODEL = "model"
MOST_FILES = 4_000
LONGEST_REASON = 200
MOST_JSON_BYTES = 64 * 2**20
MOST_MODEL_BYTES = 2**30
MOST_BYTES = MOST_MODEL_BYTES + 4 * MOST_JSON_BYTES
_NAME = r"[A-Za-z0-9-][A-Za-z0-9._-]{0,200}"
_KEY = r"[0-9a-f]{8,64}-[0-9a-f]{8}"
_SHELF, _ANSWERS = rf"placements/{_KEY}", rf"{answer_schema.FOLDER}/{_KEY}"


@dataclass(frozen=True)
class Part:
    """One kind of file in a project: its place there, and what reads it into JSON worth keeping."""

    pattern: re.Pattern[str]
    check: Callable[[object], object]


PARTS = (
    Part(re.compile(rf"{_SHELF}/index\.json"), schema.index),
    Part(re.compile(rf"{_SHELF}/pins\.json"), schema.pins),
    Part(re.compile(rf"{_SHELF}/sequences\.json"), schema.sequences),
    Part(re.compile(rf"{_SHELF}/{_NAME}\.json"), schema.placement),
    Part(re.compile(rf"{_SHELF}/{_NAME}\.history"), schema.history),
    Part(re.compile(rf"{_ANSWERS}/index\.json"), answer_schema.index),
    Part(re.compile(rf"{_ANSWERS}/{_NAME}\.json"), schema.placement),
    Part(re.compile(rf"machines/{_NAME}\.json"), schema.machine),
    Part(re.compile(r"rules\.json"), schema.rules),
)
_RUN = Part(re.compile(r"runs/[0-9]{1,20}-[0-9a-f]{4}\.json"), run_schema.run)
_SETTINGS = re.compile(r"project\.json|studio-project\.json")
_LESSON = re.compile(r"lesson\.md")
_MODEL_FILE = re.compile(rf"{MODEL}/{_NAME}")
KINDS = (
    *(Kind(part.pattern, MOST_JSON_BYTES) for part in (*PARTS, _RUN)),
    Kind(_SETTINGS, 2**20),
    Kind(_LESSON, MOST_LESSON_BYTES),
    Kind(_MODEL_FILE, MOST_MODEL_BYTES),
)


def file_name(project: Project) -> str:
    stem = re.sub(r"[^A-Za-z0-9]+", "-", project.settings.name).strip("-").lower()
    return f"{stem or 'project'}.placement.zip"


def model_bytes(project: Project) -> int:
    """The size of the model that the project has a copy of; 0 where it has none."""
    settings = project.settings
    path = Path(project.source)
    return path.stat().st_size if settings.model_kind == "file" and path.is_file() else 0


def contents(project: Project, *, with_model: bool = True) -> str:
    """What the project's file would hold, in a sentence or two."""
    names = _parts(project)
    num_machines = sum(name.startswith("machines/") for name in names)
    num_placements = _num_listed(project, names, "placements")
    num_answers = _num_listed(project, names, answer_schema.FOLDER)
    num_rules = len(read_json(project.folder / "rules.json", ()))
    whose = "its" if num_placements == 1 else "their"
    said = [f"{formatting.counted(num_placements, 'placement')} with {whose} history"]
    said += [formatting.counted(num_machines, "machine file")] if num_machines else []
    said += [formatting.counted(num_rules, "rule")] if num_rules else []
    said += [formatting.counted(num_answers, "what-if answer")] if num_answers else []
    num_runs = len(_runs(project))
    said += [formatting.counted(num_runs, "finished run")] if num_runs else []
    said += ["its lesson with the answers so far"] if lesson.readable(project) else []
    return f"Inside: {', '.join(said)}, {_model_words(project, with_model)}."


def _num_listed(project: Project, names: Iterable[str], folder: str) -> int:
    """How many placements the lists in a folder of the project name."""
    lists = (n for n in names if n.startswith(f"{folder}/") and n.endswith("/index.json"))
    return sum(len(read_json(project.folder / name, {}).get("items", ())) for name in lists)


def _model_words(project: Project, with_model: bool) -> str:
    settings, size = project.settings, model_bytes(project)
    if settings.model_kind == "sample":
        return "the name of the bundled sample"
    if settings.model_kind == "path":
        return "the path of the model but not the model itself, which is not in the project"
    return f"the model ({formatting.num_bytes(size)})" if with_model and size else "not the model"


def pack(project: Project, *, with_model: bool = True) -> bytes:
    """The project as the content of one file."""
    settings, learnt = project.settings, lesson.readable(project)
    note = {"format": FORMAT, "version": VERSION, "exported_at": time.time()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(NOTE, json.dumps(note))
        told = msgspec.to_builtins(settings)
        kept = {key: value for key, value in told.items() if key not in schema.NOT_TAKEN}
        if learnt is not None:
            kept["form"] = lesson.form_of(learnt, settings.form)
            archive.writestr(lesson.FILE, (project.folder / lesson.FILE).read_bytes())
        archive.writestr("project.json", json.dumps(kept))
        for name in _parts(project):
            content = read_json(project.folder / name, {})
            if name.endswith("/index.json"):
                content = {key: content[key] for key in ("current", "items") if key in content}
            archive.writestr(name, json.dumps(content))
        for job in _runs(project):
            archive.writestr(f"runs/{job.id}.json", json.dumps(run_schema.packed(job)))
        if with_model and model_bytes(project):
            archive.write(project.source, f"{MODEL}/{settings.model}")
    return buffer.getvalue()


def _parts(project: Project) -> list[str]:
    """Names of the project's files that go into its file, in order."""
    paths = sorted(p for p in project.folder.rglob("*") if p.is_file() and not p.is_symlink())
    left = [p for p in paths if not _is_removed(p) and not _is_stray(p, project)]
    names = [p.relative_to(project.folder).as_posix() for p in left]
    return [name for name in names if any(part.pattern.fullmatch(name) for part in PARTS)]


def _runs(project: Project) -> list[jobs.Job]:
    """Finished runs of placements that go along."""
    shelves = {p.name for p in (project.folder / "placements").glob("*") if p.is_dir()}
    return [job for job in runs.finished(project) if job.about.shelf in shelves]


def _is_removed(path: Path) -> bool:
    """Whether it is of a placement that its shelf does not list; it may wait to be brought back."""
    shelves = ("placements", answer_schema.FOLDER)
    if path.parents[1].name not in shelves or path.name in LISTS:
        return False
    listed = read_json(path.parent / "index.json", {}).get("items", ())
    return path.with_suffix(".json").name not in {item["file"] for item in listed}


def _is_stray(path: Path, project: Project) -> bool:
    """Whether it is a what-if answer for a model of which no placement is left to compare with."""
    if path.parents[1].name != answer_schema.FOLDER:
        return False
    listed = read_json(project.folder / "placements" / path.parent.name / "index.json", {})
    return not listed.get("items")


# Opens a model by its path and its open dimensions; a ValueError where that cannot be done.
Opens = Callable[[str, tuple[tuple[str, int | str], ...]], object]


def unpack(content: bytes, opens: Opens) -> Project:
    """The project in a file, as a new one beside all others; a ValueError where it is none.

    A model that is inside must open, or else the whole project is refused.
    """
    archive = Archive(content, KINDS, most_files=MOST_FILES, most_bytes=MOST_BYTES)
    _check_note(archive)
    with store.drafted("The project was not imported.") as draft:
        _write(archive, draft)
        if model_bytes(draft):
            opens(draft.source, tuple(sorted(draft.settings.dims.items())))
        return store.finished(draft)


def _check_note(archive: Archive) -> None:
    if not {NOTE, "project.json"} <= set(archive.names):
        raise ValueError("it is no project of this studio; choose a file that Export made.")
    note = _json(archive, NOTE)
    if not isinstance(note, Mapping) or note.get("format") != FORMAT:
        raise ValueError("it is no project of this studio; choose a file that Export made.")
    if note.get("version") != VERSION:
        raise ValueError("it was made by another version of the studio; export it again there.")


def _write(archive: Archive, draft: Project) -> None:
    names = archive.names
    machines = {n.removeprefix("machines/") for n in names if n.startswith("machines/")}
    told = _json(archive, "project.json")
    settings = schema.settings(told, machines)
    if lesson.FILE in names:
        content = archive.read(lesson.FILE)
        form = _checked(schema.form, "project.json", told)
        learnt = lesson_of(content, lesson.FILE)
        settings = structs.replace(settings, form=lesson.form_of(learnt, form))
        write_bytes(draft.folder / lesson.FILE, content)
    draft.write(settings)
    for name in names:
        part = next((p for p in PARTS if p.pattern.fullmatch(name)), None)
        if part is not None:
            write_json(draft.folder / name, _checked(part.check, name, _json(archive, name)))
        elif _RUN.pattern.fullmatch(name):
            continue
        elif name == f"{MODEL}/{settings.model}" and settings.model_kind == "file":
            write_bytes(draft.folder / name, archive.read(name))
        elif name.startswith(f"{MODEL}/"):
            raise ValueError(f"it holds {name!r}, which is not the model of the project.")
    known = schema.known_machines(draft.folder)
    for shelves in ("placements", answer_schema.FOLDER):
        schema.check_shelves(draft.folder / shelves, known)
    answer_schema.check(draft.folder)
    for name in names:
        if _RUN.pattern.fullmatch(name):
            _write_run(draft, name, _checked(run_schema.run, name, _json(archive, name)), known)


def _write_run(draft: Project, name: str, run: run_schema.Run, known: Iterable[Machine]) -> None:
    """A run as the job that it was, which has ended; none is newer than what is run from now on."""
    run_schema.check(run, *schema.ops_and_devices(draft.folder / "placements", known))
    number, _, rest = Path(name).stem.partition("-")
    folder = draft.folder / "jobs" / f"{min(int(number), time.time_ns()):020d}-{rest}"
    write_json(folder / records.RECORD, run.record)
    result = {"event": "result", **run.result.to_json()}
    write_text(folder / "events.jsonl", json.dumps(result) + "\n")


def _json(archive: Archive, name: str) -> object:
    try:
        return json_value(archive.read(name))
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from None


def _checked(check: Callable[[object], R], name: str, content: object) -> R:
    try:
        return check(content)
    except ValueError as error:
        raise ValueError(
            f"{name!r} in it is not understood: {str(error)[:LONGEST_REASON]}"
        ) from None
