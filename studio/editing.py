"""Changes of the placement on the screen by hand: moves, orders, and going back."""

import dataclasses
from collections.abc import Sequence

from placement.core import formatting
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective
from placement.drawing.names import names_of
from placement.schedule.order import moved, spelled_order
from placement.schedule.reordering import Blocked, broken_sequences, run_before
from placement.schedule.segments import make_schedule
from studio.project import edits
from studio.project.facts import HAND, Facts
from studio.snapshot import Studio, violations_of


def all_on(now: Studio, device: str) -> Placement:
    """The placement on the screen with every op on one device, as far as support and pins allow.

    Its order is open.
    """
    placed, state = now.placement, edits.State(now.placement.device_of, now.pins)
    move = edits.assign(now.problem, state, now.problem.graph.index, device)
    changed = edits.applied(state, edits.Edit("", move.changes))
    return Placement(placed.graph, placed.machine, changed.device_of)


def edit(
    now: Studio,
    ops: Sequence[str],
    device: str,
    *,
    before: Sequence[str] | None = None,
    within_rules: bool = False,
) -> str:
    """Move ops by hand; on a placer's result the edit goes to a copy. What to tell, if anything.

    A ValueError says why none of the ops may go there; those that may are moved without the others.
    With `before` they run there right before these ops, last of all where there are none. With
    `within_rules` nothing moves, either, where a placement that keeps all rules would break one, as
    by going beyond a memory.
    """
    step, stayed = move_step(now, ops, device, before)
    if not step.changes:
        if stayed:
            raise ValueError(stayed)
        return ""
    if within_rules:
        _require_rules(now, step)
    told = do(now, step)
    extra = len(step.changes) - len(set(ops) & {op for op, _, _ in step.changes})
    also = f"{formatting.counted(extra, 'more op')} moved along (fused into one kernel)."
    return " ".join(filter(None, (told, also if extra else "", stayed)))


def move_step(
    now: Studio, ops: Sequence[str], device: str, before: Sequence[str] | None = None
) -> tuple[edits.Edit, str]:
    """The step that moves ops as `edit` does, and what is to be said of what stays as it was."""
    move = edits.assign(now.problem, now.state, ops, device)
    stayed = edits.why_they_stay(move, device)
    step = edits.Edit(edits.label_of(move, device), move.changes)
    if before is None or not move.changes or not _has_order(now):
        return step, stayed
    try:
        placed, moving = after(now, step), [op for op, _, _ in move.changes]
        order = run_before(now.problem, placed, moving, before)
    except Blocked as error:
        return step, f"{stayed} {_why_blocked(now, error)} The order was left as it was.".strip()
    except ValueError:
        return step, stayed
    ordered = dataclasses.replace(step, order=(now.placement.order, order))
    pinned_on = _breaks_pinned_order(now, ordered)
    if pinned_on:
        said = f"The order on {pinned_on} is pinned, so it was left as it was."
        return step, f"{stayed} {said}".strip()
    return ordered, stayed


def _breaks_pinned_order(now: Studio, step: edits.Edit) -> str:
    """A device that keeps its pinned order so far, and not after a step; empty for none."""
    if not now.sequences:
        return ""
    broken = broken_sequences(now.pinned_problem, after(now, step))
    return next((d for d in broken if d not in broken_orders(now)), "")


def broken_orders(now: Studio) -> tuple[str, ...]:
    """Devices whose pinned order the placement on the screen does not keep."""
    if not now.sequences:
        return ()
    return broken_sequences(now.pinned_problem, now.placement)


def _has_order(now: Studio) -> bool:
    """Whether a prediction depends on what runs before what on a device."""
    is_call = now.problem.execution is Execution.CALL
    return not is_call and now.settings.objective is not Objective.THROUGHPUT


def _why_blocked(now: Studio, error: Blocked) -> str:
    called = names_of(now.model.graph).of
    later, earlier, lane = error.wait
    waits = f"by the order on {lane} it waits for it" if lane else "it needs what that computes"
    return f"{called(later)!r} cannot run before {called(earlier)!r}: {waits}."


