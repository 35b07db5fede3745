"""The two-way component: three Streamlit components that keep every edit small.

`lib` carries the drawing library and our code, once per browser session. `store` carries a view,
keyed by its hash, only when the view changes. `canvas` is a one-line shim whose data is a colour
per node, the selection and an acknowledgement. Gestures come back through an outbox; `messages.py`
says what they are.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import streamlit as st

from pages.ui.canvas.drawing import Drawing, Editing
from pages.ui.canvas.network import store_payload
from pages.ui.session import outbox
from pages.ui.shell.canvas_scripts import asset, component_script
from placement.drawing.views import View

T = TypeVar("T")
UNTOUCHED = Editing()
HIDDEN = ".st-key-canvas-lib, .st-key-canvas-store { display: none; }"


def mount_library(on_cancel: Callable[[], None] = lambda: None, *, served: bool = False) -> None:
    """Send the drawing library to the browser; call once per run, before the page's own content.

    Where the server has it at an address of its own (`served`), the browser fetches it there.
    `on_cancel` is called when somebody wants a view no longer that is still being laid out.
    """
    _library(served)(key="canvas-lib", on_cancel_change=on_cancel)


def mount_view(view: View) -> None:
    """Send a view; call it in a fragment of its own (it is large and seldom changes)."""
    _renderers()["store"](key="canvas-store", data=_checked(store_payload(view)))


def draw_canvas(
    drawing: Drawing,
    editing: Editing = UNTOUCHED,
    *,
    key: str = "canvas",
    height_px: int | None = 620,
    on_ops: Callable[[], None] = lambda: None,
) -> None:
    """Draw a view with its colours; `on_ops` is called when there are edits to read.

    Without a height it fills the place that it is in, and what stands around the drawing is slim.
    """
    data = {
        "key": key,
        "height": height_px,
        **outbox.state(key),
        **drawing.payload(),
        **editing.payload(),
    }
    height = "stretch" if height_px is None else height_px
    _renderers()["canvas"](key=key, data=_checked(data), height=height, on_ops_change=on_ops)


def first_sight(drawing: Drawing) -> dict[str, object]:
    """What a browser needs to draw the canvas of the Studio page before it has a session.

    It is read only until the session's own word comes, with which the same canvas goes on.
    """
    data = {"key": "canvas", "height": None, "ack": 0, "session": ""}
    return {
        "view": store_payload(drawing.view),
        "data": {**data, **drawing.payload(), **Editing(read_only=True).payload()},
        "css": asset("canvas.css"),
    }


def _checked(data: T) -> T:
    """Streamlit sends `str(data)` without an error where JSON fails; fail here instead."""
    json.dumps(data, allow_nan=False)
    return data


@cache
def _library(served: bool) -> Callable[..., object]:
    return st.components.v2.component(
        "placement_canvas_lib",
        js=component_script(served=served),
        css=HIDDEN,
        isolate_styles=False,
    )


@cache
def _renderers() -> dict[str, Callable[..., object]]:
    component = st.components.v2.component
    return {
        "store": component(
            "placement_canvas_store", js=asset("shim_store.js"), css=HIDDEN, isolate_styles=False
        ),
        "canvas": component(
            "placement_canvas", js=asset("shim_canvas.js"), css=asset("canvas.css")
        ),
    }
