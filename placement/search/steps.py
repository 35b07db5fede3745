"""Steps of a method: what a placer works out one after another, for people who follow it.

A step is a picture of the method at work, made by the code that decides: which ops are placed, what
is looked at, the plan so far, the figures that are compared, and why it goes on as it does. `Walk`
makes the pictures of a method that plans times; the last step of every method is `ended`, the
placement that the method answers with and what is predicted of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Span

Cell = str | float | None
Kind = Literal["text", "seconds", "bytes", "number", "share"]
# Of what one step would list whole, the first are enough to see how it goes on.
MOST_ROWS = 40
# Kernels up to which a search predicts the timeline of every step.
MOST_DRAWN = 300


@dataclass(frozen=True)
class Column:
    """A column of a step's table; seconds are seconds, whatever unit the problem is printed in."""

    name: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Table:
    """What a step compares: a row for each alternative, None where it has no figure.

    `marked` are the numbers of the rows that were chosen.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        wrong = next((row for row in self.rows if len(row) != len(self.columns)), None)
        assert wrong is None, f"{self.title}: {wrong} has another number of cells than of columns"

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells below a name."""
        i = next(i for i, column in enumerate(self.columns) if column.name == name)
        return tuple(row[i] for row in self.rows)


@dataclass(frozen=True)
class Question:
    """What somebody may answer before the step is shown; the answer is one of the choices."""

    text: str
    choices: tuple[str, ...]
    answer: str

    def __post_init__(self) -> None:
        assert self.answer in self.choices, f"{self.text} {self.answer!r} is none of the choices"


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a method has worked out after one more step.

    `line` is the line of its pseudo-code that it is at, `why` one sentence on what it did.
    `devices` (U,) has the device of each unit, -1 where it is not placed yet; `focus` names the
    source ops that the step is about. `spans` is the plan so far, as a partial timeline, and
    `ghosts` are the alternatives of this step on it, of which number `winner` was taken (-1: none).
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


def name_of_kernel(problem: Problem, k: int) -> str:
    return problem.kernels.ops[k].name


def ended(problem: Problem, placement: Placement, line: int, said: str) -> Step:
    """The last step: the method's answer, with the timeline that is predicted of it."""
    from placement.core.formatting import seconds
    from placement.schedule.simulated import simulate

    predicted = simulate(problem, placement)
    value = seconds(predicted.value, problem.unit)
    return Step(
        line=line,
        why=f"{said} The placement is predicted to take {value}.",
        devices=devices_of(problem, placement),
        spans=predicted.timeline.spans,
        placement=placement,
    )


def drawn(problem: Problem, devices: Ints, order: Ints) -> tuple[Span, ...]:
    """The timeline that is predicted of devices of units (U,) in an order, where that is quick."""
    from placement.schedule.simulated import simulate

    if len(problem.kernels.ops) > MOST_DRAWN:
        return ()
    return simulate(problem, problem.placement_of(devices, order.tolist())).timeline.spans


def ops_of_units(problem: Problem, units: Iterable[int]) -> tuple[str, ...]:
    """The source ops of units, of which some have none."""
    return tuple(problem.graph.ops[i].name for u in units for i in problem.ops_of_unit[u])


def devices_of(problem: Problem, placement: Placement) -> tuple[int, ...]:
    """The device of each unit (U,) under a placement."""
    devices = [int(row.argmax()) for row in problem.allowed]
    by_kernel = problem.kernel_devices(placement).tolist()
    for unit, device in zip(problem.unit_of_kernel.tolist(), by_kernel, strict=True):
        devices[unit] = device
    for i, op in enumerate(problem.graph.ops):
        devices[int(problem.unit_of_op[i])] = problem.machine.index[placement.device_of[op.name]]
    return tuple(devices)


def first_rows(rows: Sequence[tuple[Cell, ...]]) -> tuple[tuple[Cell, ...], ...]:
    """The rows that a table shows of many."""
    return tuple(rows[:MOST_ROWS])
