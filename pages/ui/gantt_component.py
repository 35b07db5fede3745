"""Drawn timelines as a Streamlit component: panels on one axis, and the bar that was clicked."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from pages.ui import choices
from pages.ui.gantt import Bar, Panel

ASSETS = Path(__file__).resolve().parents[2] / "assets" / "timeline"
ZOOMING = "Drag across a stretch to zoom into it; double-click to see everything again."
PICKING = "Click a bar to select its ops, with Ctrl to add them."
LEGEND = (
    {"mark": "path", "text": "critical path"},
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
        "label": "; ".join(f"{p.title}, {len(p.bars)} bars" for p in panels),
        "panels": [panel.to_data(chosen) for panel in panels],
        "legend": [*legend, *([SELECTED] if on_pick else [])],
        "help": f"{PICKING} {ZOOMING}" if on_pick else ZOOMING,
        "pickable": on_pick is not None,
    }
    # Streamlit sends `str(data)` without an error where JSON fails; fail here instead.
    json.dumps(data, allow_nan=False)
    _component()(key=key, data=data, on_picked_change=on_pick or _ignored)


def _ignored() -> None:
    """Nothing happens at a click."""


def picked(key: str, panels: Sequence[Panel]) -> tuple[Bar, bool] | None:
    """The bar that was clicked and whether to add it; None for what no panel has (any more)."""
    state = choices.typed(key, {})
    told = state.get("picked") if isinstance(state, Mapping) else None
    if not isinstance(told, Mapping):
        return None
    panel = next((p for p in panels if p.key == told.get("panel")), None)
    number = told.get("bar")
    if panel is None or type(number) is not int or not 0 <= number < len(panel.bars):
        return None
    return panel.bars[number], bool(told.get("add"))


@cache
def _component() -> Callable[..., Any]:
    parts = {kind: (ASSETS / f"gantt.{kind}").read_text("utf-8") for kind in ("html", "css", "js")}
    return st.components.v2.component("placement_gantt", **parts)
