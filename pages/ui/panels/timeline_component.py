"""Drawn timelines as a Streamlit component: panels on one axis, and what was done to their bars.

Clicks and drops come through an outbox, as gestures in the picture do, and change what these
change. Each tells on which drawing it was made.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from msgspec import UNSET, UnsetType

from pages.ui.canvas import gestures
from pages.ui.canvas.messages import Assign, Edit, Pin, PinOrder, Redo, Undo, Unpin
from pages.ui.consequence.last_edit import LastEdit
from pages.ui.session import callbacks, choices, outbox, saving
from pages.ui.session.current import attempt, studio
from pages.ui.session.outbox import Count, Message
from placement.core import formatting
from placement.drawing.gantt import Panel
from studio import editing
from studio.exercise import Target
from studio.snapshot import Studio

ASSETS = Path(__file__).resolve().parents[3] / "assets" / "timeline"
OUTBOX = ASSETS.parent / "canvas" / "outbox.js"
CONSEQUENCE = ASSETS.parent / "consequence"
SCRIPTS = (
    OUTBOX,
    *(CONSEQUENCE / f"{name}.js" for name in ("consequence", "held_key")),
    *(ASSETS / f"{name}.js" for name in ("elements", "ghosts", "drag", "pointer", "gantt")),
)
ZOOMING = "Drag across a stretch to zoom into it; double-click to see everything again."
PICKING = "Click a bar to select its ops, with Ctrl to add them."
EDITING = (
    "Drag a predicted bar to another device to move its ops, or along its own to run it earlier or"
    " later. Keys 1 to 9 move what is selected to that device; held, they show first what comes of"
    " it. P pins it, O the order of its device, Ctrl+Z takes back."
)
BESIDE = "Drag beside bars, or with Shift, across a stretch to zoom into it; double-click for all."
NOTHING = "Nothing is selected: click a bar or a block first, then press the key of a device."
QUEUED = {"mark": "queued", "text": "there it waited its turn"}
LEGEND = (
    {"mark": "path", "text": "critical path"},
    QUEUED,
    {"mark": "idle", "text": "idle"},
)
SELECTED = {"mark": "selected", "text": "selected"}
PAST = {"mark": "past", "text": "before the last edit"}


class Edited(NamedTuple):
    """The placement that is edited by hand: the key of its panel, empty where its bars cannot be
    dragged, where to ask what that would do, and what it was before the last edit, drawn behind it
    on one axis."""

    panel: str = ""
    asks: Mapping[str, str] | None = None
    before: LastEdit | None = None


NOT_EDITED = Edited()


def draw(
    panels: Sequence[Panel],
    *,
    key: str,
    of: str = "",
    began: str = "the step",
    selection: Iterable[str] = (),
    legend: Sequence[Mapping[str, str]] = LEGEND,
    on_pick: Callable[[], None] | None = None,
    edited: Edited = NOT_EDITED,
    targets: Sequence[Target] = (),
    fits: bool = False,
) -> None:
    """Draw timelines one above the other; with `on_pick` their bars can be clicked.

    What is zoomed into stays until `of`, what the timelines are about, changes. One of them may be
    of a placement that is `edited`. Lines stand at the `targets`. What `fits` has lanes as low as
    the place needs in which it is the first thing.
    """
    chosen, before = tuple(selection), edited.before
    zooming = f"{EDITING} {BESIDE}" if edited.panel else ZOOMING
    data = {
        "of": of,
        "began": began,
        "label": "; ".join(f"{p.title}, {formatting.counted(len(p.bars), 'bar')}" for p in panels),
        "panels": [panel.to_data(chosen) for panel in panels],
        "legend": [
            *(sign for sign in legend if sign != QUEUED or any(p.has_queues for p in panels)),
            *([SELECTED] if on_pick else []),
            *([PAST] if before and before.bars else []),
        ],
        "help": f"{PICKING} {zooming}" if on_pick else zooming,
        "pickable": on_pick is not None,
        "editable": edited.panel,
        "fits": fits,
        "hatched": choices.presenting() or bool(choices.remembered("hatch", False)),
        "targets": [target._asdict() for target in targets],
        "asks": dict(edited.asks) if edited.asks else None,
        "before": _before(before),
        **outbox.state(key),
    }
    # Streamlit sends `str(data)` without an error where JSON fails; fail here instead.
    json.dumps(data, allow_nan=False)
    _component()(key=key, data=data, on_picks_change=on_pick or _ignored)


def _before(edit: LastEdit | None) -> dict[str, object] | None:
    if edit is None:
        return None
    return {"of": edit.axis, "text": edit.change.text, "bars": edit.bars}


def _ignored() -> None:
    """Nothing happens at a click."""


class Bar(Message, frozen=True):
    """Something about a bar of one version of a panel."""

    panel: str
    version: str
    bar: Count


class Click(Bar, frozen=True, tag="pick"):
    """A click on a bar; with `add` what is selected stays so."""

    add: bool = False


class Dragged(Bar, frozen=True):
    """A bar was dragged, and with `all` whatever is selected."""

    all: bool = False


class Drop(Dragged, frozen=True, kw_only=True, tag="drop"):
    """To the device with this number, and there to right before another bar, or to the end."""

    device: Count
    before: Count | UnsetType | None = UNSET


class Order(Dragged, frozen=True, kw_only=True, tag="order"):
    """Along its device, to right before another bar, or to the end; what is elsewhere stays."""

    before: Count | None


MESSAGES: tuple[type[Message], ...] = (Click, Drop, Order, Assign, Pin, PinOrder, Unpin, Undo, Redo)


class Done(NamedTuple):
    """What messages did: whether bars were clicked, and whether the placement may be another."""

    selected: bool = False
    edited: bool = False


def select_picked(key: str, panels: Sequence[Panel]) -> bool:
    """Select the ops of the bars that were clicked since the last time; whether there were any."""
    return apply(key, panels, (Click,)).selected


def apply(key: str, panels: Sequence[Panel], kinds: Sequence[type[Message]] = MESSAGES) -> Done:
    """Do what was done to bars since the last time: select their ops, move and order them.

    What was done to a drawing that is no longer this one is passed over: its bars stand for other
    ops.
    """
    done, drawn = Done(), {(panel.key, panel.version): panel for panel in panels}
    for message in outbox.unread(key, kinds, box="picks"):
        with callbacks.uninterrupted():
            about = (message.panel, message.version) if isinstance(message, Bar) else ("", "")
            panel = drawn.get(about)
            if isinstance(message, Click):
                found = _select(message, panel)
                done = done._replace(selected=done.selected or found)
            else:
                with saving.change():
                    _edit(message, panel)
                done = done._replace(edited=True)
            outbox.applied(key, message)
    return done


def _select(click: Click, panel: Panel | None) -> bool:
    if panel is None or click.bar >= len(panel.bars):
        return False
    before = choices.selection() if click.add else ()
    choices.select(dict.fromkeys((*before, *panel.bars[click.bar].ops)))
    return True


def _edit(message: Message, panel: Panel | None) -> None:
    now = studio()
    if isinstance(message, Assign) and not choices.selection():
        choices.say("info", NOTHING)
    elif isinstance(message, Edit):
        gestures.edit(now, message)
    elif isinstance(message, Dragged) and panel is not None and message.bar < len(panel.bars):
        put(now, message, panel)


def put(now: Studio, dragged: Dragged, panel: Panel) -> None:
    """What was dragged is selected, and moves as the selection does in the picture."""
    if not choices.renew_claim(now.project):
        choices.say("warning", choices.unwritable() or gestures.READ_ONLY)
        return
    chosen = choices.selection() if dragged.all else ()
    ops = tuple(dict.fromkeys((*chosen, *panel.bars[dragged.bar].ops)))
    choices.select(ops)
    devices = now.machine.devices
    match dragged:
        case Drop(device=number, before=place) if number < len(devices):
            to = partial(editing.edit, ops=ops, device=devices[number].name, within_rules=True)
            attempt(now, to if place is UNSET else partial(to, before=panel.ops_of(place)))
        case Order(before=place):
            along = editing.beside(now, ops, panel.bars[dragged.bar].ops)
            attempt(now, partial(editing.reorder, ops=along, before=panel.ops_of(place)))


@cache
def _component() -> Callable[..., object]:
    html, css = ((ASSETS / f"gantt.{kind}").read_text("utf-8") for kind in ("html", "css"))
    js = "\n".join(path.read_text("utf-8") for path in SCRIPTS)
    return st.components.v2.component("placement_gantt", html=html, css=css, js=js)
