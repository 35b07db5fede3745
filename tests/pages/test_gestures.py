"""Gestures of the picture in the studio itself, as its pages apply them; no browser is involved."""

from functools import reduce
from operator import or_
from pathlib import Path

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import canvas
from pages.ui.canvas import gestures
from pages.ui.canvas.messages import GESTURES, Redo, Undo
from pages.ui.session import choices, current, outbox
from pages.ui.session.current import snapshot
from placement.core.placement import placement_to_text
from studio import editing
from studio.project import store
from studio.transfer.placement_file import open_file
from tests.pages.going import go

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


class Session:
    """One session of the studio on a small network, and the edits that its browser sends."""

    def __init__(self, monkeypatch, page="model"):
        self.queue = []
        monkeypatch.setattr(outbox, "unread", self._read)
        self.project = store.create()
        self.project.change(model="onnx-squeezenet", machine="null-2")
        self.app = AppTest.from_file(str(APP), default_timeout=120)
        self.app.query_params["project"] = self.project.id
        go(self.app, page)

    def _read(self, key, kinds):
        return [gesture for gesture in self.queue if gesture.n > outbox.last(key)]

    def send(self, kind, times=1, **more):
        """What the browser tells, so many times before the page is drawn again."""
        for _ in range(times):
            told = {"n": len(self.queue) + 1, "kind": kind, **more}
            self.queue.append(msgspec.convert(told, reduce(or_, GESTURES)))
        self.app.run()
        assert not self.app.exception, self.app.exception[0].message

    def search(self, text, by="name", at=-1, take_all=False):
        self.send("search", text=text, by=by, at=at, all=take_all)
        return self.app.session_state["search_answer"]

    @property
    def now(self):
        return snapshot(self.project)

    def kept(self, key, default):
        try:
            return self.app.session_state[key]
        except KeyError:
            return default

    @property
    def selection(self):
        return list(self.kept("selection", ()))

    @property
    def focus(self):
        return self.kept("focus", 0)

    def node(self, number):
        """Id and op of the n-th op."""
        return f"o{number}", self.now.model.graph.ops[number].name

    def device(self, name):
        return self.now.placement.device_of[name]


@pytest.fixture
def session(monkeypatch):
    return Session(monkeypatch)


def test_selections_are_set_added_to_and_toggled(session):
    (one, first), (two, second) = session.node(3), session.node(5)
    session.send("select", nodes=[one], how="set")
    session.send("select", nodes=[one, two], how="add")
    assert session.selection == [first, second]
    session.send("select", nodes=[one], how="toggle")
    assert session.selection == [second]
    session.send("select", nodes=[one], how="toggle")
    assert set(session.selection) == {first, second}
    session.send("widen", way="alike")
    graph = session.now.model.graph
    assert (
        set(session.selection)
        == set(canvas.related(graph, [first, second], "alike"))
        > {first, second}
    )


def test_a_search_counts_first_then_goes_to_a_match_and_opens_its_block(session):
    session.send("collapse_all")
    told = session.search("Conv", "type")
    assert (told["at"], told["note"]) == (-1, "") and told["total"] > 9
    assert session.selection == [] and session.focus == 0
    total = session.search("Conv", "type")["total"]
    assert session.search("Conv", "type", at=total)["at"] == 0, "it goes round"
    [found] = session.selection
    graph = session.now.model.graph
    assert graph.ops[graph.index[found]].kind == "Conv"
    assert session.focus == 1
    opened = frozenset(session.app.session_state["expanded"])
    assert canvas.all_visible(graph, opened, [found])
    session.search("Conv", "type", take_all=True)
    assert len(session.selection) == total and session.focus == 2
    assert session.search("nothing like it")["note"] == "No match"
    assert "no regular expression" in session.search("(", "regex")["note"]
    assert len(session.selection) == total, "what finds nothing changes nothing"


def test_pinned_ops_stay_until_they_are_let_go(session):
    node, name = session.node(4)
    home = session.device(name)
    away = next(i for i, d in enumerate(session.now.machine.devices) if d.name != home)
    session.send("select", nodes=[node], how="set")
    session.send("pin", nodes=None)
    assert session.now.pins[name] == home
    session.send("assign", nodes=[node], device=away)
    assert session.device(name) == home
    assert any("pinned" in str(w.value) for w in session.app.warning)
    session.send("unpin", nodes=[node])
    # Once it is let go, that it stayed says nothing any more.
    assert not any("pinned" in str(w.value) for w in session.app.warning)
    session.send("assign", nodes=None, device=away)
    assert session.device(name) != home and not session.now.pins
    session.send("undo", times=3)
    assert session.device(name) == home and not session.now.pins
    session.send("redo", times=3)
    assert session.device(name) != home


def test_a_device_that_is_gone_by_now_changes_nothing(session):
    before = dict(session.now.placement.device_of)
    session.send("assign", nodes=["o3"], device=17)
    assert dict(session.now.placement.device_of) == before


def test_all_of_the_page_is_drawn_where_undo_or_redo_show_another_placement(monkeypatch):
    """A run that was picked is one of the placement before, and is not shown beside another."""
    project = store.create()
    project.change(model="onnx-squeezenet", machine="null-2")
    monkeypatch.setattr(choices, "project", lambda: project)
    monkeypatch.setattr(choices, "may_write", lambda: True)
    monkeypatch.setattr(choices, "renew_claim", lambda opened: True)
    drawn, runs, waiting = [], [], []
    monkeypatch.setattr(choices, "show_run", runs.append)
    monkeypatch.setattr(current.st, "rerun", lambda: drawn.append("page"))
    monkeypatch.setattr(current.fragments, "only", lambda *names: drawn.append(names[0]))
    monkeypatch.setattr(outbox, "unread", lambda key, kinds: waiting)
    monkeypatch.setattr(outbox, "applied", lambda key, gesture: None)

    def told(kind):
        drawn.clear()
        runs.clear()
        waiting[:] = [kind(n=1)]
        gestures.on_ops()
        return snapshot(project).named.name, drawn[0], runs

    now = snapshot(project)
    first, content = now.named.name, placement_to_text(now.placement).encode()
    open_file(now, "mine.json", content)
    for _ in range(2):
        assert told(Undo) == (first, "page", [""])
        assert told(Redo) == ("mine", "page", [""])
    # An edit of it goes to a copy, which what is picked stays beside, as it does with its undo.
    now = snapshot(project)
    name = now.model.graph.ops[3].name
    home = now.placement.device_of[name]
    editing.edit(now, [name], next(d.name for d in now.machine.devices if d.name != home))
    assert told(Undo) == ("manual", "canvas", [])
    assert told(Redo) == ("manual", "canvas", [])


def test_the_buttons_of_the_picture_call_a_step_as_the_list_of_changes_does(session):
    _, name = session.node(3)
    home = session.device(name)
    away = next(d.name for d in session.now.machine.devices if d.name != home)
    editing.edit(session.now, [name], away)
    now = session.now
    called = editing.label(now, now.history.done[-1])
    assert called != now.history.done[-1].label
    assert gestures.steps(now) == (called, "")
    editing.undo(now)
    assert gestures.steps(session.now) == ("", called)
