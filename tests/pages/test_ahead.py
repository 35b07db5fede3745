"""What is begun when a browser asks for a page: what it draws, and nothing is written."""

import threading

import msgspec
import pytest

import placement as pl
from pages.ui.canvas import gestures
from pages.ui.desk import ahead
from pages.ui.session import cache
from pages.ui.session.current import snapshot
from studio.project.facts import Facts
from studio.snapshot import first_placer
from tests.studio.test_order_kept import project_of

GOING = ((b"sec-fetch-dest", b"document"),)


def scope(query, **changed):
    given = {"type": "http", "method": "GET", "query_string": query, "headers": GOING}
    return {**given, **changed}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "home"))
    return project_of("canonical", tmp_path, "latency")


def files(project):
    return {p: p.read_bytes() for p in sorted(project.folder.rglob("*")) if p.is_file()}


def test_the_page_finds_everything_there(project, monkeypatch):
    before = files(project)
    ahead.prepare(project.id, "now")
    assert files(project) == before
    for verb in ("load", "place", "simulate", "make_problem"):
        monkeypatch.setattr(pl, verb, None)
    now = snapshot(project)
    placed = cache.placed(now.problem, first_placer(now.problem))
    assert cache.simulated(now.problem, placed.placement).value > 0
    assert cache.path_steps(now.problem, placed.placement)


def test_the_first_sight_is_of_the_placement_that_the_session_will_write(project):
    seen = msgspec.json.decode(ahead.prepare(project.id, "at first"))
    now = snapshot(project)
    placed = cache.placed(now.problem, first_placer(now.problem)).placement
    nodes, devices = seen["view"]["nodes"], [d["name"] for d in seen["data"]["devices"]]
    assert devices == [d.name for d in now.machine.devices]
    colour_of = dict(zip((n["id"] for n in nodes), seen["data"]["colours"], strict=True))
    for i, op in enumerate(now.model.graph.ops):
        if f"n{i}" in colour_of:
            assert devices[int(colour_of[f"n{i}"])] == placed.device_of[op.name]
    assert sum(seen["data"]["counts"]) == len(now.model.graph.ops)
    assert seen["data"]["readOnly"] and not seen["data"]["session"]


@pytest.mark.parametrize(
    ("form", "is_seen"),
    [
        ({"colour-by": "device", "hatch": True, "dock-tab": "Board"}, True),
        ({"colour-by": "kind"}, False),
        ({"dock-tab": "Steps"}, False),
    ],
)
def test_what_a_session_would_draw_otherwise_is_not_drawn_before_it(project, form, is_seen):
    project.change(form={**project.settings.form, **form})
    seen = ahead.first_sight(project.id)
    assert (seen is not None) == is_seen
    if seen is not None:
        assert msgspec.json.decode(seen)["data"]["hatched"]


def test_a_changed_placement_is_seen_by_who_comes_next(project):
    first = ahead.first_sight(project.id)
    now = snapshot(project)
    placed = cache.placed(now.problem, "single").placement
    now.shelf.add("single", placed, "single", Facts())
    seen = msgspec.json.decode(ahead.first_sight(project.id))["data"]["counts"]
    assert seen != msgspec.json.decode(first)["data"]["counts"]
    assert sorted(seen)[-1] == len(now.model.graph.ops)


def test_a_model_that_takes_long_is_drawn_by_its_session(project, monkeypatch):
    class Reading:
        done = threading.Event()

    monkeypatch.setattr(ahead, "PATIENCE_S", 0.0)
    monkeypatch.setattr(cache, "is_open", lambda key: False)
    monkeypatch.setattr("studio.model_reader.start", lambda key: Reading)
    assert ahead.first_sight(project.id) is None
    monkeypatch.undo()


def test_only_who_goes_to_the_page_of_a_project_begins_it():
    assert ahead.asked_for(scope(b"project=ab12&present=")) == "ab12"
    assert ahead.asked_for(scope(b"present=")) == ""
    assert ahead.asked_for(scope(b"project=ab12", method="POST")) == ""
    assert ahead.asked_for(scope(b"project=ab12", headers=())) == ""
    assert ahead.asked_for({"type": "websocket"}) == ""


@pytest.mark.parametrize("what", ["none", "../..", "broken"])
def test_what_fails_is_left_for_the_page_to_say(project, what, monkeypatch, capfd):
    def refuse(*_):
        raise ValueError("this model cannot be opened")

    monkeypatch.setattr(ahead, "prepare", refuse)
    for _ in range(2 * ahead.MOST_AT_ONCE):
        assert ahead.places.acquire(blocking=False)
        ahead.begin(project.id if what == "broken" else what)
    assert capfd.readouterr().err == ""


def test_which_blocks_are_open_is_decided_where_a_session_decides_it(project, monkeypatch):
    asked, found = [], gestures.opened_or_first

    def noted(graph, chosen, *, presented):
        asked.append((graph.fingerprint, chosen, presented))
        return found(graph, chosen, presented=presented)

    monkeypatch.setattr(gestures, "opened_or_first", noted)
    graph = snapshot(project).model.graph.fingerprint
    ahead.prepare(project.id, "none chosen")
    project.change(form={**project.settings.form, "opened": {"graph": graph, "groups": ["s1"]}})
    ahead.prepare(project.id, "one chosen")
    assert asked == [(graph, None, False), (graph, frozenset({"s1"}), False)]
