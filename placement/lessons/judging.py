"""Judging: what each check says of a placement and of answers, and what all are worth together.

Everything is worked out anew: a value by simulation, a gap by the bound, moves by comparing with
the start up to the names of equal devices.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placement.bounds.lower_bound import lower_bound
from placement.core.amounts import in_unit
from placement.core.decoding import listed, shown
from placement.core.formatting import counted, percent, seconds
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.violations import violations
from placement.lessons.answer import Given
from placement.lessons.lesson import (
    PLACED,
    QUESTIONS,
    AnyCheck,
    ChoiceCheck,
    GapCheck,
    Lesson,
    MovesCheck,
    NumberCheck,
    OrderCheck,
    PathCheck,
    StepCheck,
    Task,
)
from placement.schedule.simulated import Simulated
from placement.schedule.symmetry import num_changed

# Values of one placement that were added up in another order differ by this much at most.
SAME = 1e-9
UNANSWERED = "not answered yet"


@dataclass(frozen=True)
class Posed:
    """What a lesson poses: the problem, and the placement to begin with."""

    problem: Problem
    start: Placement


@dataclass(frozen=True)
class Verdict:
    """Whether a check is passed, what is said of that, and whether there is a star for it."""

    number: int
    passed: bool
    feedback: str
    points: int = 0
    star: bool = False


@dataclass(frozen=True)
class Mark:
    """What all checks of a lesson say of one piece of work, and the points of it."""

    verdicts: tuple[Verdict, ...]
    points: int
    of: int
    stars: int
    hint_points: int

    @property
    def is_solved(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)


def require_fitting(lesson: Lesson, posed: Posed) -> None:
    """ValueError with the line where a check names ops that nobody could give or has."""
    ops = posed.problem.graph.index
    for task in lesson.tasks:
        names = task.check.ops if isinstance(task.check, OrderCheck) else ()
        untypable = next((op for op in names if ops_of(op) != (op,)), None)
        if untypable is not None:
            raise ValueError(
                f"line {task.line}: nobody can answer with op {shown(untypable)}, since commas"
                " stand between the ops of an answer; rename it, or ask with a choice."
            )
        unknown = next((op for op in _ops_named(task.check) if op not in ops), None)
        if unknown is not None:
            raise ValueError(
                f"line {task.line}: the check names op {shown(unknown)}, which"
                f" {shown(posed.problem.graph.name)} does not have; it has {listed(ops)}."
            )


def ops_of(typed: str) -> tuple[str, ...]:
    """The ops that somebody typed, with commas or ends of lines between them."""
    return tuple(op for part in re.split(r"[,\n]", typed) if (op := part.strip()))


def _ops_named(check: AnyCheck) -> Sequence[str]:
    match check:
        case PathCheck():
            return (*check.holds, *check.avoids)
        case OrderCheck():
            return check.ops
        case _:
            return ()


def judged(
    lesson: Lesson,
    posed: Posed,
    placement: Placement,
    predicted: Simulated | None,
    answers: Mapping[str, Given],
    hints: Sequence[int] = (),
) -> Mark:
    """What the checks say of a placement, which is predicted to do so, and of answers by number.

    Where nothing can be predicted, for the placement is on devices of another computer, only
    questions can be right; a live lesson has no other checks.
    """
    work = None if predicted is None else _work(posed, placement, predicted)
    alone = [_verdict(task, work, answers.get(str(task.number))) for task in lesson.tasks]
    verdicts = tuple(_with_few_moves(lesson.tasks, alone, each) for each in alone)
    cost = sum(hint.cost for hint in lesson.hints if hint.number in set(hints))
    won = sum(verdict.points for verdict in verdicts)
    return Mark(
        verdicts=verdicts,
        points=max(0, won - cost),
        of=lesson.points,
        stars=sum(verdict.star for verdict in verdicts),
        hint_points=cost,
    )


@dataclass(frozen=True)
class _Work:
    posed: Posed
    placement: Placement
    predicted: Simulated
    broken: str


def _work(posed: Posed, placement: Placement, predicted: Simulated) -> _Work:
    broken = violations(posed.problem, predicted.schedule, placement.calls)
    return _Work(posed, placement, predicted, broken[0] if broken else "")


def _verdict(task: Task, work: _Work | None, given: Given | None) -> Verdict:
    check, star = task.check, False
    if isinstance(check, QUESTIONS):
        passed, feedback = _answered(check, given)
    elif work is None:
        passed, feedback = False, "nothing is predicted of it here"
    elif work.broken and not isinstance(check, MovesCheck):
        passed, feedback = False, f"this placement is not allowed: {work.broken}"
    else:
        passed, feedback = _placed(check, work)
        star = isinstance(check, StepCheck) and _has_star(check, work)
    return Verdict(task.number, passed, feedback, check.points if passed else 0, star)


def _with_few_moves(
    tasks: Sequence[Task], verdicts: Sequence[Verdict], verdict: Verdict
) -> Verdict:
    """A verdict, where it is on a number of moves with what the tasks above it ask for.

    Few moves are worth something for what they bring: who has moved nothing has made none.
    """
    if not verdict.passed or not isinstance(tasks[verdict.number - 1].check, MovesCheck):
        return verdict
    above = [v for v in verdicts[: verdict.number - 1] if not v.passed]
    missed = [v.number for v in above if isinstance(tasks[v.number - 1].check, PLACED)]
    if not missed:
        return verdict
    first = f"task {missed[0]}" if len(missed) == 1 else f"tasks {listed(missed)}"
    return replace(verdict, passed=False, points=0, feedback=f"{verdict.feedback}; {first} first")


def _placed(check: AnyCheck, work: _Work) -> tuple[bool, str]:
    problem, value_s = work.posed.problem, work.predicted.value
    unit = problem.unit
    match check:
        case StepCheck():
            passed = in_unit(value_s, unit) <= check.at_most * (1 + SAME)
            return passed, f"it takes {seconds(value_s, unit)}"
        case GapCheck():
            bound_s = lower_bound(problem, work.placement)
            above = value_s / bound_s - 1.0 if bound_s > 0 else float("inf")
            said = percent(above) if bound_s > 0 else "unknown"
            return above <= check.at_most / 100.0 + SAME, f"it is {said} above the bound"
        case MovesCheck():
            moved = num_changed(problem, work.posed.start, work.placement)
            return moved <= check.at_most, f"{counted(moved, 'op')} moved"
        case PathCheck():
            return _along(check, critical_ops(problem, work.predicted))
    raise AssertionError(check)


def _has_star(check: StepCheck, work: _Work) -> bool:
    value = in_unit(work.predicted.value, work.posed.problem.unit)
    return check.star is not None and value <= check.star * (1 + SAME)


def _along(check: PathCheck, path: Sequence[str]) -> tuple[bool, str]:
    missing = [op for op in check.holds if op not in path]
    there = [op for op in check.avoids if op in path]
    said = [f"{listed(missing)} is not on it"] if missing else []
    said += [f"{listed(there)} is on it"] if there else []
    return not said, "; ".join(said) or f"it runs through {listed(path)}"


def critical_ops(problem: Problem, predicted: Simulated) -> tuple[str, ...]:
    """Source ops that compute on the critical path, in order."""
    found: dict[str, None] = {}
    for span in predicted.critical_path:
        if span.kind == "compute" and span.segment >= 0:
            for kernel in predicted.schedule.segments[span.segment].kernels:
                sources = problem.sources[problem.kernels.index[kernel]]
                found |= dict.fromkeys(problem.graph.ops[i].name for i in sources)
    return tuple(found)


def _answered(
    check: OrderCheck | ChoiceCheck | NumberCheck, given: Given | None
) -> tuple[bool, str]:
    """Whether an answer is right; of a wrong one only what the lesson itself says about it."""
    if given is None or given in ("", ()):
        return False, UNANSWERED
    match check:
        case ChoiceCheck():
            if given == check.right:
                return True, _explained("right", check.why)
            return False, _explained("not right", check.wrong.get(str(given), ""))
        case NumberCheck():
            is_right = isinstance(given, float | int) and (
                abs(given - check.right) <= check.tolerance + SAME * abs(check.right)
            )
            return (True, _explained("right", check.why)) if is_right else (False, "not right")
        case OrderCheck():
            if not isinstance(given, tuple | list):
                return False, "it is no list of ops"
            right = 0
            while right < min(len(given), len(check.ops)) and given[right] == check.ops[right]:
                right += 1
            if right == len(check.ops) == len(given):
                return True, "right"
            return False, f"the first {right} of {len(check.ops)} are right"


def _explained(word: str, why: str) -> str:
    return f"{word}: {why}" if why else word
