"""The verbs `lessons`, `lesson` and `grade`: what there is to learn, and what was handed in.

The folder `assets/lessons/` is the list: each Markdown file there is a lesson, by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from placement.files.program import ASSETS

if TYPE_CHECKING:
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.lessons.grading import Grade
    from placement.lessons.judging import Posed
    from placement.lessons.lesson import Lesson

FOLDER = ASSETS / "lessons"
# A problem that is looked at beside its lesson; what people learn from is far smaller.
MOST_OPS, MOST_DEVICES, MOST_PROBLEM_BYTES = 20_000, 100, 16 * 2**20
# For the method that makes the start, where it is given a stranger's problem.
START_S = 60.0


_TOO_MUCH = (
    "what it poses takes too much time or memory to work out; pose a smaller problem, or another"
    " start."
)


def lessons() -> tuple[str, ...]:
    """Names of the lessons that are here, in the order in which they are meant."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.md")))


def lesson_number(name: str) -> str:
    """The number that a lesson's name begins with, as a person says it: "4" of "04-heft"."""
    return name.partition("-")[0].lstrip("0")


def path_of(named: str) -> Path:
    """The file of a lesson: one that is here by its name or its number, or the path of another."""
    numbered = [name for name in lessons() if named in (name, lesson_number(name))]
    if numbered:
        return FOLDER / f"{numbered[0]}.md"
    path = Path(named)
    if not path.exists() and path.suffix != ".md":
        known = ", ".join(lessons())
        raise ValueError(f"There is no lesson {named!r}; use one of {known}, or a file's path.")
    return path


def readable() -> Mapping[str, Lesson]:
    """The lessons that are here by their names, but for files that cannot be read.

    The list of lessons tells what is wrong with those.
    """
    versions = list[tuple[Path, int]]()
    for path in (FOLDER / f"{name}.md" for name in lessons()):
        with suppress(OSError):
            versions.append((path, path.stat().st_mtime_ns))
    return _readable(tuple(versions))


@lru_cache(1)
def _readable(versions: tuple[tuple[Path, int], ...]) -> Mapping[str, Lesson]:
    """Read anew where a file is new or has changed."""
    from placement.lessons.reading import read_lesson

    found: dict[str, Lesson] = {}
    for path, _ in versions:
        with suppress(ValueError, OSError):
            found[path.stem] = read_lesson(path)
    return found


def is_own(lesson: Lesson) -> bool:
    """Whether a lesson is one of those that are here, whatever its file is called."""
    return any(lesson.hash == own.hash for own in readable().values())


def about_method(method: str) -> tuple[str, ...]:
    """The lessons that are about a placer, as a person reads them: "4, HEFT by hand"."""
    about = ((name, each.header) for name, each in readable().items())
    return tuple(f"{lesson_number(n)}, {h.title}" for n, h in about if method in h.methods)


def following(lesson: Lesson) -> str:
    """The name of the lesson after one that is here; empty after the last, and after others."""
    names = list(readable())
    here = next((name for name, each in readable().items() if each.hash == lesson.hash), "")
    after = names[names.index(here) + 1 :] if here else ()
    return next(iter(after), "")


def lesson(named: str) -> Lesson:
    """The lesson of that name, number or path; a ValueError says in which line it is wrong."""
    from placement.lessons.reading import read_lesson

    return read_lesson(path_of(named))


def posed(lesson: Lesson, folder: Path = FOLDER) -> Posed:
    """What a lesson poses; a problem file lies in the `folder` of the lesson, or among ours.

    One that is not among ours may come from anybody: it is posed by a confined process, which ends
    with what it takes too much of.
    """
    from profiling.sandbox import confinement

    if is_own(lesson):
        return pose(lesson, FOLDER)
    if confinement.is_confined():
        return pose(lesson, folder)
    from placement.remote import calls

    try:
        _require_inside(lesson, folder)
        return calls.pose(lesson, folder)
    except (ValueError, RuntimeError, MemoryError) as error:
        said = _TOO_MUCH if isinstance(error, calls.Ended) else str(error)
        if not said.startswith("The lesson "):
            line = _line_of_posing(lesson)
            said = f"The lesson {lesson.header.title!r} cannot be used: line {line}: {said}"
        raise ValueError(said) from None


def pose(lesson: Lesson, folder: Path) -> Posed:
    """The same, worked out in this process."""
    from placement.lessons.judging import Posed, require_fitting
    from profiling.sandbox import confinement

    header = lesson.header
    try:
        problem = _problem(lesson, folder)
        _require_small(problem)
        confinement.file_is_read(0)
        with confinement.deadline(START_S):
            start = _start(lesson, problem)
        found = Posed(problem, start)
        require_fitting(lesson, found)
        _require_methods(header.methods, lesson)
    except ValueError as error:
        said = str(error)
        if said.startswith("line "):
            raise ValueError(f"The lesson {header.title!r} cannot be used: {said}") from None
        line = _line_of_posing(lesson)
        raise ValueError(
            f"The lesson {header.title!r} cannot be used: line {line}: {said}"
        ) from None
    return found


