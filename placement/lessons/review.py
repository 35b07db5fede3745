"""Reviews of lessons: tasks that nobody can meet, and tasks that are met before anybody begins.

What is below the bound is out of reach for certain. Otherwise all placements of a small problem are
tried, each in the order that the studio gives it, and of a larger one what searches find; an order
changed by hand might do better, so such a remark says what was tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from placement.bounds.lower_bound import lower_bound
from placement.core.amounts import in_unit
from placement.core.decoding import listed
from placement.core.formatting import percent, stated
from placement.core.placement import Placement
from placement.core.violations import violations
from placement.lessons.judging import SAME, Mark, Posed, judged
from placement.lessons.lesson import PLACED, GapCheck, Lesson, MovesCheck, StepCheck, Task
from placement.placers import placer_class
from placement.schedule.simulated import simulate
from placement.search.feasible import all_placements

# Of a large graph they are given so long; of a small one they make as many moves as it takes.
SEARCHES, MANY_OPS, SEARCH_S = ("local_search", "annealing"), 100, 5.0


@dataclass(frozen=True)
class Remark:
    """What a lecturer wants to know of a lesson, at the line of its task."""

    line: int
    text: str


@dataclass(frozen=True)
class _Tried:
    """Marks of the placements that were tried, and the least value of those that are allowed."""

    words: str
    is_all: bool
    marks: tuple[Mark, ...]
    best_s: float


def review(lesson: Lesson, posed: Posed) -> tuple[Remark, ...]:
    """Remarks on the tasks of a lesson, by their lines; none on one that is live."""
    tasks = [task for task in lesson.tasks if isinstance(task.check, PLACED)]
    if lesson.header.live or not tasks:
        return ()
    remarks = [*_met_at_the_start(lesson, posed, tasks), *_out_of_reach(lesson, posed, tasks)]
    return tuple(sorted(remarks, key=lambda remark: remark.line))


def _met_at_the_start(lesson: Lesson, posed: Posed, tasks: Sequence[Task]) -> Iterator[Remark]:
    verdicts = _mark(lesson, posed, posed.start).verdicts
    for task in tasks:
        # Whoever has moved nothing keeps within any number of moves.
        if verdicts[task.number - 1].passed and not isinstance(task.check, MovesCheck):
            yield Remark(
                task.line,
                f"task {task.number} is met at the start, before anything is done; ask for more.",
            )


def _out_of_reach(lesson: Lesson, posed: Posed, tasks: Sequence[Task]) -> Iterator[Remark]:
    problem = posed.problem
    tried, bound_s = _tried(lesson, posed), lower_bound(problem)
    if math.isinf(tried.best_s):
        said = f"none of {tried.words} keeps all rules; give devices more memory, or allow more."
        yield Remark(tasks[0].line, said)
        return
    best, bound = (in_unit(s, problem.unit) for s in (tried.best_s, bound_s))
    missed = 0
    for task in tasks:
        for who, goal in _goals(task):
            asks = f"{who} asks for {stated(goal, problem.unit)}"
            if bound > goal * (1 + SAME):
                missed += 1
                never = f"no placement takes less than {stated(bound, problem.unit)}, the bound"
                yield Remark(task.line, f"{asks}, but {never}; ask for that or more.")
            elif best > goal * (1 + SAME):
                missed += 1
                found = f"the best of {tried.words} takes {stated(best, problem.unit)}"
                yield Remark(task.line, f"{asks}, but {found}; ask for that or more.")
        if isinstance(task.check, GapCheck) and bound_s > 0:
            above = tried.best_s / bound_s - 1.0
            if above > task.check.at_most / 100.0 + SAME:
                missed += 1
                allowed = percent(task.check.at_most / 100.0)
                yield Remark(
                    task.line,
                    f"task {task.number} allows {allowed} above the bound, but the best of"
                    f" {tried.words} is {percent(above)} above it; allow more.",
                )
    if tried.is_all and not missed and not any(_meets(mark, tasks) for mark in tried.marks):
        numbers = listed(task.number for task in tasks)
        named = f"tasks {numbers} together" if len(tasks) > 1 else f"task {numbers}"
        yield Remark(tasks[-1].line, f"none of {tried.words} meets {named}; ask for less.")


def _goals(task: Task) -> Iterator[tuple[str, float]]:
    """Values that a task asks for, each with who asks for it."""
    if isinstance(task.check, StepCheck):
        yield f"task {task.number}", task.check.at_most
        if task.check.star is not None:
            yield f"the star of task {task.number}", task.check.star


def _meets(mark: Mark, tasks: Sequence[Task]) -> bool:
    return all(mark.verdicts[task.number - 1].passed for task in tasks)


def _tried(lesson: Lesson, posed: Posed) -> _Tried:
    problem = posed.problem
    every = tuple(all_placements(problem))
    limit_s = SEARCH_S if len(problem.kernels.ops) > MANY_OPS else None
    found = list(every)
    for search in () if every else SEARCHES:
        # It refuses where it finds nothing that fits.
        with suppress(ValueError):
            found.append(placer_class(search)(time_limit_s=limit_s).place(problem))
    marks, best_s = list[Mark](), float("inf")
    for placement in (posed.start, *found):
        predicted = simulate(problem, placement)
        marks.append(judged(lesson, posed, placement, predicted, {}))
        if not violations(problem, predicted.schedule, placement.calls):
            best_s = min(best_s, predicted.value)
    words = f"all {len(every)} placements" if every else f"what {listed(SEARCHES)} found"
    return _Tried(words, bool(every), tuple(marks), best_s)


def _mark(lesson: Lesson, posed: Posed, placement: Placement) -> Mark:
    return judged(lesson, posed, placement, simulate(posed.problem, placement), {})
