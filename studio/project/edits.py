"""Edits of a placement by hand: whole units move, every step can be undone and redone."""

import itertools
import json
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from msgspec import Meta, Struct

from placement.core.decoding import decode
from placement.core.problem import Problem

MAX_STEPS = 500
# (op, device before, device after); in pins an empty device stands for "not pinned".
Changes = tuple[tuple[str, str, str], ...]
# The same for several ops: device before, device after, and the ops.
Run = tuple[str, str, tuple[str, ...]]
Order = tuple[str, ...]
Counts = Mapping[str, Annotated[int, Meta(ge=1)]]
Replicas = Mapping[str, int] | None
Sequences = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Edit:
    """One step: what became of every op that moved, and of every op that was pinned or let go.

    `order` and `replicas` are those of the placement before and after, where the step changed them;
    `sequences` the orders of devices that are pinned. `opened` are two files of the shelf: what was
    on the screen before another placement was opened, and that other one.
    """

    label: str
    changes: Changes = ()
    pins: Changes = ()
    order: tuple[Order, Order] | None = None
    replicas: tuple[Replicas, Replicas] | None = None
    sequences: tuple[Sequences, Sequences] | None = None
    opened: tuple[str, str] | None = None

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops that moved; where none did, those that were pinned or let go."""
        return tuple(op for op, _, _ in self.changes or self.pins)

    @cached_property
    def text(self) -> str:
        """The step as JSON; made once, though a history is written anew with every step."""
        moves, pins = _runs(self.changes), _runs(self.pins)
        content = {"label": self.label, "moves": moves, "pins": pins}
        rest: dict[str, object] = {
            "order": self.order,
            "replicas": self.replicas,
            "sequences": self.sequences,
            "opened": self.opened,
        }
        return json.dumps(content | {key: both for key, both in rest.items() if both})


@dataclass(frozen=True)
class History:
    """Steps done, oldest first, and steps undone, the next to redo last."""

    done: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()

    def add(self, edit: Edit) -> "History":
        """The history after a new step; what was undone before it is gone."""
        return History((*self.done, edit)[-MAX_STEPS:])

    def opened_by(self, opening: Edit) -> "History":
        """The history of a placement that this step has just put on the screen.

        The step stands below all that was done to the placement itself, which undo takes back
        first; what it was opened in the place of before is forgotten.
        """
        undone = self.undone[1 - MAX_STEPS :]
        own = [step for step in self.done if not step.opened]
        num_left = MAX_STEPS - 1 - len(undone)
        return History((opening, *own[max(0, len(own) - num_left) :]), undone)

    def ahead(self, edit: Edit) -> "History":
        """The history with a step to be redone next, which was made elsewhere.

        Where there are too many, what would be redone last is gone first, and then the oldest step.
        """
        done = self.done[1 - MAX_STEPS :]
        further = [step for step in self.undone if step != edit]
        num_left = MAX_STEPS - 1 - len(done)
        return History(done, (*further[max(0, len(further) - num_left) :], edit))

    @property
    def reach(self) -> tuple[int, int]:
        """The fewest and the most steps done with which the same placement is on the screen.

        One step further back is what it was opened in the place of, one further forth what was
        opened in its place.
        """
        since = next((n for n, step in enumerate(self.done[::-1]) if step.opened), len(self.done))
        ahead = self.undone[::-1]
        until = next((n for n, step in enumerate(ahead) if step.opened), len(ahead))
        return len(self.done) - since, len(self.done) + until

    @property
    def openings(self) -> tuple[Edit | None, Edit | None]:
        """The step that put on the screen what is there, and the next that puts another there."""
        steps, (fewest, most) = (*self.done, *self.undone[::-1]), self.reach
        came = steps[fewest - 1] if fewest else None
        return came, steps[most] if most < len(steps) else None

    @property
    def text(self) -> str:
        """The history as JSON."""
        done, undone = (",\n".join(e.text for e in edits) for edits in (self.done, self.undone))
        return f'{{"done": [\n{done}\n], "undone": [\n{undone}\n]}}\n'

    def to_json(self) -> dict[str, object]:
        content: dict[str, object] = json.loads(self.text)
        return content


@dataclass(frozen=True)
class State:
    """What steps change: where every op is and is pinned, the order of ops and of which devices it
    is pinned, and replicas."""

    device_of: Mapping[str, str]
    pins: Mapping[str, str]
    order: Order = ()
    replicas: Replicas = None
    sequences: Sequences = field(default_factory=dict)


@dataclass(frozen=True)
class Move:
    """What becomes of ops that somebody wants elsewhere: who moves and who has to stay.

    `pinned` ops stay because of a pin, `unfit` ones because the device cannot run them.
    """

    changes: Changes
    pinned: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()


class _Step(Struct, frozen=True):
    """A step as it is written; those of earlier versions say nothing of order and replicas."""

    label: str
    moves: tuple[Run, ...]
    pins: tuple[Run, ...]
    order: tuple[Order, Order] | None = None
    replicas: tuple[Counts | None, Counts | None] | None = None
    sequences: tuple[Mapping[str, Order], Mapping[str, Order]] | None = None
    opened: tuple[str, str] | None = None

    def edit(self) -> Edit:
        order = self.order and (_shared(self.order[0]), _shared(self.order[1]))
        moves, pins = _changes(self.moves), _changes(self.pins)
        return Edit(self.label, moves, pins, order, self.replicas, self.sequences, self.opened)


class _Steps(Struct, frozen=True):
    done: tuple[_Step, ...]
    undone: tuple[_Step, ...]


def history_from_json(content: object) -> History:
    """A history from its JSON object; an empty one where the object is not understood."""
    try:
        found = decode(content, _Steps)
    except ValueError:
        return History()
    done, undone = (tuple(step.edit() for step in steps) for steps in (found.done, found.undone))
    return History(done, undone)


def _runs(changes: Changes) -> list[Run]:
    """Neighbouring changes that go the same way, together."""
    runs = itertools.groupby(changes, key=lambda change: change[1:])
    return [(before, after, tuple(op for op, _, _ in run)) for (before, after), run in runs]


def _changes(runs: Sequence[Run]) -> Changes:
    """The same apart again."""
    return tuple(
        (op, sys.intern(before), sys.intern(after))
        for before, after, ops in runs
        for op in _shared(ops)
    )


def _shared(names: Sequence[str]) -> tuple[str, ...]:
    """Names that come again and again share their letters."""
    return tuple(map(sys.intern, names))


def whole_units(problem: Problem, ops: Iterable[str]) -> tuple[int, ...]:
    """Indices of the named ops and of all ops that move together with them, in declared order."""
    return tuple(sorted(i for unit in units_of(problem, ops) for i in problem.ops_of_unit[unit]))


def units_of(problem: Problem, ops: Iterable[str]) -> list[int]:
    """Units of the named ops, in order."""
    index = problem.graph.index
    return sorted({int(problem.unit_of_op[index[name]]) for name in ops if name in index})


def move(
    problem: Problem,
    state: State,
    device_of_unit: Mapping[int, int],
) -> Move:
    """Put units on devices, as far as pins and support allow."""
    changes, pinned, unfit = [], [], []
    for unit, target in sorted(device_of_unit.items()):
        names = [problem.graph.ops[i].name for i in problem.ops_of_unit[unit]]
        device = problem.machine.devices[target].name
        if all(state.device_of[name] == device for name in names):
            continue
        if any(state.pins.get(name, device) != device for name in names):
            pinned += names
        elif not problem.allowed[unit, target]:
            unfit += names
        else:
            changes += [(n, state.device_of[n], device) for n in names]
    order = problem.graph.index
    moved = sorted((c for c in changes if c[1] != c[2]), key=lambda c: order[c[0]])
    return Move(tuple(moved), tuple(pinned), tuple(unfit))


def assign(problem: Problem, state: State, ops: Iterable[str], device: str) -> Move:
    """Put ops and their units on a device, as far as pins and support allow."""
    target = problem.machine.index[problem.machine.device(device).name]
    return move(problem, state, dict.fromkeys(units_of(problem, ops), target))


def label_of(move: Move, device: str) -> str:
    """What a move is called in the list of changes."""
    return f"{counted([op for op, _, _ in move.changes])} to {device}"


def counted(ops: Sequence[str]) -> str:
    """One op by its name, several by their number."""
    return ops[0] if len(ops) == 1 else f"{len(ops)} ops"


def why_they_stay(move: Move, device: str) -> str:
    """A sentence for ops that did not move, and what to do about it; empty where all did."""
    said = []
    if move.pinned:
        them, verb = _them(move.pinned), "is" if len(move.pinned) == 1 else "are"
        said.append(
            f"{_named(move.pinned)} {verb} pinned and stayed; to move {them}, select {them} and"
            " unpin first (Del in the picture, or Unpin beside it)."
        )
    if move.unfit:
        said.append(f"{_named(move.unfit)} stayed: {device} cannot run {_them(move.unfit)}.")
    return " ".join(said)


def _named(ops: Sequence[str]) -> str:
    return f"Op {ops[0]!r}" if len(ops) == 1 else f"{len(ops)} ops"


def _them(ops: Sequence[str]) -> str:
    return "it" if len(ops) == 1 else "them"


def applied(state: State, edit: Edit) -> State:
    """The state after a step."""
    return _at_end(state, edit, 1)


def reverted(state: State, edit: Edit) -> State:
    """The state before a step."""
    return _at_end(state, edit, 0)


def _at_end(state: State, edit: Edit, end: int) -> State:
    """The state before (0) or after (1) a step."""
    return State(
        _with(state.device_of, edit.changes, 1 + end),
        _with(state.pins, edit.pins, 1 + end),
        edit.order[end] if edit.order else state.order,
        edit.replicas[end] if edit.replicas else state.replicas,
        edit.sequences[end] if edit.sequences else state.sequences,
    )


def _with(devices: Mapping[str, str], changes: Changes, which: int) -> dict[str, str]:
    after = {**devices, **{change[0]: change[which] for change in changes}}
    return {op: device for op, device in after.items() if device}


def fits(step: Edit, ops: Container[str], devices: Container[str] | None) -> bool:
    """Whether a step is about known ops and devices alone; None stands for devices of any name."""

    def is_known(device: str) -> bool:
        return bool(device) and (devices is None or device in devices)

    moves = all(op in ops and is_known(b) and is_known(a) for op, b, a in step.changes)
    pins = all(
        op in ops and all(not device or is_known(device) for device in (before, after))
        for op, before, after in step.pins
    )
    orders = all(
        len(set(order)) == len(order) and all(op in ops for op in order)
        for order in (*(step.order or ()), *(o for s in _sequences(step) for o in s.values()))
    )
    named = (*_replicated(step), *(device for each in _sequences(step) for device in each))
    return moves and pins and orders and all(map(is_known, named))


def _sequences(step: Edit) -> tuple[Sequences, ...]:
    return step.sequences or ()


def _replicated(step: Edit) -> list[str]:
    """Devices that have replicas before or after a step."""
    return [device for replicas in step.replicas or () for device in replicas or {}]


def between(history: History, num_done: int) -> tuple[Edit, ...]:
    """The steps that are undone or redone on the way to so many steps done."""
    num_now = len(history.done)
    if num_done <= num_now:
        return history.done[max(0, num_done) :]
    return history.undone[::-1][: num_done - num_now]


def travel(state: State, history: History, num_done: int) -> tuple[State, History]:
    """Go back or forth until so many steps are done; as far as there are steps."""
    done, undone = list(history.done), list(history.undone)
    while len(done) > max(0, num_done):
        undone.append(done.pop())
        state = reverted(state, undone[-1])
    while len(done) < num_done and undone:
        done.append(undone.pop())
        state = applied(state, done[-1])
    return state, History(tuple(done), tuple(undone))
