"""Drawn timelines as a Streamlit component: panels on one axis, and the bars that were clicked.

Clicks come through an outbox kept as a state value, as edits of the picture do: one-shot triggers
of one name overtake each other. Each tells which drawing it was made on.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from pages.ui.session import choices
from placement.core import formatting as units
from placement.drawing.gantt import Bar, Panel

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
        "label": "; ".join(f"{p.title}, {units.counted(len(p.bars), 'bar')}" for p in panels),
        "panels": [panel.to_data(chosen) for panel in panels],
        "legend": [
            *(sign for sign in legend if sign != QUEUED or any(p.has_queues for p in panels)),
            *([SELECTED] if on_pick else []),
        ],
        "help": f"{PICKING} {ZOOMING}" if on_pick else ZOOMING,
        "pickable": on_pick is not None,
        "session": choices.nonce(),
        "ack": choices.last_event(key),
    }
    # Streamlit sends `str(data)` without an error where JSON fails; fail here instead.
    json.dumps(data, allow_nan=False)
    _component()(key=key, data=data, on_picks_change=on_pick or _ignored)


def _ignored() -> None:
    """Nothing happens at a click."""


def select_picked(key: str, panels: Sequence[Panel]) -> bool:
    """Select the ops of the bars that were clicked since the last time; whether there were any.

    A click on a drawing that is no longer this one is passed over: its bars stand for other ops.
    """
    found = False
    for number, told in _fresh(key):
        bar = _bar(told, panels)
        if bar is not None:
            before = choices.selection() if told.get("add") else ()
            choices.select(dict.fromkeys((*before, *bar.ops)))
            found = True
        choices.applied_event(key, number)
    return found


def _fresh(key: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Clicks of this session that were not applied yet, oldest first, by their numbers."""
    state = choices.typed(key, {})
    box = state.get("picks") if isinstance(state, Mapping) else None
    if not isinstance(box, Mapping) or box.get("session") != choices.nonce():
        return []
    queue, after = box.get("queue"), choices.last_event(key)
    found = {}
    for told in queue if isinstance(queue, list) else []:
        number = told.get("n") if isinstance(told, Mapping) else None
        if type(number) is int and number > after:
            found[number] = told
    return sorted(found.items())


def _bar(told: Mapping[str, Any], panels: Sequence[Panel]) -> Bar | None:
    """The bar that was clicked; None for what no panel has (any more)."""
    drawing, number = (told.get("panel"), told.get("version")), told.get("bar")
    panel = next((p for p in panels if (p.key, p.version) == drawing), None)
    if panel is None or type(number) is not int or not 0 <= number < len(panel.bars):
        return None
    return panel.bars[number]


@cache
def _component() -> Callable[..., Any]:
    html, css = ((ASSETS / f"gantt.{kind}").read_text("utf-8") for kind in ("html", "css"))
    js = "\n".join(path.read_text("utf-8") for path in SCRIPTS)
    return st.components.v2.component("placement_gantt", html=html, css=css, js=js)
