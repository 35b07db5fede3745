"""The lesson of a project: its file beside what is made for it, and the answer so far.

A lesson is opened as a project like any other, with the posed problem as its model and the start
as its first placement. Its replies and the hints taken stand with what was typed into forms.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from placement.api import lessons
from placement.core.decoding import decode
from placement.core.problem_json import problem_to_json
from placement.lessons.answer import LONGEST_NAME as LONGEST_OWN_NAME
from placement.lessons.answer import MOST_MOVES, Answer, Given
from placement.lessons.grading import moved_by
from placement.lessons.judging import Mark, Posed, judged
from placement.lessons.lesson import Hint, Lesson
from placement.lessons.letters import cleaned
from placement.lessons.reading import lesson_of
from studio.project import store
from studio.project.facts import HAND
from studio.project.file_cache import parsed
from studio.project.files import write_bytes
from studio.project.placements import Shelf
from studio.project.store import LONGEST_NAME, Project
from studio.snapshot import Studio

FILE = "lesson.md"
START = "start"
# What stands in the project's forms.
ANSWERS, HINTS, NAME = "lesson-answers", "lesson-hints", "lesson-name"


class OtherProblem(ValueError):
    """What is on the screen is not the problem of the project's lesson any more."""


@dataclass(frozen=True)
class Work:
    """A lesson that is open: what it poses, and what there is to hand in."""

    lesson: Lesson
    posed: Posed
    answer: Answer


def of(project: Project) -> Lesson | None:
    """The lesson of a project, where it has one."""
    path = project.folder / FILE
    return parsed(path, _read) if path.is_file() else None


def _read(path: Path) -> Lesson:
    return lesson_of(path.read_bytes(), path.name)


def hides(now: Studio, what: str) -> bool:
    """Whether the lesson of a project leaves something out, so that it is found by thinking."""
    lesson = readable(now.project)
    return lesson is not None and what in lesson.header.hidden


def readable(project: Project) -> Lesson | None:
    """The lesson of a project; None also where its file is not one any more."""
    try:
        return of(project)
    except (ValueError, OSError):
        return None


def homes() -> dict[str, Project]:
    """By the hash of each lesson that was begun its project, the one worked on last."""
    found = dict[str, Project]()
    for project in store.recent(limit=None, untouched=True):
        lesson = readable(project)
        if lesson is not None:
            found.setdefault(lesson.hash, project)
    return found


def begin(content: bytes, file_name: str, folder: Path = lessons.FOLDER) -> Project:
    """A new project for a lesson; a ValueError says what is wrong with its file.

    Whoever did the last lesson is taken to do this one.
    """
    lesson = lesson_of(content, file_name)
    posed, name = lessons.posed(lesson, folder), _last_name()
    project, header = store.create(), lesson.header
    write_bytes(project.folder / FILE, content)
    about: dict[str, Any] = {"model_kind": "sample", "model": header.model}
    about |= {"machine": header.machine} if header.machine else {}
    if not header.model:
        file = header.problem or "lesson.json"
        if not lesson.given:
            text = lessons.problem_file(lesson, folder).read_bytes()
        else:
            text = json.dumps(problem_to_json(posed.problem)).encode()
        about = {"model_kind": "file", "model": project.keep_upload(file, text)}
    project.change(
        name=header.title[:LONGEST_NAME],
        objective=header.objective,
        form={NAME: name} if name else {},
        **about,
    )
    shelf = Shelf.of(project.folder, posed.problem.graph, posed.problem.machine)
    shelf.add(START, posed.start, HAND)
    return project


def _last_name() -> str:
    """The name in the lesson worked on last of those with one; empty where there is none."""
    forms = (project.settings.form for project in homes().values())
    return next(filter(None, map(_name, forms)), "")


def work(now: Studio) -> Work | None:
    """What has been done of the project's lesson; None where it has none.

    OtherProblem says why what is on the screen is not the lesson's problem any more.
    """
    lesson = of(now.project)
    if lesson is None:
        return None
    posed = _posed(lesson, now.project.folder / "model")
    if lesson.header.live:
        posed = Posed(now.problem, posed.start)
    if now.problem.fingerprint != posed.problem.fingerprint:
        raise OtherProblem(
            "This is not the lesson's problem any more, because its goal, model or machine was"
            " changed; begin the lesson anew on the Lessons page."
        )
    form = now.settings.form
    answer = Answer(
        lesson=lesson.hash,
        problem=posed.problem.fingerprint,
        placement=now.placement,
        moves=_moves(now, posed),
        **_replied(lesson, form),
    )
    return Work(lesson, posed, answer)


def form_of(lesson: Lesson, form: Mapping[str, object]) -> dict[str, object]:
    """What forms hold of a lesson, as an answer could hold it, and nothing else."""
    replied = _replied(lesson, form)
    known = {ANSWERS: replied["answers"], HINTS: replied["hints"], NAME: replied["name"]}
    return {key: to_builtins(value) for key, value in known.items() if value}


def _replied(lesson: Lesson, form: Mapping[str, object]) -> dict[str, Any]:
    return {
        "name": _name(form),
        "answers": _answers(form.get(ANSWERS), lesson),
        "hints": _hints(form.get(HINTS), lesson),
    }


def _name(form: Mapping[str, object]) -> str:
    return cleaned(str(form.get(NAME, ""))[:LONGEST_OWN_NAME])[:LONGEST_OWN_NAME]


def mark(now: Studio, done: Work) -> Mark:
    """What the checks say of the placement on the screen and of the replies so far."""
    answer = done.answer
    return judged(
        done.lesson, done.posed, now.placement, now.simulated, answer.answers, answer.hints
    )


def is_over(now: Studio) -> bool:
    """Whether the lesson of a project is solved, or given up: all of its hints are taken."""
    try:
        done = work(now)
    except OtherProblem:
        return False
    if done is None:
        return False
    hints = {part.number for part in done.lesson.parts if isinstance(part, Hint)}
    given_up = bool(hints) and hints <= set(done.answer.hints)
    return given_up or mark(now, done).is_solved


@lru_cache(16)
def _posed(lesson: Lesson, folder: Path) -> Posed:
    """The problem file that a lesson names lies where the project's model does."""
    return lessons.posed(lesson, folder)


def _moves(now: Studio, posed: Posed) -> tuple[tuple[str, str], ...] | None:
    """The steps by hand from the lesson's start; None where the placement came about otherwise."""
    made = tuple((op, to) for step in now.history.done for op, _, to in step.changes)
    if len(made) > MOST_MOVES:
        return None
    try:
        leads_here = moved_by(posed.start, made) == now.placement.device_of
    except ValueError:
        return None
    return made if leads_here else None


def _answers(content: object, lesson: Lesson) -> Mapping[str, Given]:
    """Replies by their tasks; what cannot be one is left out, and the others stay."""
    given = content if isinstance(content, Mapping) else {}
    found = dict[str, Given]()
    for number in (str(task.number) for task in lesson.tasks):
        try:
            found |= decode({number: given[number]}, dict[str, Given])
        except (KeyError, ValueError):
            continue
    return found


def _hints(content: object, lesson: Lesson) -> tuple[int, ...]:
    """Numbers of hints that the lesson has."""
    given = content if isinstance(content, list | tuple) else ()
    return tuple(hint.number for hint in lesson.hints if hint.number in given)
