"""The two-way component: three Streamlit components that keep every edit small.

`lib` carries the drawing library and our code, once per browser session. `store` carries a view,
keyed by its hash, only when the view changes. `canvas` is a one-line shim whose data is a colour
per node, the selection and an acknowledgement. Edits come back through an outbox kept as a state
value, because one-shot triggers of the same name overtake each other in quick succession.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import streamlit as st

from pages.ui.canvas.frontend import canvas_css, canvas_shim, library_script, store_shim
from pages.ui.canvas.network import store_payload
from placement.drawing.colours.painting import Paint, selection_marks
from placement.drawing.colours.palette import DeviceKey
from placement.drawing.colours.toning import Tones
from placement.drawing.crossing import PathLines
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
    view: View,
    paint: Paint,
    *,
    devices: Sequence[DeviceKey],
    selection: Iterable[str] = (),
    ack: int = 0,
    session: str = "",
    read_only: bool = False,
    key: str = "canvas",
    height: int = 620,
    on_ops: Callable[[], None] = lambda: None,
    marks: Iterable[str] = (),
    pins: Iterable[str] = (),
    undo: str = "",
    redo: str = "",
    focus: int = 0,
    search: Mapping[str, Any] | None = None,
    empty: str = "",
    tones: Tones | None = None,
    hatched: bool = False,
    crossings: str = "",
    path: PathLines | None = None,
    sums: Mapping[int, str] | None = None,
) -> Any:
    """Draw a view with its colours.

    `selection`, `marks` (the critical path) and `pins` are op names. `ack` is the number of the
    last edit that Python has applied. `read_only` keeps selection and expansion but assigns
    nothing. `undo` and `redo` say which step they would take, empty for none. A `focus` larger than
    before makes the drawing move to the selection. `search` answers the last search. `empty` is
    shown over the canvas where the graph has no ops. `tones` colour the cards by something else
    than the device; `hatched` draws the hatch of each device too. `crossings` says which edges lead
    from device to device, `path` where the critical path runs, `sums` what to write on closed
    blocks, by node.
    """
    if paint.view != view.hash or (tones and tones.view != view.hash):
        raise ValueError("The paint was made for another view; call paint() with this one.")
    chosen = tuple(selection)
    data = {
        "key": key,
        "view": view.hash,
        "colours": paint.colours,
        "mixes": {str(node): list(map(list, mix)) for node, mix in paint.mixes.items()},
        "counts": list(paint.counts),
        "selected": selection_marks(view, chosen),
        "chosen": len(chosen),
        "marks": selection_marks(view, marks),
        "devices": [vars(device) for device in devices],
        "tones": tones.payload() if tones else None,
        "hatched": hatched,
        "crossings": crossings,
        "path": path.edges if path else "",
        "queues": [vars(queue) for queue in path.queues] if path else [],
        "sums": {str(node): text for node, text in (sums or {}).items()},
        "pins": selection_marks(view, pins),
        "undo": undo,
        "redo": redo,
        "focus": focus,
        "search": None if search is None else dict(search),
        "ack": ack,
        "session": session,
        "readOnly": read_only,
        "height": height,
        "empty": empty,
    }
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