def label(now: Studio, step: edits.Edit) -> str:
    """What a step is called; a single op as people call it, and not as its file does."""
    op = step.ops[0] if len(step.ops) == 1 else ""
    called = names_of(now.model.graph).of(op)
    if op and step.label.startswith(f"{op} "):
        return called + step.label.removeprefix(op)
    if op and step.label.endswith(f" {op}"):
        return step.label.removesuffix(op) + called
    return step.label


def reorder(now: Studio, ops: Sequence[str], before: Sequence[str]) -> str:
    """Let ops run right before others of their device, or last there without any; what to tell.

    The order becomes part of the placement. A ValueError says in a sentence why it cannot be.
    """
    step = order_step(now, ops, before)
    if step is None:
        return ""
    _require_rules(now, step)
    return do(now, step)


def beside(now: Studio, ops: Sequence[str], held: Sequence[str]) -> tuple[str, ...]:
    """Those of some ops that are on a device of those that are held."""
    device_of = now.placement.device_of
    devices = {device_of[op] for op in held}
    return tuple(op for op in ops if device_of.get(op) in devices)


def _runs_so(now: Studio, order: tuple[str, ...]) -> bool:
    """Whether an order changes nothing: one device alone runs an open one as it is declared."""
    ordered = dataclasses.replace(now.placement, order=order)
    return make_schedule(now.problem, ordered) == make_schedule(now.problem, now.placement)


def order_step(now: Studio, ops: Sequence[str], before: Sequence[str]) -> edits.Edit | None:
    """The step that orders ops as `reorder` does; None where they run like this already."""
    called = names_of(now.model.graph).of
    if now.problem.execution is Execution.CALL:
        raise ValueError("In this file all that a device computes is one call, without an order.")
    if now.settings.objective is Objective.THROUGHPUT:
        raise ValueError(
            "For throughput the order on a device changes nothing, because samples overlap; to"
            " order ops, let the goal be latency."
        )
    pinned = next((op for op in ops if op in now.pins), None)
    if pinned is not None:
        raise ValueError(f"{called(pinned)!r} is pinned, so it stays in its order, too; unpin it.")
    try:
        order = run_before(now.problem, now.placement, ops, before)
    except Blocked as error:
        raise ValueError(_why_blocked(now, error)) from error
    if order == spelled_order(now.problem, now.placement) and _runs_so(now, order):
        return None
    where = f"before {called(before[0])}" if before else "last on its device"
    named = called(ops[0]) if len(ops) == 1 else formatting.counted(len(ops), "op")
    step = edits.Edit(f"{named} {where}", order=(now.placement.order, order))
    pinned_on = _breaks_pinned_order(now, step)
    if pinned_on:
        raise ValueError(f"The order on {pinned_on} is pinned, so it stays; let it go first.")
    return step


def _require_rules(now: Studio, step: edits.Edit) -> None:
    """ValueError where a step makes a placement break a rule that breaks none so far."""
    broken = now.cache.violations(now.problem, after(now, step))
    if broken and not violations_of(now):
        raise ValueError(f"Nothing was changed. After it: {broken[0]}")


def after(now: Studio, step: edits.Edit) -> Placement:
    """The placement as a step would make it."""
    return _placed_in(now, edits.applied(now.state, _with_the_rest(now, step)))


def do(now: Studio, step: edits.Edit) -> str:
    """Make a step and remember it; what to tell where a placer's result was copied for it."""
    name, told = now.named.name, ""
    history = now.shelf.history(name)
    step = _with_the_rest(now, step)
    if (step.changes or step.order) and not now.named.by_hand:
        name = now.shelf.add("manual", now.placement, HAND, Facts(start=name))
        told = f"Your edit went to a new placement, {name!r}; {now.named.name!r} is as it was."
    _store(now, name, edits.applied(now.state, step), history.add(step))
    return told


def _with_the_rest(now: Studio, step: edits.Edit) -> edits.Edit:
    """The step with what its moves do to the placement's order and replicas."""
    if not step.changes:
        return step
    before = now.placement
    found = moved(now.problem, before, {op: device for op, _, device in step.changes})
    return dataclasses.replace(
        step,
        order=step.order or (None if found.order == before.order else (before.order, found.order)),
        replicas=None if found.replicas == before.replicas else (before.replicas, found.replicas),
    )


def undo(now: Studio) -> None:
    go_to(now, len(now.history.done) - 1)


