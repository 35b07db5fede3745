"""The table component: one page of ops as a plain HTML table with boxes to tick.

It goes two ways like the canvas: rows and ticks go out as data, what a person does comes back as a
numbered queue in a state value, and `ack` tells the browser what has been applied.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from pages.ui.canvas.frontend import asset
from placement.drawing.colours.palette import DeviceKey


@dataclass(frozen=True)
class Heading:
    """One column: `by` is what its events call it; `help` explains it."""

    by: str
    label: str
    help: str = ""
    is_number: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under headings: each begins with the op's index, then a value per heading.

    A device is given by its index, a tick as a boolean, everything else as text. `chosen` tells the
    rows with a tick; `about` has the caption, the sorting, the page and the hatching.
    """

    headings: Sequence[Heading]
    rows: Sequence[Sequence[Any]]
    chosen: Sequence[bool]
    devices: Sequence[DeviceKey]
    about: Mapping[str, Any]

    def payload(self) -> dict[str, Any]:
        return {
            "headings": [vars(heading) for heading in self.headings],
            "rows": [list(row) for row in self.rows],
            "chosen": "".join("1" if c else "0" for c in self.chosen),
            "devices": [vars(device) for device in self.devices],
            **self.about,
        }


def draw_table(
    table: Table, *, ack: int, session: str, key: str, on_ops: Callable[[], None]
) -> None:
    """Draw a table; `ack` is the number of the last event that has been applied."""
    data = {"key": key, "ack": ack, "session": session, **table.payload()}
    json.dumps(data, allow_nan=False)
    _renderer()(key=key, data=data, on_ops_change=on_ops)


def read_events(key: str, *, session: str, after: int) -> list[dict[str, Any]]:
    """What was done and not applied yet, oldest first; whatever is malformed is left out.

    `pick` has `chosen` and `left`, indices of rows with and without a tick, and `only`, whether
    nothing else stays selected; `sort` has `by`; `page` has `page`.
    """
    state = st.session_state.get(key)
    box = state.get("ops") if isinstance(state, Mapping) else None
    if not isinstance(box, Mapping) or box.get("session") != session:
        return []
    queue = box.get("queue")
    entries = queue if isinstance(queue, list) else []
    found = {e["n"]: e for e in entries if _is_event(e) and e["n"] > after}
    return [found[n] for n in sorted(found)]


def _is_event(entry: object) -> bool:
    if not isinstance(entry, Mapping) or not _is_count(entry.get("n")):
        return False
    kind = entry.get("kind")
    if kind == "pick":
        lists = [entry.get("chosen"), entry.get("left")]
        return isinstance(entry.get("only"), bool) and all(
            isinstance(numbers, list) and all(_is_count(i) for i in numbers) for numbers in lists
        )
    if kind == "sort":
        return isinstance(entry.get("by"), str)
    return kind == "page" and _is_count(entry.get("page"))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@cache
def _renderer() -> Callable[..., Any]:
    return st.components.v2.component(
        "placement_table", js=asset("shim_table.js"), css=asset("table.css")
    )