def grade(named: str, paths: Iterable[str | Path]) -> tuple[Grade, ...]:
    """The grades of answer files to the lesson of that name, number or path."""
    from placement.lessons import grading

    found = lesson(named)
    return grading.grade(found, posed(found, path_of(named).parent), map(Path, paths))


def references(lesson: Lesson, posed: Posed) -> dict[str, float]:
    """What handed-in values are held against, in the problem's unit: HEFT, what is asked, the star.

    HEFT stands there where it works for the goal. The star of a lesson that is here is the best
    that can be (`tests/lessons/test_shipped.py`).
    """
    from placement.api.place import place
    from placement.core.amounts import in_unit
    from placement.core.objective import Objective
    from placement.lessons.lesson import StepCheck

    found = dict[str, float]()
    if posed.problem.objective is Objective.LATENCY:
        found["HEFT"] = in_unit(place(posed.problem, "heft").value, posed.problem.unit)
    for check in (task.check for task in lesson.tasks):
        if isinstance(check, StepCheck):
            found["asked"] = check.at_most
            if check.star is not None:
                found["star"] = check.star
    return found


def problem_file(lesson: Lesson, folder: Path = FOLDER) -> Path:
    """Where the problem lies that a lesson names: beside it, or else among ours.

    A lesson that is here means the one that is here, too.
    """
    beside = folder / lesson.header.problem
    is_beside = beside.is_file() and not is_own(lesson)
    return beside if is_beside else FOLDER / lesson.header.problem


def _require_inside(lesson: Lesson, folder: Path) -> None:
    """Refuse a problem file beside a lesson that leads to another folder: that one is not read."""
    if not lesson.header.problem:
        return
    path = problem_file(lesson, folder)
    if path.parent != FOLDER and path.resolve().parent != folder.resolve():
        raise ValueError(
            f"{path.name!r} leads out of the folder of the lesson; put the problem file itself"
            " there."
        )


def model_of(lesson: Lesson, folder: Path = FOLDER) -> Model:
    """The model, or the problem with its graph, that a lesson is about."""
    from placement.api.models import load
    from placement.core.model import Model
    from placement.core.problem_json import problem_from_json
    from placement.files.input import json_value, read_value, regular_file
    from placement.loaders import is_sample

    header = lesson.header
    if header.model:
        if not is_sample(header.model):
            raise ValueError(f"There is no bundled model {header.model!r}; see `samples`.")
        return load(header.model)
    if lesson.given:
        problem = problem_from_json(json_value(lesson.given), "lesson")
    else:
        path = problem_file(lesson, folder)
        size = regular_file(path).stat().st_size
        if size > MOST_PROBLEM_BYTES:
            raise ValueError(
                f"{path.name!r} has {size} bytes, more than the {MOST_PROBLEM_BYTES} that the"
                " problem of a lesson may have; pose a smaller one."
            )
        problem = read_value(path, "problem file", lambda c: problem_from_json(c, path.stem))
    return Model(problem.graph, problem=problem)


def _problem(lesson: Lesson, folder: Path) -> Problem:
    from placement.api.machines import machine, machine_for
    from placement.api.problems import make_problem

    model, objective = model_of(lesson, folder), lesson.header.objective
    if model.problem is not None:
        return make_problem(model, model.problem.machine, objective=objective)
    named = lesson.header.machine
    if "/" in named or named.endswith(".json"):
        raise ValueError(f"The machine {named!r} is a file; name a preset.")
    return make_problem(model, machine_for(model, machine(named)), objective=objective)


def _start(lesson: Lesson, problem: Problem) -> Placement:
    from placement.api.place import place
    from placement.core.decoding import shown
    from placement.core.placement import Placement

    start, machine = lesson.header.start, problem.machine
    if start.placer:
        return place(problem, start.placer, seed=lesson.header.seed).placement
    for device in filter(None, (start.device, *start.devices.values())):
        machine.device(device)
    unknown = next((op for op in start.devices if op not in problem.graph.index), None)
    if unknown is not None:
        raise ValueError(f"The start names op {shown(unknown)}, which the problem does not have.")
    others = start.device or machine.devices[0].name
    devices = {op.name: start.devices.get(op.name, others) for op in problem.graph.ops}
    return Placement(problem.graph.fingerprint, machine.name, devices)


def _require_methods(methods: tuple[str, ...], lesson: Lesson) -> None:
    from placement.placers import names

    unknown = next((name for name in methods if name not in names()), None)
    if unknown is not None:
        raise ValueError(
            f"line {lesson.lines.get('methods', 1)}: there is no method {unknown!r}; see `placers`."
        )


def _require_small(problem: Problem) -> None:
    num_ops, num_devices = len(problem.kernels.ops), len(problem.machine.devices)
    if num_ops > MOST_OPS or num_devices > MOST_DEVICES:
        raise ValueError(
            f"its problem has {num_ops} ops and {num_devices} devices, more than the {MOST_OPS} and"
            f" {MOST_DEVICES} that a lesson may have; pose a smaller one."
        )


def _line_of_posing(lesson: Lesson) -> int:
    """Where a lesson says what it poses and how it begins."""
    if lesson.given_at:
        return lesson.given_at
    keys = ("start", "problem", "machine", "model")
    return next((lesson.lines[key] for key in keys if key in lesson.lines), 1)
