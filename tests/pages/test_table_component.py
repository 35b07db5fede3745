"""The table component's Python side: what it reads from a browser."""

import pytest
import streamlit as st

from pages.ui.canvas import table_component
from pages.ui.canvas.frontend import asset

PICK = {"n": 3, "kind": "pick", "chosen": [1, 2], "left": [0], "only": False}


@pytest.fixture
def browser_says(monkeypatch):
    def say(value):
        monkeypatch.setattr(st, "session_state", {"table": {"ops": value}})

    return say


def test_events_come_in_order_and_once(browser_says):
    queue = [
        PICK,
        {"n": 2, "kind": "sort", "by": "kind"},
        PICK,
        {"n": 1, "kind": "page", "page": 4},
    ]
    browser_says({"session": "here", "queue": queue})
    events = table_component.read_events("table", session="here", after=1)
    assert [e["n"] for e in events] == [2, 3]
    assert table_component.read_events("table", session="another", after=0) == []
    assert table_component.read_events("table", session="here", after=3) == []


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {**PICK, "n": True},
        {**PICK, "n": "1"},
        {**PICK, "chosen": [-1]},
        {**PICK, "chosen": ["1"]},
        {**PICK, "left": None},
        {**PICK, "only": 1},
        {"n": 1, "kind": "sort", "by": 3},
        {"n": 1, "kind": "page", "page": -1},
        {"n": 1, "kind": "forget"},
    ],
)
def test_malformed_events_are_left_out(browser_says, entry):
    good = {"n": 9, "kind": "page", "page": 0}
    browser_says({"session": "s", "queue": [entry, good]})
    assert table_component.read_events("table", session="s", after=0) == [good]


@pytest.mark.parametrize("value", [None, [], "x", {"session": "s"}, {"session": "s", "queue": 3}])
def test_malformed_boxes_are_empty(browser_says, value):
    browser_says(value)
    assert table_component.read_events("table", session="s", after=0) == []


def test_the_shim_is_short_because_it_travels_with_every_edit():
    assert len(asset("shim_table.js")) < 600
