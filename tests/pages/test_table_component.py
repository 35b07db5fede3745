"""The table component's Python side: what it reads from a browser."""

import pytest
import streamlit as st

from pages.ui.canvas.table_component import EVENTS, Pick, Sort, Turn
from pages.ui.session import outbox
from pages.ui.shell.canvas_scripts import asset

PICK = {"n": 3, "kind": "pick", "chosen": [1, 2], "left": [0], "only": False}


@pytest.fixture
def browser_says(monkeypatch):
    def say(value):
        state = {"table": {"ops": value}, "turned": {"ops": value}, "nonce": "here"}
        monkeypatch.setattr(st, "session_state", state)

    return say


def test_events_come_in_order_and_once(browser_says):
    queue = [
        PICK,
        {"n": 2, "kind": "sort", "by": "kind"},
        PICK,
        {"n": 1, "kind": "page", "page": 4},
    ]
    browser_says({"session": "here", "queue": queue})
    outbox.applied("turned", Turn(1, page=4))
    events = outbox.unread("turned", EVENTS)
    assert events == [Sort(2, by="kind"), Pick(3, chosen=(1, 2), left=(0,), only=False)]
    outbox.applied("turned", events[-1])
    assert outbox.unread("turned", EVENTS) == []


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
    browser_says({"session": "here", "queue": [entry, good]})
    assert outbox.unread("table", EVENTS) == [Turn(9, page=0)]


@pytest.mark.parametrize(
    "value", [None, [], "x", {"session": "here"}, {"session": "here", "queue": 3}]
)
def test_malformed_boxes_are_empty(browser_says, value):
    browser_says(value)
    assert outbox.unread("table", EVENTS) == []


def test_the_shim_is_short_because_it_travels_with_every_edit():
    assert len(asset("shim_table.js")) < 600
