"""Questions about moves: only of a session's own project, the newest alone, whatever is sent."""

import concurrent.futures
import sys
import threading

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import placement as pl
from pages.ui.consequence import questions, route
from pages.ui.consequence.questions import Question
from pages.ui.panels import timeline_component
from pages.ui.session import choices
from pages.ui.session.current import snapshot
from pages.ui.timeline import timelines
from studio import consequence
from studio.consequence import Change
from studio.project import pins
from tests.studio.test_order_kept import again, project_of, put


@pytest.fixture
def now(tmp_path, monkeypatch):
    """A project that two sessions have been shown, "one" with two ops selected."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(questions, "askers", type(questions.askers)())
    project = project_of("canonical", tmp_path, "latency")
    put(project, pl.place(snapshot(project).problem, "heft").placement, "heft")
    shown = snapshot(project)
    for name, selection in (("two", ()), ("one", ("n4", "n6"))):
        monkeypatch.setattr(choices, "nonce", lambda name=name: name)
        monkeypatch.setattr(choices, "selection", lambda selection=selection: selection)
        questions.show(shown, timelines.panels(shown, None)[0])
    return shown


def test_ops_are_those_of_nodes_of_a_bar_or_of_the_selection(now):
    panel = timelines.panels(now, None)[0]
    number = next(i for i, bar in enumerate(panel.bars) if bar.ops == ("n4",))
    bar = questions.Dragged("drop", panel.key, panel.version, number)
    node = f"o{now.model.graph.index['n4']}"
    p3 = now.machine.index["P3"]
    one, both = (consequence.of_move(now, ops, "P3") for ops in (("n4",), ("n4", "n6")))
    given = {
        "nodes": (Question("one", 1, p3, nodes=(node,)), one),
        "selection": (Question("one", 2, p3), both),
        "bar": (Question("one", 3, p3, bar=bar), None),
        "all": (Question("one", 4, p3, bar=msgspec.structs.replace(bar, all=True)), None),
    }
    for what, (question, expected) in given.items():
        answer = questions.answer(question)
        assert answer["about"] == ("2 ops to P3" if what in ("selection", "all") else "n4 to P3")
        if expected is not None:
            assert answer["text"] == expected.change.text
            assert answer["bars"] == expected.bars.to_data()
    stale = msgspec.structs.replace(bar, version="of before")
    for nothing in (
        Question("one", 5, p3, bar=stale),
        Question("one", 6, p3, bar=msgspec.structs.replace(bar, bar=10_000)),
        Question("one", 7, 99),
        Question("two", 1, p3),
        Question("somebody else", 1, p3, nodes=(node,)),
        Question("one", 8, p3, nodes=("nothing",)),
    ):
        assert questions.answer(nothing) is None, nothing


def test_a_bar_along_its_lane_foretells_the_order_that_a_drop_there_makes(now, monkeypatch):
    """HEFT has n4, n6, n9, n10 on P2 and n1, n3, n5, n7 on P3; what is selected there stays."""
    monkeypatch.setattr(choices, "renew_claim", lambda project: True)
    monkeypatch.setattr(choices, "select", lambda ops: None)
    monkeypatch.setattr(choices, "selection", lambda: ("n6", "n3"))
    monkeypatch.setattr(timeline_component, "attempt", lambda now, change: change(now))
    panel = timelines.panels(now, None)[0]
    questions.show(now, panel)
    lane = [bar.ops if panel.rows[bar.row].sender is None else () for bar in panel.bars]
    n4, n6 = lane.index(("n4",)), lane.index(("n6",))
    p2 = now.machine.index["P2"]
    bar = questions.Dragged("order", panel.key, panel.version, n6, all=True, before=n4)
    answer = questions.answer(Question("one", 1, p2, bar=bar))
    drop = msgspec.structs.replace(bar, kind="drop")
    assert questions.answer(Question("one", 2, p2, bar=drop))["about"] == "n3 to P2"

    order = timeline_component.Order(1, panel.key, panel.version, n6, all=True, before=n4)
    timeline_component.put(now, order, panel)
    after = again(now.project)
    device_of = after.placement.device_of
    assert device_of == now.placement.device_of
    lanes = [[op for op in after.placement.order if device_of[op] == d] for d in ("P2", "P3")]
    assert lanes == [["n6", "n4", "n9", "n10"], ["n1", "n3", "n5", "n7"]]
    change = Change(now.simulated.value, after.simulated.value, now.problem.unit)
    assert answer["about"] == "n6 before n4" and answer["text"] == change.text


def test_the_newest_question_wins(now, monkeypatch):
    """While the first is worked on, a second and a third come: the second is never looked at."""
    begun, go_on, asked = threading.Event(), threading.Event(), []
    real = consequence.of_move

    def slow(shown, ops, device, before=None):
        asked.append(device)
        begun.set()
        assert go_on.wait(10)
        return real(shown, ops, device, before)

    monkeypatch.setattr(consequence, "of_move", slow)
    answers = {}

    def ask(n):
        answers[n] = questions.answer(Question("one", n, n - 1))

    first = threading.Thread(target=ask, args=(1,))
    first.start()
    assert begun.wait(10)
    others = [threading.Thread(target=ask, args=(n,)) for n in (2, 3)]
    for thread in others:
        thread.start()
        while questions.askers["one"].newest < (2 if thread is others[0] else 3):
            pass
    go_on.set()
    for thread in (first, *others):
        thread.join(10)
    names = [d.name for d in now.machine.devices]
    assert asked == [names[0], names[2]] and answers[2] is None and answers[3] is not None
    assert questions.answer(Question("one", 2, 0)) is None


def test_only_the_sessions_drawn_last_may_ask(now, monkeypatch):
    monkeypatch.setattr(questions, "MOST_SESSIONS", 2)
    monkeypatch.setattr(choices, "nonce", lambda: "three")
    questions.show(now)
    assert list(questions.askers) == ["one", "three"]


def test_sessions_that_have_ended_are_forgotten(now, monkeypatch):
    monkeypatch.setattr(choices, "is_ended", lambda session: session.endswith("/two"))
    assert list(questions.askers) == ["two", "one"]
    questions.show(now)
    assert list(questions.askers) == ["one"]


def test_no_answer_opens_a_file_of_the_project(now, monkeypatch):
    """Not even the first one about a project that was drawn just now, with pins and orders."""
    pins.pin_order(now, ("n4",))
    pins.pin(again(now.project), ("n9",))
    now, panel = again(now.project), timelines.panels(now, None)[0]
    questions.show(now, panel)
    opened: list[str] | None = []
    folder = str(now.project.folder)

    def hear(event, args):
        # An audit hook cannot be taken away again, so it hears only while there is a list.
        if opened is not None and event == "open" and str(args[0]).startswith(folder):
            opened.append(str(args[0]))

    sys.addaudithook(hear)
    lane = [bar.ops if panel.rows[bar.row].sender is None else () for bar in panel.bars]
    held, before = lane.index(("n3",)), lane.index(("n5",))
    bar = questions.Dragged("order", panel.key, panel.version, held, before=before)
    drop = msgspec.structs.replace(bar, kind="drop", before=lane.index(("n6",)))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for n, given in enumerate((None, bar, drop)):
            question = Question("one", n, n, bar=given)
            assert pool.submit(questions.answer, question).result() is not None
    assert opened == []
    now.shelf.pins_path.read_text()
    heard, opened = opened, None
    assert heard == [str(now.shelf.pins_path)]


def test_the_address_answers_json_and_refuses_the_rest(now):
    with TestClient(Starlette(routes=[route.route()])) as client:

        def post(content):
            return client.post(route.address(), content=content)

        asked = {"session": "one", "n": 1, "device": now.machine.index["P3"]}
        answer = post(msgspec.json.encode(asked))
        assert answer.status_code == 200 and answer.json()["about"] == "2 ops to P3"
        assert post(msgspec.json.encode({**asked, "session": "none"})).status_code == 204
        for wrong in ({**asked, "device": -1}, {**asked, "more": 1}, {"n": 1}, [], "x"):
            assert post(msgspec.json.encode(wrong)).status_code == 400, wrong
        assert post(b"\xff{").status_code == 400
        assert post(b" " * (route.MOST_BYTES + 1)).status_code == 413
        assert client.get(route.address()).status_code == 405