def redo(now: Studio) -> None:
    go_to(now, len(now.history.done) + 1)


def go_to(now: Studio, num_done: int) -> None:
    """Undo or redo until so many steps are done; ValueError where a step is of something else.

    That is known before the first of them: a refusal leaves everything as it was.
    """
    history, ops, devices = now.history, now.model.graph.index, now.machine.index
    fewest, most = history.reach
    num_here = min(max(num_done, fewest), most)
    wrong = next(
        (s for s in edits.between(history, num_here) if not edits.fits(s, ops, devices)), None
    )
    if wrong is not None:
        raise ValueError(
            f"The step {wrong.label[:80]!r} names ops or devices that are not here, so it cannot be"
            " undone or redone; everything is as it was."
        )
    came, going = history.openings
    former = _name_at(now, came, 0) if num_done < fewest else ""
    opened = _name_at(now, going, 1) if num_done > most else ""
    state, history = edits.travel(now.state, history, num_here)
    if history != now.history:
        _store(now, now.named.name, state, history)
    if came is not None and former:
        _show_former(now, came, former)
    elif going is not None and opened:
        _show_opened(now, history, going, opened)


def _show_former(now: Studio, step: edits.Edit, name: str) -> None:
    """Put what was on the screen before an opening there again, with its own history.

    What is on the screen now, which may be a copy of what was opened, is one redo away.
    """
    again = dataclasses.replace(step, opened=(now.shelf.named(name).file, now.named.file))
    now.shelf.keep_history(name, now.shelf.history(name).ahead(again))
    _show(now, name)


def _show_opened(now: Studio, history: edits.History, step: edits.Edit, name: str) -> None:
    """Put what was opened there again, with its own history."""
    now.shelf.keep_history(now.named.name, dataclasses.replace(history, undone=history.undone[:-1]))
    again = dataclasses.replace(step, opened=(now.named.file, now.shelf.named(name).file))
    now.shelf.keep_history(name, now.shelf.history(name).opened_by(again))
    _show(now, name)


def _name_at(now: Studio, opening: edits.Edit | None, end: int) -> str:
    """What was on the screen before (0) or after (1) an opening; empty where there was none."""
    if opening is None or opening.opened is None:
        return ""
    file = opening.opened[end]
    found = next((item.name for item in now.shelf.items if item.file == file), None)
    if found is not None:
        return found
    # Those that were deleted long ago are gone, and a project file takes none of them along.
    gone = next((item.name for item in now.shelf.removed if item.file == file), None)
    if gone is None:
        raise ValueError(
            "The placement that this step leads to was deleted for good, so nothing was undone or"
            " redone; choose another in the menu of placements."
        )
    raise ValueError(
        f"The placement {gone!r} was deleted, so nothing was undone or redone; bring it back with"
        " Edit beside the menu of placements."
    )


def _show(now: Studio, name: str) -> None:
    now.shelf.choose(name)
    now.project.change()


def show_opened(now: Studio, name: str) -> None:
    """Put a placement that came from elsewhere on the screen, as a step that undo takes back.

    One that is there already is as it was left: the step stands below what was done to it since,
    which undo takes back first, whatever it was opened in the place of before.
    """
    former = now.shelf.current
    opened = now.shelf.named(name)
    if former is not None and former.file not in ("", opened.file):
        step = edits.Edit(f"{name} opened", opened=(former.file, opened.file))
        now.shelf.keep_history(name, now.shelf.history(name).opened_by(step))
    _show(now, name)


def _store(now: Studio, name: str, state: edits.State, history: edits.History) -> None:
    """Keep what has changed of the pins and of a placement, and how it came about."""
    if state.pins != now.pins:
        now.shelf.keep_pins(state.pins)
    if state.sequences != now.sequences:
        now.shelf.keep_sequences(state.sequences)
    now.shelf.keep_history(name, history)
    placed = _placed_in(now, state)
    if placed != now.placement:
        now.shelf.replace(name, placed)
    now.project.change()


def _placed_in(now: Studio, state: edits.State) -> Placement:
    """The placement on the screen in another state."""
    return dataclasses.replace(
        now.placement, device_of=state.device_of, order=state.order, replicas=state.replicas
    )
