"""The two-way component: three Streamlit components that keep every edit small.

`lib` carries the drawing library and our code, once per browser session. `store` carries a view,
keyed by its hash, only when the view changes. `canvas` is a one-line shim whose data is a colour
per node, the selection and an acknowledgement. Edits come back through an outbox kept as a state
value, because one-shot triggers of the same name overtake each other in quick succession.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import streamlit as st

from pages.ui.canvas.drawing import Drawing, Editing
from pages.ui.canvas.frontend import canvas_css, canvas_shim, library_script, store_shim
from pages.ui.canvas.network import store_payload
from placement.drawing.related import WAYS
from placement.drawing.searching import BY
from placement.drawing.views import View

# What an edit of each kind carries beside its number; see the docstring of the package.
KINDS: dict[str, tuple[str, ...]] = {
    "select": ("nodes", "how"),
    "assign": ("targets", "device"),
    "pin": ("targets",),
    "unpin": ("targets",),
    "widen": ("way",),
    "search": ("text", "by", "at", "all"),
    "toggle": ("node",),
    "expand_all": (),
    "collapse_all": (),
    "undo": (),
    "redo": (),
}
MOST_TEXT = 200
UNTOUCHED = Editing()
HIDDEN = ".st-key-canvas-lib, .st-key-canvas-store { display: none; }"


def mount_library(on_cancel: Callable[[], None] = lambda: None) -> None:
    """Send the drawing library to the browser; call once per run, before the page's own content.

    `on_cancel` is called when somebody wants a view no longer that is still being laid out.
    """
    _renderers()["lib"](key="canvas-lib", on_cancel_change=on_cancel)


def mount_view(view: View) -> None:
    """Send a view; call it in a fragment of its own (it is large and seldom changes)."""
    _renderers()["store"](key="canvas-store", data=_checked(store_payload(view)))


def draw_canvas(
    drawing: Drawing,
    editing: Editing = UNTOUCHED,
    *,
    key: str = "canvas",
    height: int = 620,
    on_ops: Callable[[], None] = lambda: None,
) -> Any:
    """Draw a view with its colours; `on_ops` is called when there are edits to read."""
    data = {"key": key, "height": height, **drawing.payload(), **editing.payload()}
    return _renderers()["canvas"](key=key, data=_checked(data), height=height, on_ops_change=on_ops)


def read_ops(key: str = "canvas", *, session: str = "", after: int = 0) -> list[dict[str, Any]]:
    """Edits not applied yet, oldest first: those numbered above `after`, made in this session.

    The list comes from a browser, so whatever is malformed is left out.
    """
    state = st.session_state.get(key)
    box = state.get("ops") if isinstance(state, Mapping) else None
    if not isinstance(box, Mapping) or box.get("session") != session:
        return []
    queue = box.get("queue")
    found = [_edit(entry) for entry in queue] if isinstance(queue, list) else []
    fresh = {e["n"]: e for e in found if e is not None and e["n"] > after}
    return [fresh[n] for n in sorted(fresh)]


def _edit(entry: object) -> dict[str, Any] | None:
    """One edit with checked types, or None."""
    if not isinstance(entry, Mapping):
        return None
    number, kind = entry.get("n"), entry.get("kind")
    if not _is_count(number) or not isinstance(kind, str) or kind not in KINDS:
        return None
    edit: dict[str, Any] = {"n": number, "kind": kind}
    for field in KINDS[kind]:
        name = "nodes" if field == "targets" else field
        value = entry.get(name, DEFAULTS.get(field))
        if not CHECKS[field](value):
            return None
        edit[name] = value
    return edit


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


DEFAULTS = {"how": "set", "all": False}
CHECKS: dict[str, Callable[[Any], bool]] = {
    "nodes": _is_names,
    # None stands for what is selected, also inside closed blocks.
    "targets": lambda value: value is None or _is_names(value),
    "how": lambda value: value in ("set", "add", "toggle"),
    "device": _is_count,
    "way": lambda value: value in WAYS,
    "text": lambda value: isinstance(value, str) and len(value) <= MOST_TEXT,
    "by": lambda value: value in BY,
    "at": lambda value: value == -1 or _is_count(value),
    "all": lambda value: isinstance(value, bool),
    "node": lambda value: isinstance(value, str),
}


def _checked(data: dict[str, Any]) -> dict[str, Any]:
    """Streamlit sends `str(data)` without an error where JSON fails; fail here instead."""
    json.dumps(data, allow_nan=False)
    return data


@cache
def _renderers() -> dict[str, Callable[..., Any]]:
    component = st.components.v2.component
    return {
        "lib": component(
            "placement_canvas_lib", js=library_script(), css=HIDDEN, isolate_styles=False
        ),
        "store": component(
            "placement_canvas_store", js=store_shim(), css=HIDDEN, isolate_styles=False
        ),
        "canvas": component("placement_canvas", js=canvas_shim(), css=canvas_css()),
    }
