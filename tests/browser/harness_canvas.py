"""A small studio around nothing but the canvas, for its browser tests.

The page Anew takes what the next canvas is to be like, written as in an address: `model=` names a
bundled sample or a made-up graph ("hostile", "chain", "wide"), `slow=` delays every edit by that
many seconds, `breath_ms=` every step of a layout after the first. What Python holds is shown as
JSON, so that a test can compare it with the picture.
"""

import json
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl

import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pages.ui import canvas
from pages.ui.canvas.messages import (
    GESTURES,
    Assign,
    ExpandAll,
    Pin,
    Redo,
    Search,
    Select,
    Toggle,
    Undo,
    Unpin,
    Widen,
)
from pages.ui.session import outbox
from tests.pages.graphs import graph_named

state = st.session_state
st.set_page_config(layout="wide")


@st.cache_resource
def load(name: str):  # type: ignore[no-untyped-def]
    return graph_named(name)


asked = dict(parse_qsl(state.get("asked", "")))
name = asked.get("model", "blocks")
graph = load(name)
num_devices = 3
keys = [
    replace(key, busy=f"{i} µs", memory="1 KiB")
    for i, key in enumerate(canvas.device_keys([f"cpu:{i}" for i in range(num_devices)]))
]
if state.get("model") != name:
    half = len(graph.ops) // 2
    state.update(
        model=name,
        nonce=uuid.uuid4().hex,
        devices=[0] * half + [1] * (len(graph.ops) - half),
        selection=[],
        done=[],
        undone=[],
        expanded=sorted(canvas.default_expanded(graph)),
        expanded_before=[],
        pins=[],
        focus=0,
        answer=None,
        log=[],
    )


def breathe() -> None:
    if state["log"]:
        time.sleep(0.001 * float(asked.get("breath_ms", "0")))
    state.get("expanded")


def view_now():  # type: ignore[no-untyped-def]
    return canvas.build_view(graph, frozenset(state["expanded"]), check=breathe)


def ops_for(op) -> list[str]:  # type: ignore[no-untyped-def]
    if op.nodes is None:
        return list(state["selection"])
    return canvas.ops_inside(graph, op.nodes)


def answer(op) -> None:  # type: ignore[no-untyped-def]
    told = {"text": op.text, "by": op.by, "at": -1, "total": 0, "note": ""}
    try:
        found = canvas.search(graph, op.text, op.by)
    except ValueError as error:
        state["answer"] = {**told, "note": str(error)}
        return
    told.update(total=len(found), note="" if found else "No match")
    names = [graph.ops[i].name for i in found]
    if op.all:
        state.update(selection=names, focus=state["focus"] + 1)
    elif found and op.at >= 0:
        told["at"] = op.at % len(found)
        one = names[told["at"]]
        expanded = canvas.reveal(graph, state["expanded"], [one])
        state.update(selection=[one], focus=state["focus"] + 1, expanded=sorted(expanded))
    state["answer"] = told


def apply() -> None:
    time.sleep(float(asked.get("slow", "0")))
    redraw = False
    for op in outbox.unread("canvas", GESTURES):
        outbox.applied("canvas", op)
        state["log"].append(type(op).__struct_config__.tag)
        match op:
            case Select(how=how):
                nodes, known = canvas.ops_inside(graph, op.nodes), set(state["selection"])
                if how == "set":
                    known = set()
                elif how == "toggle" and set(nodes) <= known:
                    known, nodes = known - set(nodes), []
                state["selection"] = [o.name for o in graph.ops if o.name in known | set(nodes)]
            case Widen(way=way):
                state["selection"] = list(canvas.related(graph, state["selection"], way))
            case Search():
                answer(op)
                redraw = True
            case Pin() | Unpin():
                pins, wanted = set(state["pins"]), set(ops_for(op))
                state["pins"] = sorted(pins | wanted if isinstance(op, Pin) else pins - wanted)
            case Assign(device=device):
                state["done"].append(list(state["devices"]))
                state["undone"] = []
                for op_name in set(ops_for(op)) - set(state["pins"]):
                    state["devices"][graph.index[op_name]] = device
            case Undo() | Redo():
                take, give = "done", "undone"
                if isinstance(op, Redo):
                    take, give = give, take
                if state[take]:
                    state[give].append(list(state["devices"]))
                    state["devices"] = state[take].pop()
            case _:
                state["expanded_before"] = list(state["expanded"])
                opened = canvas.all_groups(graph) if isinstance(op, ExpandAll) else ()
                if isinstance(op, Toggle):
                    opened = canvas.toggled(graph, state["expanded"], op.node)
                state["expanded"] = sorted(opened)
                redraw = True
    st.rerun(["store", "canvas", "side"] if redraw else ["canvas", "side"])


@st.fragment(key="store")
def store() -> None:
    canvas.mount_view(view_now())


@st.fragment(key="canvas")
def draw() -> None:
    view = view_now()
    drawing = canvas.Drawing(
        view=view,
        paint=canvas.paint(view, state["devices"], num_devices),
        devices=keys,
        selection=state["selection"],
        pins=state["pins"],
        focus=state["focus"],
        search=state["answer"],
    )
    editing = canvas.Editing(
        read_only="readonly" in asked,
        undo="a step" if state["done"] else "",
        redo="a step" if state["undone"] else "",
    )
    canvas.draw_canvas(drawing, editing, on_ops=apply)


@st.fragment(key="side")
def side() -> None:
    held = {name: state[name] for name in ("devices", "selection", "pins", "log")}
    st.code(json.dumps(held), language=None)


def main() -> None:
    store()
    draw()
    side()


def other() -> None:
    st.write("Another page")


def anew() -> None:
    """A test that goes through this page finds the canvas as in a window that was just opened."""
    wanted = st.text_input("The next canvas")
    state.clear()
    state["asked"] = wanted
    st.write(f"Nothing is remembered, next is: {wanted or 'as usual'}")


def cancelled() -> None:
    state["expanded"] = state["expanded_before"]


canvas.mount_library(cancelled)
pages = [st.Page(main, title="Main", default=True), st.Page(other), st.Page(anew)]
page = st.navigation(pages, position="top")
page.run()
