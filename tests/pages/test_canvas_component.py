"""The component's Python side: what it reads from a browser, and the script it sends."""

import pytest
import streamlit as st

from pages.ui import canvas
from pages.ui.canvas.frontend import canvas_shim, library_script, store_shim
from tests.pages.graphs import blocks


@pytest.fixture
def browser_says(monkeypatch):
    """Put a value where Streamlit keeps the component's state."""

    def say(value):
        monkeypatch.setattr(st, "session_state", {"canvas": {"ops": value}})

    return say


def test_edits_come_in_order_and_once(browser_says):
    queue = [
        {"n": 7, "kind": "assign", "nodes": ["o1"], "device": 2},
        {"n": 5, "kind": "select", "nodes": ["o1", "s2"]},
        {"n": 7, "kind": "assign", "nodes": ["o1"], "device": 2},
        {"n": 9, "kind": "undo", "extra": "dropped"},
    ]
    browser_says({"session": "here", "queue": queue})
    edits = canvas.read_ops("canvas", session="here", after=5)
    assert edits == [
        {"n": 7, "kind": "assign", "nodes": ["o1"], "device": 2},
        {"n": 9, "kind": "undo"},
    ]
    assert canvas.read_ops("canvas", session="another", after=0) == []
    assert canvas.read_ops("canvas", session="here", after=9) == []


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
        {"n": 1, "kind": "toggle"},
    ],
)
def test_malformed_edits_are_left_out(browser_says, entry):
    good = {"n": 2, "kind": "redo"}
    browser_says({"session": "s", "queue": [entry, good]})
    assert canvas.read_ops("canvas", session="s", after=0) == [good]


@pytest.mark.parametrize("value", [None, [], "x", {"session": "s"}, {"session": "s", "queue": 3}])
def test_malformed_boxes_are_empty(browser_says, value):
    browser_says(value)
    assert canvas.read_ops("canvas", session="s", after=0) == []


def test_paint_of_another_view_is_refused():
    graph = blocks()
    closed, opened = canvas.build_view(graph, frozenset()), canvas.build_view(graph, {"s1"})
    paint = canvas.paint(closed, [0] * len(graph.ops), 1)
    with pytest.raises(ValueError, match="another view"):
        canvas.draw_canvas(opened, paint, devices=canvas.device_keys(["cpu"]))


def test_the_script_asks_for_nothing_from_the_network():
    ours = library_script().split('"use strict";')[-1]
    for word in ("http:", "https:", "fetch(", "XMLHttpRequest", "import(", "eval(", "innerHTML"):
        assert word not in ours, word
    assert "sourceMappingURL" not in library_script()
    assert len(canvas_shim()) < 600, "the shim travels with every edit"
    assert "export default" in store_shim()
