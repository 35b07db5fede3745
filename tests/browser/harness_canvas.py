"""A small studio around nothing but the canvas, for its browser tests.

`?model=` names a bundled sample or a made-up graph ("hostile", "chain", "wide"), `?slow=` delays
every edit by that many seconds. What Python holds is shown as JSON, so that a test can compare it
with the picture.
"""

import json
import sys
import time
import uuid
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pages.ui import canvas
from tests.pages.graphs import graph_named

state = st.session_state
st.set_page_config(layout="wide")


@st.cache_resource
def load(name: str):  # type: ignore[no-untyped-def]
    return graph_named(name)


name = st.query_params.get("model", "blocks")
graph = load(name)
num_devices = int(st.query_params.get("devices", "3"))
keys = canvas.device_keys([f"cpu:{i}" for i in range(num_devices)])
if state.get("model") != name:
    half = len(graph.ops) // 2
    state.update(
        model=name,
        nonce=uuid.uuid4().hex,
        last=0,
        devices=[0] * half + [1] * (len(graph.ops) - half),
        selection=[],
        done=[],
        undone=[],
        expanded=sorted(canvas.default_expanded(graph)),
        log=[],
    )


def view_now():  # type: ignore[no-untyped-def]
    return canvas.build_view(graph, frozenset(state["expanded"]))


def apply() -> None:
    time.sleep(float(st.query_params.get("slow", "0")))
    redraw = False
    for op in canvas.read_ops("canvas", session=state["nonce"], after=state["last"]):
        state["last"] = op["n"]
        state["log"].append(op["kind"])
        kind = op["kind"]
        if kind == "select":
            state["selection"] = canvas.ops_of(view_now(), op["nodes"])
        elif kind == "assign":
            state["done"].append(list(state["devices"]))
            state["undone"] = []
            for op_name in canvas.ops_of(view_now(), op["nodes"]):
                state["devices"][graph.index[op_name]] = op["device"]
        elif kind in ("undo", "redo"):
            take, give = ("done", "undone") if kind == "undo" else ("undone", "done")
            if state[take]:
                state[give].append(list(state["devices"]))
                state["devices"] = state[take].pop()
        else:
            state["expanded"] = sorted(canvas.expanded_after(graph, state["expanded"], op))
            redraw = True
    st.rerun(["store", "canvas", "side"] if redraw else ["canvas", "side"])


@st.fragment(key="store")
def store() -> None:
    canvas.mount_view(view_now())


@st.fragment(key="canvas")
def draw() -> None:
    view = view_now()
    canvas.draw_canvas(
        view,
        canvas.paint(view, state["devices"], num_devices),
        devices=keys,
        selection=state["selection"],
        ack=state["last"],
        session=state["nonce"],
        read_only="readonly" in st.query_params,
        on_ops=apply,
        marks=[op.name for op in graph.ops[:: max(1, len(graph.ops) // 12)]]
        if "marks" in st.query_params
        else [],
    )


@st.fragment(key="side")
def side() -> None:
    held = {"devices": state["devices"], "selection": state["selection"], "log": state["log"]}
    st.code(json.dumps(held), language=None)


def main() -> None:
    store()
    draw()
    side()


def other() -> None:
    st.write("Another page")


canvas.mount_library()
page = st.navigation([st.Page(main, title="Main", default=True), st.Page(other, title="Other")])
page.run()
