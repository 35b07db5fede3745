"""The rows of the table of ops: filtered, sorted and cut into pages; pure."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.drawing import op_values
from placement.drawing.names import names_of

PAGE_ROWS = 50
# What the column of a device's times is called, before the device's index.
ON = "on "
SHOWN = {
    "all": "All ops",
    "selected": "Selected ops",
    "visible": "Ops with a card of their own",
    "path": "Ops on the critical path",
    "pinned": "Pinned ops",
}


@dataclass(frozen=True)
class Columns:
    """What the table says of each op, in declared order; `device` is an index.

    `shown` is what the op is called, `name` what the file calls it; `seconds` is infinite where the
    device cannot run the op.
    """

    name: tuple[str, ...]
    shown: tuple[str, ...]
    kind: tuple[str, ...]
    scope: tuple[str, ...]
    device: Ints
    seconds: Floats
    num_bytes: Floats
    pinned: tuple[bool, ...]
    on_path: tuple[bool, ...]


@dataclass(frozen=True)
class Page:
    """One page of a table: op indices in order, and how many pages and rows there are."""

    ops: tuple[int, ...]
    number: int
    num_pages: int
    num_rows: int


def columns(
    problem: Problem, device: Ints, seconds: Floats, pins: Collection[str], path: Collection[str]
) -> Columns:
    ops, critical = problem.graph.ops, frozenset(path)
    return Columns(
        name=tuple(op.name for op in ops),
        shown=names_of(problem.graph).shown,
        kind=tuple(op.kind for op in ops),
        scope=tuple(op.scope for op in ops),
        device=device,
        seconds=seconds,
        num_bytes=op_values.num_bytes(problem),
        pinned=tuple(op.name in pins for op in ops),
        on_path=tuple(op.name in critical for op in ops),
    )


def matching(
    table: Columns, text: str, shown: str, selected: Collection[str], visible: Collection[int]
) -> list[int]:
    """Indices of the ops of a kind in `SHOWN` whose name, type or block contains every word."""
    chosen, seen, words = frozenset(selected), frozenset(visible), text.lower().split()
    belongs: dict[str, Callable[[int], bool]] = {
        "all": lambda i: True,
        "selected": lambda i: table.name[i] in chosen,
        "visible": lambda i: i in seen,
        "path": lambda i: table.on_path[i],
        "pinned": lambda i: table.pinned[i],
    }
    test = belongs[shown]
    found = []
    for i in range(len(table.name)):
        if test(i):
            called = f"{table.shown[i]} {table.name[i]}"
            said = f"{called} {table.kind[i]} {table.scope[i]}".lower()
            if all(word in said for word in words):
                found.append(i)
    return found


def ordered(
    table: Columns, ops: Sequence[int], by: str, descending: bool, each_s: Floats | None = None
) -> list[int]:
    """Ops by a column, equal ones in the order of the model; by that order where `by` is empty.

    With seconds on each device (ops, devices) also by a device's, "on 0" by the first one's.
    """
    if not by:
        return sorted(ops)
    values: Any
    if by.startswith(ON):
        values = () if each_s is None else each_s[:, int(by.removeprefix(ON))]
    else:
        values = table.shown if by == "name" else getattr(table, by)
    if by in ("pinned", "on_path"):
        # A tick is what one looks for, so it comes first.
        values = [not value for value in values]
    if by in ("name", "kind", "scope"):
        values = [value.lower() for value in values]
    return sorted(sorted(ops), key=lambda i: values[i], reverse=descending)


def page(ops: Sequence[int], number: int) -> Page:
    """A page by its number from 0; the nearest there is."""
    last = max(0, (len(ops) - 1) // PAGE_ROWS)
    number = min(max(0, number), last)
    start = number * PAGE_ROWS
    return Page(tuple(ops[start : start + PAGE_ROWS]), number, last + 1, len(ops))


def page_with(ops: Sequence[int], wanted: Collection[int], number: int) -> int:
    """The page to show so that a wanted op is on it: the present one if it has one."""
    places = [place // PAGE_ROWS for place, i in enumerate(ops) if i in wanted]
    return number if not places or number in places else places[0]


def picked(
    names: Sequence[str], before: Sequence[str], chosen: Sequence[int], left: Sequence[int]
) -> tuple[str, ...]:
    """The selection after ticking: `chosen` rows belong to it, `left` ones do not, others stay."""
    gone = {names[i] for i in left}
    kept = dict.fromkeys(name for name in before if name not in gone)
    kept.update(dict.fromkeys(names[i] for i in chosen))
    place = {name: i for i, name in enumerate(names)}
    return tuple(sorted(kept, key=lambda name: place.get(name, len(names))))


def total(values: Floats, ops: Sequence[int]) -> float:
    """The sum over some ops of what is finite."""
    some = values[list(ops)]
    return float(some[np.isfinite(some)].sum())
