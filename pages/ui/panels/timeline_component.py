"""Drawn timelines as a Streamlit component: panels on one axis, and the bars that were clicked.

Clicks come through an outbox, as gestures in the picture do. Each tells on which drawing it was
made.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import streamlit as st

from pages.ui.session import choices, outbox
from pages.ui.session.outbox import Count, Message
from placement.core import formatting
from placement.drawing.gantt import Panel

ASSETS = Path(__file__).resolve().parents[3] / "assets" / "timeline"
OUTBOX = ASSETS.parent / "canvas" / "outbox.js"
SCRIPTS = (OUTBOX, *(ASSETS / f"{name}.js" for name in ("elements", "pointer", "gantt")))
ZOOMING = "Drag across a stretch to zoom into it; double-click to see everything again."
PICKING = "Click a bar to select its ops, with Ctrl to add them."
QUEUED = {"mark": "queued", "text": "there it waited its turn"}
LEGEND = (
    {"mark": "path", "text": "critical path"},
    QUEUED,
    {"mark": "idle", "text": "idle"},
)
SELECTED = {"mark": "selected", "text": "selected"}


def draw(
    panels: Sequence[Panel],
    *,
    key: str,
    of: str = "",
    began: str = "the step",
    selection: Iterable[str] = (),
    legend: Sequence[Mapping[str, str]] = LEGEND,
    on_pick: Callable[[], None] | None = None,
) -> None:
    """Draw timelines one above the other; with `on_pick` their bars can be clicked.

    What is zoomed into stays until `of`, what the timelines are about, changes.
    """
    chosen = tuple(selection)
    data = {
        "of": of,
        "began": began,
        "label": "; ".join(f"{p.title}, {formatting.counted(len(p.bars), 'bar')}" for p in panels),
        "panels": [panel.to_data(chosen) for panel in panels],
        "legend": [
            *(sign for sign in legend if sign != QUEUED or any(p.has_queues for p in panels)),
            *([SELECTED] if on_pick else []),
        ],
        "help": f"{PICKING} {ZOOMING}" if on_pick else ZOOMING,
        "pickable": on_pick is not None,
        **outbox.state(key),
    }
    # Streamlit sends `str(data)` without an error where JSON fails; fail here instead.
    json.dumps(data, allow_nan=False)
    _component()(key=key, data=data, on_picks_change=on_pick or _ignored)


def _ignored() -> None:
    """Nothing happens at a click."""


class Click(Message, frozen=True, tag="pick"):
    """A click on a bar of one version of a panel; with `add` what is selected stays so."""

    panel: str
    version: str
    bar: Count
    add: bool = False


def select_picked(key: str, panels: Sequence[Panel]) -> bool:
    """Select the ops of the bars that were clicked since the last time; whether there were any.

    A click on a drawing that is no longer this one is passed over: its bars stand for other ops.
    """
    found, drawn = False, {(panel.key, panel.version): panel.bars for panel in panels}
    for click in outbox.unread(key, (Click,), box="picks"):
        bars = drawn.get((click.panel, click.version), ())
        if click.bar < len(bars):
            before = choices.selection() if click.add else ()
            choices.select(dict.fromkeys((*before, *bars[click.bar].ops)))
            found = True
        outbox.applied(key, click)
    return found


@cache
def _component() -> Callable[..., object]:
    html, css = ((ASSETS / f"gantt.{kind}").read_text("utf-8") for kind in ("html", "css"))
    js = "\n".join(path.read_text("utf-8") for path in SCRIPTS)
    return st.components.v2.component("placement_gantt", html=html, css=css, js=js)
