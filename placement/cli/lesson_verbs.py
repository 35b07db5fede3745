"""What the verbs `lessons`, `lesson` and `grade` do with their options; returns the exit status."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from placement.api import lessons as api
from placement.cli.printing import print_answer
from placement.core.formatting import counted, stated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement.lessons.grading import Grade
    from placement.lessons.lesson import Lesson


def lessons(options: Namespace) -> int:
    """List what there is to learn; the exit status is 1 where a file is no lesson."""
    rows = [_row(name) for name in api.lessons()]
    lines = (f"{r['name']:24} {r.get('error') or r['about']}" for r in rows)
    print_answer(options, rows, lines)
    return int(any("error" in row for row in rows))


def _row(name: str) -> dict[str, Any]:
    try:
        lesson = api.lesson(name)
    except (ValueError, OSError) as error:
        return {"name": name, "error": str(error)}
    return {
        "name": name,
        "title": lesson.header.title,
        "about": lesson.header.about,
        "methods": list(lesson.header.methods),
        "points": lesson.points,
        "stars": lesson.num_stars,
    }


def lesson(options: Namespace) -> int:
    """Check a lesson file, and what somebody handed in for it where an answer is named.

    The exit status is 1 where a task cannot be met, or is met before anything is done.
    """
    from placement.lessons.review import review

    found = api.lesson(options.lesson)
    posed = api.posed(found, api.path_of(options.lesson).parent)
    if options.answer:
        return _graded(options, found, api.grade(options.lesson, [options.answer]))
    remarks = review(found, posed)
    content: dict[str, Any] = {
        "title": found.header.title,
        "hash": found.hash,
        "problem": posed.problem.fingerprint,
        "points": found.points,
        "stars": found.num_stars,
        "tasks": [
            {"number": t.number, "line": t.line, "kind": t.check.__struct_config__.tag}
            | {"ask": t.check.ask, "points": t.check.points}
            for t in found.tasks
        ],
        "hints": [{"number": hint.number, "cost": hint.cost} for hint in found.hints],
        "remarks": [{"line": remark.line, "text": remark.text} for remark in remarks],
    }
    lines = [
        f"{found.header.title}: {counted(found.points, 'point')}",
        *(f"{t.number}. {t.check.ask} ({counted(t.check.points, 'point')})" for t in found.tasks),
        *(f"line {remark.line}: {remark.text}" for remark in remarks),
    ]
    print_answer(options, content, lines)
    return int(bool(remarks))


def grade(options: Namespace) -> int:
    """Grade answers; the exit status is 1 where one of them could not be."""
    return _graded(options, api.lesson(options.lesson), api.grade(options.lesson, options.answers))


def _graded(options: Namespace, lesson: "Lesson", grades: "tuple[Grade, ...]") -> int:
    from placement.lessons.grading import csv_of

    if getattr(options, "csv", False):
        print_answer(options, None, csv_of(lesson, grades).splitlines())
    else:
        print_answer(options, [g.to_json() for g in grades], _lines(lesson, grades))
    return int(any(g.error for g in grades))


def _lines(lesson: "Lesson", grades: "tuple[Grade, ...]") -> "Iterator[str]":
    for grade in grades:
        who = f"{grade.name} ({grade.file})" if grade.name else grade.file
        if grade.mark is None:
            yield f"{who}: refused: {grade.error}"
            continue
        stars = f", {counted(grade.mark.stars, 'star')}" if grade.mark.stars else ""
        value = "" if grade.value is None else f", {stated(grade.value, grade.unit)}"
        same = f", the same as {grade.same_as}" if grade.same_as else ""
        yield (
            f"{who}: {grade.mark.points} of {counted(grade.mark.of, 'point')}{stars}{value}{same}"
        )
        for task, verdict in zip(lesson.tasks, grade.mark.verdicts, strict=True):
            sign = "+" if verdict.passed else "-"
            yield f"  {sign} {task.number}. {task.check.ask}: {verdict.feedback}"
