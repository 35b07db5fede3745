"""The table component: one page of ops as a plain HTML table with boxes to tick.

It goes two ways like the canvas: rows and ticks go out as data, what a person does comes back
through an outbox.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import streamlit as st

from pages.ui.session import outbox
from pages.ui.session.outbox import Count, Message
from pages.ui.shell.canvas_scripts import asset
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
    rows: Sequence[Sequence[object]]
    chosen: Sequence[bool]
    devices: Sequence[DeviceKey]
    about: Mapping[str, object]

    def payload(self) -> dict[str, object]:
        return {
            "headings": [vars(heading) for heading in self.headings],
            "rows": [list(row) for row in self.rows],
            "chosen": "".join("1" if c else "0" for c in self.chosen),
            "devices": [vars(device) for device in self.devices],
            **self.about,
        }


def draw_table(table: Table, *, key: str, on_ops: Callable[[], None]) -> None:
    """Draw a table; `on_ops` is called when there are events to read."""
    data = {"key": key, **outbox.state(key), **table.payload()}
    json.dumps(data, allow_nan=False)
    _renderer()(key=key, data=data, on_ops_change=on_ops)


class Event(Message, frozen=True):
    """Something that a person did in the table."""


class Pick(Event, frozen=True, tag="pick"):
    """Rows of a graph's table got a tick or lost it; `only`: nothing else stays selected."""

    chosen: tuple[Count, ...]
    left: tuple[Count, ...]
    only: bool
    graph: str = ""


class Sort(Event, frozen=True, tag="sort"):
    by: str


class Turn(Event, frozen=True, tag="page"):
    """Another page was turned to."""

    page: Count


EVENTS: tuple[type[Event], ...] = (Pick, Sort, Turn)


@cache
def _renderer() -> Callable[..., object]:
    return st.components.v2.component(
        "placement_table", js=asset("shim_table.js"), css=asset("table.css")
    )
