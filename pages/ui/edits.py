"""Edits of a placement by hand: whole units move, every step can be undone and redone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from placement.core.problem import Problem

MAX_STEPS = 500


@dataclass(frozen=True)
class Edit:
    """One step: the (op, device before, device after) of every op that moved."""

    label: str
    changes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class History:
    """Steps done, oldest first, and steps undone, the next to redo last."""

    done: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()

    def add(self, edit: Edit) -> "History":
        """The history after a new step; what was undone before it is gone."""
        return History((*self.done, edit)[-MAX_STEPS:])

    def to_json(self) -> dict[str, Any]:
        return {
            key: [{"label": e.label, "changes": [list(c) for c in e.changes]} for e in edits]
            for key, edits in (("done", self.done), ("undone", self.undone))
        }


def history_from_json(content: Any) -> History:
    """A history from its JSON object; an empty one where the object is not understood."""
    try:
        done, undone = (
            tuple(
                Edit(str(e["label"]), tuple((str(o), str(b), str(a)) for o, b, a in e["changes"]))
                for e in content[key]
            )
            for key in ("done", "undone")
        )
    except (KeyError, TypeError, ValueError):
        return History()
    return History(done, undone)


def whole_units(problem: Problem, ops: Iterable[str]) -> tuple[int, ...]:
    """Indices of the named ops and of all ops that move together with them, in declared order."""
    index = problem.graph.index
    units = sorted({int(problem.unit_of_op[index[name]]) for name in ops if name in index})
    return tuple(sorted(i for unit in units for i in problem.ops_of_unit[unit]))


def assign(
    problem: Problem, device_of: Mapping[str, str], ops: Iterable[str], device: str
) -> Edit | None:
    """The edit that puts ops and their units on a device; None where all are there already.

    A ValueError names the op that may not run there, because of a pin or for want of a kernel.
    """
    target = problem.machine.index[problem.machine.device(device).name]
    moved = whole_units(problem, ops)
    for i in moved:
        if not problem.allowed[int(problem.unit_of_op[i]), target]:
            name = problem.graph.ops[i].name
            pinned = any(op == name for op, _ in problem.pins)
            reason = "it is pinned elsewhere" if pinned else f"{device} cannot run it or its group"
            raise ValueError(f"Op {name!r} stays where it is: {reason}.")
    names = [problem.graph.ops[i].name for i in moved]
    changes = tuple((n, device_of[n], device) for n in names if device_of[n] != device)
    if not changes:
        return None
    what = names[0] if len(changes) == 1 else f"{len(changes)} ops"
    return Edit(f"{what} to {device}", changes)


def applied(device_of: Mapping[str, str], edit: Edit) -> dict[str, str]:
    return {**device_of, **{op: after for op, _, after in edit.changes}}


def reverted(device_of: Mapping[str, str], edit: Edit) -> dict[str, str]:
    return {**device_of, **{op: before for op, before, _ in edit.changes}}


def undo(device_of: Mapping[str, str], history: History) -> tuple[dict[str, str], History]:
    """One step back; nothing changes where there is none."""
    if not history.done:
        return dict(device_of), history
    *done, last = history.done
    return reverted(device_of, last), History(tuple(done), (*history.undone, last))


def redo(device_of: Mapping[str, str], history: History) -> tuple[dict[str, str], History]:
    """One undone step again; nothing changes where there is none."""
    if not history.undone:
        return dict(device_of), history
    *undone, last = history.undone
    return applied(device_of, last), History((*history.done, last), tuple(undone))
