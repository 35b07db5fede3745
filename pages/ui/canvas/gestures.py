"""What gestures in the picture do to the project and to the session.

The browser draws what it can at once; the word of Python, which comes after, is final.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pages.ui import canvas
from pages.ui.session import callbacks, choices, fragments, saving
from pages.ui.session.current import studio
from placement.core.graph import Graph
from placement.drawing.wording import shortened
from studio import snapshot
from studio.project import edits, pins
from studio.snapshot import Studio

READ_ONLY = "This project is open in another session; here it can only be looked at."
FOLDS = frozenset({"toggle", "expand_all", "collapse_all"})
# What may change which blocks are open, so that the view must be sent anew.
OPENING = FOLDS | {"search"}
# A few ops are shown by opening the blocks around them; for many, the closed blocks say enough.
MOST_REVEALED = 12
MOST_LABEL = 70


def on_ops() -> None:
    """Apply what was done in the picture, then redraw only what it touches."""
    opened = apply() & OPENING
    fragments.only(*(("store",) if opened else ()), *fragments.EDITED)


def apply(*, looks_only: bool = False) -> set[str]:
    """Apply the edits that wait, oldest first, and say of which kinds they were.

    With `looks_only` nothing but the selection and the open blocks may change.
    """
    kinds, session = set(), choices.nonce()
    for op in canvas.read_ops("canvas", session=session, after=choices.last_op()):
        kinds.add(op["kind"])
        with callbacks.uninterrupted():
            told = _applied(op, looks_only)
            choices.applied_op(session, op["n"])
            if told[1]:
                choices.say(*told)
    return kinds


def _applied(op: dict[str, Any], looks_only: bool) -> tuple[str, str]:
    """What to say about an edit that has been made, or has to wait for the right to."""
    now, told = studio(), ("info", "")
    if op["kind"] in LOOKS:
        LOOKS[op["kind"]](now, op)
    elif not looks_only:
        with saving.change():
            told = _edit(now, op)
    return told


def view_of(now: Studio) -> canvas.View:
    """What of the model is visible; the work ends where a cancel waits."""
    graph = now.model.graph
    return canvas.build_view(graph, _opened(graph), check=choices.laying_out)


def mount_view(now: Studio) -> None:
    """Send the view to the browser; from then on its blocks count as opened."""
    canvas.mount_view(view_of(now))
    with saving.change():
        choices.laid_out()


def cancel_layout() -> None:
    """The blocks as they were before the last opening, if that has not been drawn yet."""
    choices.cancel_layout()


def look_at(now: Studio, ops: Iterable[str]) -> None:
    """Select ops and make the picture show them: for the timeline, tables and the search."""
    chosen = tuple(ops)
    choices.select(chosen)
    if len(chosen) <= MOST_REVEALED:
        _reveal(now.model.graph, chosen)
    choices.look_at_selection()


def move(now: Studio, ops: Sequence[str], device: str) -> tuple[str, str]:
    """Put ops on a device; the kind and text of what to say about it."""
    try:
        return "info", snapshot.edit(now, tuple(ops), device)
    except ValueError as error:
        return "warning", str(error)


def travel(now: Studio, num_done: int) -> tuple[str, str]:
    """Undo or redo until so many steps are done; the kind and text of what to say about it."""
    try:
        snapshot.go_to(now, num_done)
    except ValueError as error:
        return "warning", str(error)
    return "info", ""


def _opened(graph: Graph) -> frozenset[str]:
    opened = choices.expanded(graph.fingerprint)
    return canvas.default_expanded(graph) if opened is None else opened


def _expand(graph: Graph, groups: frozenset[str]) -> None:
    # Written down first, so that a cancel knows what to go back to.
    if choices.expanded(graph.fingerprint) is None:
        choices.expand(graph.fingerprint, canvas.default_expanded(graph))
    choices.expand(graph.fingerprint, groups)


def _reveal(graph: Graph, ops: Sequence[str]) -> None:
    """Open the blocks around ops; where that were too many nodes, close all others."""
    groups = canvas.reveal(graph, _opened(graph), ops)
    if not canvas.all_visible(graph, groups, ops):
        groups = canvas.reveal(graph, frozenset(), ops)
    if groups != _opened(graph):
        _expand(graph, groups)


def _select(now: Studio, op: dict[str, Any]) -> None:
    nodes = canvas.ops_inside(now.model.graph, op["nodes"])
    before = choices.selection()
    if op["how"] == "set":
        choices.select(nodes)
        return
    known, taken = set(before), set(nodes)
    if op["how"] == "toggle" and taken <= known:
        choices.select(name for name in before if name not in taken)
    else:
        choices.select((*before, *(name for name in nodes if name not in known)))


def _widen(now: Studio, op: dict[str, Any]) -> None:
    choices.select(canvas.related(now.model.graph, choices.selection(), op["way"]))


def _fold(now: Studio, op: dict[str, Any]) -> None:
    graph = now.model.graph
    _expand(graph, canvas.expanded_after(graph, _opened(graph), op))


def _search(now: Studio, op: dict[str, Any]) -> None:
    """Answer a search, and go to the match that is asked for."""
    graph = now.model.graph
    answer = {"text": op["text"], "by": op["by"], "at": -1, "total": 0, "note": ""}
    try:
        found = canvas.search(graph, op["text"], op["by"])
    except ValueError as error:
        choices.answer_search({**answer, "note": str(error)})
        return
    answer.update(total=len(found), note="" if found else "No match")
    names = [graph.ops[i].name for i in found]
    if found and op["all"]:
        choices.select(names)
        choices.look_at_selection()
    elif found and op["at"] >= 0:
        answer["at"] = op["at"] % len(found)
        look_at(now, names[answer["at"] : answer["at"] + 1])
    choices.answer_search(answer)


LOOKS = {
    "select": _select,
    "widen": _widen,
    "search": _search,
    **dict.fromkeys(FOLDS, _fold),
}


def _edit(now: Studio, op: dict[str, Any]) -> tuple[str, str]:
    """Change the placement or its pins; the kind and text of what to say about it."""
    if not choices.renew_claim(now.project):
        return "warning", choices.unwritable() or READ_ONLY
    kind = op["kind"]
    if kind in ("undo", "redo"):
        return travel(now, len(now.history.done) + (1 if kind == "redo" else -1))
    wanted = op["nodes"]
    ops = choices.selection() if wanted is None else canvas.ops_inside(now.model.graph, wanted)
    if kind in ("pin", "unpin"):
        return "info", (pins.pin if kind == "pin" else pins.unpin)(now, ops)
    if op["device"] < len(now.machine.devices):
        return move(now, ops, now.machine.devices[op["device"]].name)
    return "info", ""


def steps(history: edits.History) -> tuple[str, str]:
    """The step that undo would take back and the one that redo would take; empty for none."""
    done, undone = history.done[-1:], history.undone[-1:]
    back, forth = (steps[0].label if steps else "" for steps in (done, undone))
    return shortened(back, MOST_LABEL), shortened(forth, MOST_LABEL)
