"""A lesson as a value: what is posed, the tasks with their checks, hints, and one insight.

What a check may ask is a closed vocabulary, decided by simulation, bounds and comparison, so that
a stranger's lesson runs nothing. The classes carry the words that a file says them in
(`reading.py` reads it, `judging.py` decides).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from msgspec import Meta, Struct

from placement.core.amounts import MOST
from placement.core.objective import Objective

MOST_POINTS = 100
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Line = Annotated[str, Meta(max_length=500)]
Asked = Annotated[str, Meta(min_length=1, max_length=1_000)]
Points = Annotated[int, Meta(ge=0, le=MOST_POINTS)]
Seconds = Annotated[float, Meta(ge=0, le=MOST)]
Names = Annotated[tuple[Name, ...], Meta(min_length=1, max_length=200)]
Hidden = Literal["methods", "hints", "bound"]
WORDS = Meta(max_length=200)


class Start(Struct, frozen=True, forbid_unknown_fields=True):
    """The placement that a lesson begins with: all on a device, a placer's, or op by op.

    `devices` says it for single ops, beside a `device` for all others. Without anything all ops are
    on the first device.
    """

    device: Annotated[str, WORDS] = ""
    placer: Annotated[str, WORDS] = ""
    devices: Annotated[Mapping[Name, Name], Meta(max_length=1_000)] = {}

    def __post_init__(self) -> None:
        if self.placer and (self.device or self.devices):
            raise ValueError("placer and device exclude each other; say one of them.")


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    """What stands above the text.

    Posed is a `problem` file beside the lesson, a `model` (a bundled sample) on a `machine` (a
    preset), or a block in the text. `methods` names the placers that the lesson is about. A `live`
    lesson is for the reader's own computer: its checks are questions, because predictions differ.
    """

    title: Annotated[str, Meta(min_length=1, max_length=120)]
    about: Line = ""
    problem: Annotated[str, Meta(pattern=r"^$|^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\.json$")] = ""
    model: Annotated[str, WORDS] = ""
    machine: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_:.-]{0,99}$")] = ""
    objective: Objective = Objective.LATENCY
    start: Start = Start()
    hidden: Annotated[tuple[Hidden, ...], Meta(max_length=3)] = ()
    methods: Annotated[tuple[Name, ...], Meta(max_length=40)] = ()
    seed: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    live: bool = False


class Check(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """What a task asks, in a sentence, and the points that it is worth."""

    ask: Asked
    points: Points = 1


class StepCheck(Check, frozen=True, kw_only=True, tag="step"):
    """The predicted value is `at_most` so much, in the unit of the problem; `star` is for more."""

    at_most: Seconds
    star: Seconds | None = None

    def __post_init__(self) -> None:
        if self.star is not None and self.star > self.at_most:
            raise ValueError(f"star: {self.star:g} is easier than at_most, {self.at_most:g}.")


class MovesCheck(Check, frozen=True, kw_only=True, tag="moves"):
    """So many ops, and no more, are elsewhere than at the start, but for equal devices' names."""

    at_most: Annotated[int, Meta(ge=0, le=1_000_000)]


class GapCheck(Check, frozen=True, kw_only=True, tag="gap"):
    """The predicted value is `at_most` so many percent above the lower bound."""

    at_most: Annotated[float, Meta(ge=0, le=1_000_000)]


class PathCheck(Check, frozen=True, kw_only=True, tag="path"):
    """The critical path `holds` these ops, and holds none of those that it `avoids`."""

    holds: Annotated[tuple[Name, ...], Meta(max_length=200)] = ()
    avoids: Annotated[tuple[Name, ...], Meta(max_length=200)] = ()

    def __post_init__(self) -> None:
        if not self.holds and not self.avoids:
            raise ValueError("holds: it names no op, nor does avoids; name one.")


class OrderCheck(Check, frozen=True, kw_only=True, tag="order"):
    """The answer lists these `ops` in this order, as a method chooses them."""

    ops: Names


class ChoiceCheck(Check, frozen=True, kw_only=True, tag="choice"):
    """The answer is the `right` one of some choices; `why` is told once it was given.

    `wrong` has a sentence for each other choice that is told where that one was given.
    """

    choices: Annotated[tuple[Name, ...], Meta(min_length=2, max_length=12)]
    right: Name
    why: Line = ""
    wrong: Annotated[Mapping[Name, Line], Meta(max_length=12)] = {}

    def __post_init__(self) -> None:
        if self.right not in self.choices:
            raise ValueError(f"right: {self.right[:80]!r} is none of the choices.")
        if len(set(self.choices)) < len(self.choices):
            raise ValueError("choices: one stands there twice.")
        stray = next((c for c in self.wrong if c == self.right or c not in self.choices), None)
        if stray is not None:
            raise ValueError(f"wrong: {stray[:80]!r} is none of the wrong choices; copy one.")


class NumberCheck(Check, frozen=True, kw_only=True, tag="number"):
    """The answer is a number no further than `tolerance` from the `right` one."""

    right: Annotated[float, Meta(ge=-MOST, le=MOST)]
    tolerance: Seconds = 0.0
    unit: Annotated[str, Meta(max_length=20)] = ""
    why: Line = ""


AnyCheck = StepCheck | MovesCheck | GapCheck | PathCheck | OrderCheck | ChoiceCheck | NumberCheck
# Those that a person answers; the others look at the placement.
QUESTIONS = (OrderCheck, ChoiceCheck, NumberCheck)
# Those that look at the placement, of which another computer with other devices knows nothing.
PLACED = (StepCheck, GapCheck, PathCheck, MovesCheck)


@dataclass(frozen=True)
class Text:
    """A stretch of Markdown."""

    line: int
    markdown: str


@dataclass(frozen=True)
class Task:
    """A check, by its number among the tasks of a lesson, from 1."""

    line: int
    number: int
    check: AnyCheck


@dataclass(frozen=True)
class Hint:
    """A help that costs points, by its number among the hints of a lesson, from 1."""

    line: int
    number: int
    cost: int
    markdown: str


@dataclass(frozen=True, eq=False)
class Lesson:
    """A lesson file that was read. `hash` tells lessons apart, whatever their files are called.

    `given` is the text of a problem inside the file, at the line `given_at`, unread: whoever poses
    it reads it.
    """

    hash: str
    header: Header
    parts: tuple[Text | Task | Hint, ...]
    insight: str
    lines: Mapping[str, int]
    given: str = ""
    given_at: int = 0

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(part for part in self.parts if isinstance(part, Task))

    @cached_property
    def hints(self) -> tuple[Hint, ...]:
        return tuple(part for part in self.parts if isinstance(part, Hint))

    @property
    def points(self) -> int:
        """What all tasks are worth together."""
        return sum(task.check.points for task in self.tasks)

    @property
    def num_stars(self) -> int:
        """Stars there are to win."""
        return sum(
            isinstance(task.check, StepCheck) and task.check.star is not None for task in self.tasks
        )
