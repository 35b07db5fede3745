"""What gestures in the picture do to the project and to the session.

The browser draws what it can at once; the word of Python, which comes after, is final.
"""

from collections.abc import Iterable, Sequence
from functools import partial

import streamlit as st

from pages.ui import canvas
from pages.ui.canvas.messages import (
    GESTURES,
    Assign,
    CollapseAll,
    Edit,
    ExpandAll,
    Gesture,
    Pin,
    PinOrder,
    Redo,
    Search,
    Select,
    Toggle,
    Undo,
    Unpin,
    Widen,
)
from pages.ui.session import callbacks, choices, outbox, saving
from pages.ui.session.current import attempt, on_screen, redraw, studio
from pages.ui.shell.messages import plain_errors
from placement.core.graph import Graph
from placement.drawing.wording import shortened
from studio import editing
from studio.project import pins
from studio.snapshot import Studio

READ_ONLY = "This project is open in another session; here it can only be looked at."
# What may change which blocks are open, so that the view must be sent anew.
OPENING = (Toggle, ExpandAll, CollapseAll, Search)
# A few ops are shown by opening the blocks around them; for many, the closed blocks say enough.
MOST_REVEALED = 12
MOST_LABEL = 70


def on_ops() -> None:
    """Apply what was done in the picture, then redraw only what it touches."""
    before = on_screen()
    opened = any(isinstance(gesture, OPENING) for gesture in apply())
    redraw(before, *(("store",) if opened else ()))


def apply() -> list[Gesture]:
    """Apply the gestures that wait, oldest first, and return them."""
    done = outbox.unread("canvas", GESTURES)
    for gesture in done:
        with callbacks.uninterrupted():
            if not isinstance(gesture, Edit):
                _look(studio(), gesture)
            else:
                with saving.change():
                    edit(studio(), gesture)
            outbox.applied("canvas", gesture)
    return done


def view_of(now: Studio) -> canvas.View:
    """What of the model is visible; the work ends where a cancel waits."""
    graph = now.model.graph
    return canvas.build_view(
        graph, opened_blocks(graph), aspect=choices.picture_aspect(), check=choices.laying_out
    )


@st.fragment(key="store")
@plain_errors()
def mount_view() -> None:
    """Send the view to the browser; from then on its blocks count as opened."""
    canvas.mount_view(view_of(studio()))
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


def opened_blocks(graph: Graph) -> frozenset[str]:
    """Which blocks are open in this session."""
    chosen, presented = choices.expanded(graph.fingerprint), choices.presenting()
    return opened_or_first(graph, chosen, presented=presented)


def opened_or_first(
    graph: Graph, chosen: frozenset[str] | None, *, presented: bool
) -> frozenset[str]:
    """The blocks that somebody has opened, or those that are open until somebody does."""
    if chosen is not None:
        return chosen
    return canvas.default_expanded(
        graph, canvas.PRESENTED_SIGHT if presented else canvas.FIRST_SIGHT
    )


def _expand(graph: Graph, groups: frozenset[str]) -> None:
    # Written down first, so that a cancel knows what to go back to.
    if choices.expanded(graph.fingerprint) is None:
        choices.expand(graph.fingerprint, opened_blocks(graph))
    choices.expand(graph.fingerprint, groups)


def _reveal(graph: Graph, ops: Sequence[str]) -> None:
    """Open the blocks around ops; where that were too many nodes, close all others."""
    groups = canvas.reveal(graph, opened_blocks(graph), ops)
    if not canvas.all_visible(graph, groups, ops):
        groups = canvas.reveal(graph, frozenset(), ops)
    if groups != opened_blocks(graph):
        _expand(graph, groups)


def _look(now: Studio, gesture: Gesture) -> None:
    """Change what is seen: the selection, or which blocks are open."""
    graph = now.model.graph
    match gesture:
        case Select():
            _select(now, gesture)
        case Search():
            _search(now, gesture)
        case Widen(way=way):
            choices.select(canvas.related(graph, choices.selection(), way))
        case Toggle(node=node):
            _expand(graph, canvas.toggled(graph, opened_blocks(graph), node))
        case ExpandAll():
            _expand(graph, canvas.all_groups(graph))
        case CollapseAll():
            _expand(graph, frozenset())


def _select(now: Studio, gesture: Select) -> None:
    nodes = canvas.ops_inside(now.model.graph, gesture.nodes)
    before = choices.selection()
    if gesture.how == "set":
        choices.select(nodes)
        return
    known, taken = set(before), set(nodes)
    if gesture.how == "toggle" and taken <= known:
        choices.select(name for name in before if name not in taken)
    else:
        choices.select((*before, *(name for name in nodes if name not in known)))


def _search(now: Studio, asked: Search) -> None:
    """Answer a search, and go to the match that is asked for."""
    graph, at = now.model.graph, -1
    answer: dict[str, str | int] = {"text": asked.text, "by": asked.by, "at": at, "total": 0}
    try:
        found = canvas.search(graph, asked.text, asked.by)
    except ValueError as error:
        choices.answer_search({**answer, "note": str(error)})
        return
    names = [graph.ops[i].name for i in found]
    if found and asked.all:
        choices.select(names)
        choices.look_at_selection()
    elif found and asked.at >= 0:
        at = asked.at % len(found)
        look_at(now, names[at : at + 1])
    note = "" if found else "No match"
    choices.answer_search({**answer, "at": at, "total": len(found), "note": note})


def edit(now: Studio, gesture: Edit) -> None:
    """Change the placement or its pins, and say what is to be said about it."""
    if not choices.renew_claim(now.project):
        choices.say("warning", choices.unwritable() or READ_ONLY)
        return
    match gesture:
        case Undo():
            attempt(now, editing.undo)
        case Redo():
            attempt(now, editing.redo)
        case Pin(nodes=nodes):
            attempt(now, partial(pins.pin, ops=_ops(now, nodes)))
        case Unpin(nodes=nodes):
            attempt(now, partial(pins.unpin, ops=_ops(now, nodes)))
        case PinOrder(nodes=nodes):
            attempt(now, partial(pins.pin_order, ops=_ops(now, nodes)))
        case Assign(nodes=nodes, device=number) if number < len(now.machine.devices):
            name = now.machine.devices[number].name
            attempt(now, partial(editing.edit, ops=_ops(now, nodes), device=name))


def _ops(now: Studio, nodes: Sequence[str] | None) -> tuple[str, ...]:
    if nodes is None:
        return choices.selection()
    return tuple(canvas.ops_inside(now.model.graph, nodes))


def steps(now: Studio) -> tuple[str, str]:
    """The step that undo would take back and the one that redo would take; empty for none."""
    done, undone = now.history.done[-1:], now.history.undone[-1:]
    back, forth = (editing.label(now, steps[0]) if steps else "" for steps in (done, undone))
    return shortened(back, MOST_LABEL), shortened(forth, MOST_LABEL)
