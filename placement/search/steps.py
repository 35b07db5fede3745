"""Steps of a method: what a placer works out one after another, for people who follow it.

A step is a picture of the method at work, made by the code that decides: which ops are placed, what
is looked at, the plan so far, the figures that are compared, and why it goes on as it does. What
steps are put together from stands in `step_parts.py`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Span

Cell = str | float | None
Kind = Literal["text", "seconds", "bytes", "number", "share"]


@dataclass(frozen=True)
class Column:
    """A column of a step's table; seconds are seconds, whatever unit the problem is printed in."""

    name: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Table:
    """What a step compares: a row for each alternative, None where it has no figure.

    `marked` are the numbers of the rows that were chosen, `guessed` of those that are a guess.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: tuple[int, ...] = ()
    guessed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        wrong = next((row for row in self.rows if len(row) != len(self.columns)), None)
        assert wrong is None, f"{self.title}: {wrong} has another number of cells than of columns"

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells below a name."""
        i = next(i for i, column in enumerate(self.columns) if column.name == name)
        return tuple(row[i] for row in self.rows)


@dataclass(frozen=True)
class Question:
    """What somebody may answer before the step is shown; the answer is one of the choices.

    `answer` is what the method takes. `equal` are the other choices that are as good, and as right.
    """

    text: str
    choices: tuple[str, ...]
    answer: str
    equal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = [c for c in (self.answer, *self.equal) if c not in self.choices]
        assert not wrong, f"{self.text} {wrong} are none of the choices"

    @property
    def answers(self) -> tuple[str, ...]:
        """All that are right, in the order of the choices."""
        return tuple(c for c in self.choices if c == self.answer or c in self.equal)


def question(text: str, answer: str, values: Mapping[str, float]) -> Question | None:
    """Which choice has the least value; nothing where all have it, for there is nothing to tell.

    `values` are by choice, and those that differ by rounding alone are equal.
    """
    least = values[answer]
    equal = tuple(c for c, value in values.items() if c != answer and is_equal(value, least))
    if len(equal) + 1 == len(values):
        return None
    return Question(text, tuple(values), answer, equal)


def is_equal(value: float, other: float) -> bool:
    """Whether two values are the same but for the order in which they were added up."""
    return math.isclose(value, other, rel_tol=1e-9)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a method has worked out after one more step.

    `line` is the line of its pseudo-code that it is at, `why` one sentence on what it did.
    `devices` (U,) has the device of each unit, -1 where it is not placed yet; `focus` names the
    source ops that the step is about. `spans` is the plan so far, as a partial timeline, and
    `ghosts` are the alternatives of this step on it, of which number `winner` was taken (-1: none).
    `opacity` (U,) is how strongly each unit is drawn, from 0 to 1, all of them fully where it is
    empty: the chance of its device where a method draws lots, less where a unit is done with.
    `guessed` names source ops whose device is a guess of a method that is exact elsewhere.
    `question` can be asked by whoever knows the step before. `placement` is the method's answer,
    which the last step alone has.
    """

    line: int
    why: str
    devices: tuple[int, ...]
    focus: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    ghosts: tuple[Span, ...] = ()
    winner: int = -1
    opacity: tuple[float, ...] = ()
    guessed: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    question: Question | None = None
    placement: Placement | None = field(default=None, repr=False)


def placed_ops(problem: Problem, step: Step) -> dict[str, str]:
    """The device of each source op that is placed."""
    names = [device.name for device in problem.machine.devices]
    devices = (step.devices[unit] for unit in problem.unit_of_op.tolist())
    ops = zip(problem.graph.ops, devices, strict=True)
    return {op.name: names[device] for op, device in ops if device >= 0}


def ops_of_kernel(problem: Problem, k: int) -> tuple[str, ...]:
    """The source ops behind a kernel, or of its unit where it has none of its own."""
    unit = int(problem.unit_of_kernel[k])
    found = problem.sources[k] or problem.ops_of_unit[unit]
    return tuple(problem.graph.ops[i].name for i in found)


def deciding(problem: Problem, steps: Sequence[Step], op: str) -> Step | None:
    """The step that has put an op where the method's answer has it, None where none tells of it.

    That is the last one after which its unit was there and before which it was not; the last step
    of all, which mends an answer, and one for all that was not shown tell of no op.
    """
    unit, found, before = int(problem.unit_of_op[problem.graph.index[op]]), None, -1
    for step in steps[:-1]:
        device = step.devices[unit]
        if device == steps[-1].devices[unit] != before and step.focus:
            found = step
        before = device
    return found if before == steps[-1].devices[unit] else None
