"""Grading: many answers to one lesson, each simulated anew, as rows of a table.

Of an answer only the placement, the replies and the hints taken count; it holds no value that was
predicted of it when it was made. What does not fit the lesson is a row with a sentence.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from placement.core.amounts import in_unit
from placement.core.decoding import shortened, shown
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.lessons.answer import Answer, answer_of, read_answer
from placement.lessons.judging import Mark, Posed, judged
from placement.lessons.lesson import Lesson
from placement.schedule.simulated import simulate
from placement.schedule.symmetry import num_changed

LONGEST_LABEL = 200
# What a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Grade:
    """A file that was handed in: its mark and predicted value, or by its `error` why it has none.

    `file` is its path, or its name and, from the second of that name on, a number. `lesson` is the
    hash of the lesson that it says it answers, empty where it cannot be read. `value` is in
    `unit`, and None for a live lesson, where it is one of another computer. `same_as` names the
    first file before it with the same placement, up to the names of equal devices.
    """

    file: str
    name: str = ""
    mark: Mark | None = None
    value: float | None = None
    unit: str = "s"
    same_as: str = ""
    error: str = ""
    lesson: str = ""

    @property
    def passed(self) -> tuple[bool, ...]:
        """Whether each check is passed; empty where there is no mark."""
        return () if self.mark is None else tuple(v.passed for v in self.mark.verdicts)

    def to_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"file": self.file, "name": self.name}
        if self.mark is None:
            return row | {"error": self.error}
        return row | {
            "points": self.mark.points,
            "of": self.mark.of,
            "stars": self.mark.stars,
            "hint_points": self.mark.hint_points,
            "solved": self.mark.is_solved,
            "value": self.value,
            "unit": self.unit,
            "checks": list(self.passed),
            "same_as": self.same_as,
        }


def grade(lesson: Lesson, posed: Posed, paths: Iterable[Path]) -> tuple[Grade, ...]:
    """The grade of each answer file, in their order."""
    return _grades(lesson, posed, ((str(path), partial(read_answer, path)) for path in paths))


def grade_contents(
    lesson: Lesson, posed: Posed, files: Iterable[tuple[str, bytes]]
) -> tuple[Grade, ...]:
    """The same of files by their names and contents."""
    met = Counter[str]()
    read = list[tuple[str, Callable[[], Answer]]]()
    for name, content in files:
        met[name] += 1
        label = name if met[name] == 1 else f"{name} ({met[name]})"
        read.append((label, partial(answer_of, content, name)))
    return _grades(lesson, posed, read)


def _grades(
    lesson: Lesson, posed: Posed, files: Iterable[tuple[str, Callable[[], Answer]]]
) -> tuple[Grade, ...]:
    grades = list[Grade]()
    placements = list[tuple[str, Placement]]()
    for label, read in files:
        file = shortened(label if label.isprintable() else repr(label), LONGEST_LABEL)
        answers = ""
        try:
            answer = read()
            answers = answer.lesson
            found = graded(lesson, posed, answer)
        except ValueError as error:
            grades.append(Grade(file, error=str(error), lesson=answers))
            continue
        same = (f for f, p in placements if _is_same(posed.problem, p, answer.placement))
        grades.append(replace(found, file=file, same_as=next(same, ""), lesson=answers))
        if not lesson.header.live:
            placements.append((file, answer.placement))
    return tuple(grades)


def graded(lesson: Lesson, posed: Posed, answer: Answer) -> Grade:
    """The grade of an answer; a ValueError says why it is none to this lesson."""
    _require_answer_to(lesson, posed, answer)
    problem, placement = posed.problem, answer.placement
    if lesson.header.live:
        mark = judged(lesson, posed, placement, None, answer.answers, answer.hints)
        return Grade("", answer.name, mark, None, problem.unit)
    predicted = simulate(problem, placement)
    mark = judged(lesson, posed, placement, predicted, answer.answers, answer.hints)
    value = in_unit(predicted.value, problem.unit)
    return Grade("", answer.name, mark, value, problem.unit)


def _is_same(problem: Problem, here: Placement, there: Placement) -> bool:
    return here.order == there.order and not num_changed(problem, here, there)


def _require_answer_to(lesson: Lesson, posed: Posed, answer: Answer) -> None:
    problem, placement = posed.problem, answer.placement
    if answer.lesson != lesson.hash:
        raise ValueError(
            f"It answers another lesson, or another version of this one ({shown(answer.lesson)},"
            f" this one is {lesson.hash})."
        )
    if answer.problem != problem.fingerprint and not lesson.header.live:
        raise ValueError(
            f"It is about another problem ({shown(answer.problem)}, the lesson's is"
            f" {problem.fingerprint})."
        )
    placement.require_graph(problem.graph)
    if placement.calls or placement.replicas:
        raise ValueError("Its placement asks for calls or replicas, which no lesson offers.")
    if not lesson.header.live:
        _require_possible(posed, answer)
    numbers = {str(task.number) for task in lesson.tasks}
    unknown = next((n for n in answer.answers if n not in numbers), None)
    if unknown is not None:
        raise ValueError(f"It answers task {unknown}, which this lesson does not have.")
    hint = next((n for n in answer.hints if n > len(lesson.hints)), None)
    if hint is not None:
        raise ValueError(f"It took hint {hint}, which this lesson does not have.")


def _require_possible(posed: Posed, answer: Answer) -> None:
    """Devices are the problem's and moves begin at the start, which both depend on the machine."""
    placement = answer.placement
    for device in placement.device_of.values():
        posed.problem.machine.device(device)
    if answer.moves is not None and moved_by(posed.start, answer.moves) != placement.device_of:
        raise ValueError("Its moves, made from the lesson's start, do not lead to its placement.")


def moved_by(start: Placement, moves: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Where each op is once these moves have been made one after the other."""
    devices = dict(start.device_of)
    for op, device in moves:
        if op not in devices:
            raise ValueError(f"Its moves name op {shown(op)}, which this graph does not have.")
        devices[op] = device
    return devices


def csv_of(lesson: Lesson, grades: Sequence[Grade]) -> str:
    """A table for a spreadsheet, which takes nothing in it for a formula."""
    tasks = [f"task {task.number}" for task in lesson.tasks]
    head = ["file", "name", "points", "of", "stars", "hint points", "value", "unit", *tasks]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*head, "same as", "error"])
    for grade in grades:
        mark = grade.mark
        cells: list[object] = [grade.file, grade.name]
        if mark is None:
            cells += [""] * (len(head) - 2)
        else:
            cells += [mark.points, mark.of, mark.stars, mark.hint_points]
            cells += ["", ""] if grade.value is None else [f"{grade.value:.6g}", grade.unit]
            cells += [*map(int, grade.passed)]
        writer.writerow([_cell(cell) for cell in (*cells, grade.same_as, grade.error)])
    return out.getvalue()


def _cell(value: object) -> object:
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value
