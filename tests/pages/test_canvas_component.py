"""The component's Python side: what it reads from a browser, and the script it sends."""

import json
import re

import pytest
import streamlit as st

from pages.ui import canvas
from pages.ui.canvas.messages import GESTURES, Assign, Pin, Redo, Undo
from pages.ui.consequence import route
from pages.ui.session import outbox
from pages.ui.shell.canvas_scripts import asset, library_script
from tests.pages.graphs import blocks


@pytest.fixture
def browser_says(monkeypatch):
    """Put a value where Streamlit keeps the component's state."""

    def say(value):
        state = {"canvas": {"ops": value}, "once": {"ops": value}, "nonce": "here"}
        monkeypatch.setattr(st, "session_state", state)

    return say


def test_edits_come_in_order_and_once(browser_says):
    queue = [
        {"n": 7, "kind": "assign", "nodes": ["o1"], "device": 2},
        {"n": 5, "kind": "select", "nodes": ["o1", "s2"]},
        {"n": 8, "kind": "pin", "nodes": None, "how": "dropped"},
        {"n": 7, "kind": "assign", "nodes": ["o1"], "device": 2},
        {"n": 9, "kind": "undo", "extra": "dropped"},
    ]
    browser_says({"session": "here", "queue": queue})
    outbox.applied("once", Undo(5))
    edits = [Assign(7, device=2, nodes=("o1",)), Pin(8), Undo(9)]
    assert outbox.unread("once", GESTURES) == edits
    outbox.applied("once", edits[-1])
    assert outbox.unread("once", GESTURES) == []
    browser_says({"session": "another", "queue": [{"n": 10, "kind": "undo"}]})
    assert outbox.unread("once", GESTURES) == []


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "text",
        {"n": "1", "kind": "undo"},
        {"n": True, "kind": "undo"},
        {"n": 1, "kind": "delete everything"},
        {"n": 1, "kind": ["undo"]},
        {"n": 1, "kind": "assign", "nodes": ["o1"], "device": -1},
        {"n": 1, "kind": "assign", "nodes": ["o1"]},
        {"n": 1, "kind": "assign", "nodes": "o1", "device": 0},
        {"n": 1, "kind": "select", "nodes": [1]},
        {"n": 1, "kind": "select", "nodes": None},
        {"n": 1, "kind": "select", "nodes": ["o1"], "how": "sometimes"},
        {"n": 1, "kind": "toggle"},
        {"n": 1, "kind": "widen", "way": "sideways"},
        {"n": 1, "kind": "unpin", "nodes": [None]},
        {"n": 1, "kind": "search", "text": "x", "by": "name", "at": -2},
        {"n": 1, "kind": "search", "text": "x" * 201, "by": "name", "at": 0},
        {"n": 1, "kind": "search", "text": "x", "by": "smell", "at": 0},
        {"n": 1, "kind": "\ud800"},
        {"n": 1, "kind": "select", "nodes": ["o1"], "\ud800": 1},
    ],
)
def test_malformed_edits_are_left_out(browser_says, entry):
    good = {"n": 2, "kind": "redo"}
    browser_says({"session": "here", "queue": [entry, good]})
    assert outbox.unread("canvas", GESTURES) == [Redo(2)]


@pytest.mark.parametrize(
    "value", [None, [], "x", {"session": "here"}, {"session": "here", "queue": 3}]
)
def test_malformed_boxes_are_empty(browser_says, value):
    browser_says(value)
    assert outbox.unread("canvas", GESTURES) == []


def test_paint_of_another_view_is_refused():
    graph = blocks()
    closed, opened = (canvas.build_view(graph, frozenset(ids)) for ids in ((), ("s1",)))
    paint = canvas.paint(closed, [0] * len(graph.ops), 1)
    with pytest.raises(ValueError, match="another view"):
        canvas.Drawing(view=opened, paint=paint, devices=canvas.device_keys(["cpu"]))


def test_a_message_holds_a_character_per_node_and_edge():
    graph = blocks(250)
    view = canvas.build_view(graph, canvas.default_expanded(graph))
    devices = [i // 7 % 4 for i in range(len(graph.ops))]
    tones = canvas.tones_by_class(
        view, devices, [(f"kind {k}", "#000000") for k in range(4)], by="kind", title="Op type"
    )
    drawing = canvas.Drawing(
        view=view,
        paint=canvas.paint(view, devices, 4),
        devices=canvas.device_keys([f"cpu:{i}" for i in range(4)]),
        tones=tones,
        crossings=canvas.crossings(view, graph, devices),
        sums={i: "1.23 ms" for i, node in enumerate(view.nodes) if node.group >= 0},
    )
    data = {**drawing.payload(), **canvas.Editing().payload()}
    assert len(graph.ops) == 3000
    assert len(data["colours"]) == len(data["tones"]["codes"]) == len(view.nodes)
    assert len(data["crossings"]) == len(view.edges)
    assert len(json.dumps(data)) < 40_000


def test_the_script_asks_for_nothing_from_the_network():
    ours = library_script().split('"use strict";')[-1]
    for word in ("http:", "https:", "XMLHttpRequest", "import(", "eval(", "innerHTML"):
        assert word not in ours, word
    # What a move would do is asked of the studio itself, at a path without a host.
    assert re.findall(r"await fetch\((.*),", ours) == ["this.address"]
    assert re.fullmatch(r"(/[\w-]+)+", route.address())
    assert "sourceMappingURL" not in library_script()
    assert len(asset("shim_canvas.js")) < 600, "the shim travels with every edit"
    assert "export default" in asset("shim_store.js")
