"""Models that take long to open: the page says so, and opening them can be called off."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from onnx import TensorProto, helper
from streamlit.runtime import fragment
from streamlit.testing.v1 import AppTest

import placement as pl
from pages.ui.session import cache, choices
from pages.ui.shell import model_request as wanted
from pages.ui.shell import opening_wait
from placement import loaders
from placement.core.verb_options import CompareOptions, PlaceOptions
from studio import model_reader
from studio.jobs import command_line
from studio.project import store
from tests.instances import canonical_file
from tests.pages.going import go
from tests.pages.test_pages import APP, checked, opened, snapshot, texts, uploader
from tests.studio.test_model_reader import PATIENCE_S, gate, key
from tests.studio.test_standings import own_home

__all__ = ["gate", "own_home"]


def test_opening_a_sample_can_be_called_off(gate, monkeypatch):
    monkeypatch.setattr(opening_wait, "QUICK_S", 0.05)
    monkeypatch.setattr(opening_wait.cache, "is_open", lambda key: key[0] != "onnx-squeezenet")
    project = store.create()
    project.change(touch=False, model="onnx-alexnet", machine="null-2")
    app = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
    app.query_params["project"] = project.id
    checked(go(app, "model"))
    app.selectbox(key=f"sample-{project.id}-onnx-alexnet").set_value("onnx-squeezenet")
    threading.Timer(1.5, gate.set).start()
    checked(app.run())
    assert store.find(project.id).settings.model == "onnx-squeezenet"
    assert "onnx-squeezenet (66 ops)" in texts(app)
    assert not any(b.label == "Cancel" for b in app.button)


def test_a_page_that_waited_has_its_parts_where_others_have_them(monkeypatch):
    """Streamlit knows a fragment by where it stands; what is asked of one that moved is lost."""
    places, place_of = [{}], fragment._make_fragment_identity

    def noted(function, **where):
        found = place_of(function, **where)
        places[-1][found.definition_id] = found.fragment_id
        return found

    monkeypatch.setattr(fragment, "_make_fragment_identity", noted)
    waited = []
    monkeypatch.setattr(opening_wait, "QUICK_S", 0.0)
    monkeypatch.setattr(opening_wait.cache, "is_open", lambda key: bool(waited))
    project = store.create()
    project.change(touch=False, model="onnx-alexnet", machine="null-2")
    app = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
    app.query_params["project"] = project.id
    checked(app.run())
    waited.append(True)
    places.append({})
    checked(app.run())
    first, second = places
    assert len(second) > 8 and {name: first[name] for name in second} == second


@pytest.fixture
def session(monkeypatch):
    """One session on a project of its own: what it keeps, and the projects that it was shown."""
    project = store.create()
    project.change(touch=False, model="onnx-alexnet", machine="null-2")
    kept, shown, put = {}, [], {}
    replaced = {
        "project": lambda: project,
        "renew_claim": lambda opened: True,
        "kept": kept.get,
        "keep": kept.__setitem__,
        "select": lambda ops: None,
        "show_project": shown.append,
        "put": put.__setitem__,
    }
    for name, value in replaced.items():
        monkeypatch.setattr(choices, name, value)
    return SimpleNamespace(project=project, shown=shown, put=put)


def test_what_was_asked_for_leaves_the_open_model_alone_until_it_is_there(session, gate):
    wanted.ask(wanted.sample("onnx-squeezenet"))
    under_way = model_reader.start(wanted.current().key)
    assert session.project.settings.model == "onnx-alexnet"
    gate.set()
    assert under_way.done.wait(PATIENCE_S)
    opening_wait.wait(session.project)
    assert session.project.settings.model == "onnx-squeezenet" and wanted.current() is None


def test_calling_it_off_keeps_the_model_that_is_open(session, gate):
    wanted.ask(wanted.sample("onnx-squeezenet"))
    under_way = model_reader.start(wanted.current().key)
    opening_wait.cancel()
    assert wanted.current() is None and not under_way.is_wanted
    assert session.project.settings.model == "onnx-alexnet" and not session.shown
    assert list(session.put.values()) == ["onnx-alexnet", ""], "the menu and the field of paths"


def test_a_later_slow_opening_never_leads_back_to_an_older_model(session, gate):
    gate.set()
    wanted.ask(wanted.sample("onnx-squeezenet"))
    opening_wait.wait(session.project)
    opening_wait.leave(key("onnx-squeezenet"))
    assert session.project.settings.model == "onnx-squeezenet"
    assert [p.id for p in session.shown] != [session.project.id] and len(session.shown) == 1


def test_an_upload_that_is_called_off_leaves_nothing_behind(session):
    session.project.keep_upload("own.onnx", b"the open one")
    wanted.ask_upload(session.project, "own.onnx", three_ops())
    incoming = Path(wanted.current().source)
    assert incoming.read_bytes() == three_ops()
    wanted.forget()
    assert not incoming.exists() and wanted.current() is None
    assert (session.project.folder / "model" / "own.onnx").read_bytes() == b"the open one"


def test_two_sizes_set_one_after_the_other_are_both_wanted(session):
    wanted.ask_size(session.project, "batch", 4)
    wanted.ask_size(session.project, "length", 7)
    assert wanted.current().dims == {"batch": 4, "length": 7}


def three_ops() -> bytes:
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], f"relu{i}") for i in range(3)]
    ends = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [4]) for v in ("v0", "v3")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return model.SerializeToString()


def test_an_uploaded_model_is_read_once_and_is_where_it_was_put(monkeypatch):
    calls, load = [], pl.load
    monkeypatch.setattr(model_reader.pl, "load", lambda s, **k: calls.append(s) or load(s, **k))
    project = store.create()
    project.change(touch=False, model="onnx-alexnet", machine="null-2")
    app = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
    app.query_params["project"] = project.id
    checked(go(app, "model"))
    calls.clear()
    given = ("own.onnx", three_ops(), "application/octet-stream")
    checked(uploader(app, "File (.json, .onnx, .pt2)").set_value(given).run())
    assert "own (3 ops)" in texts(app)
    assert len(calls) == 1
    opened = cache.model(project.source, ())
    assert len(calls) == 1 and opened.executable.path == project.folder / "model" / "own.onnx"
    here = loaders.load(project.source).executable
    assert len(here.model_proto().graph.node) == 3
    assert opened.executable.content_hash == here.content_hash


def test_a_typed_path_is_waited_for_like_any_other_model(tmp_path, monkeypatch):
    monkeypatch.setattr(opening_wait, "QUICK_S", 0.0)
    (tmp_path / "typed.onnx").write_bytes(three_ops())
    starts, start = [], model_reader.start
    monkeypatch.setattr(model_reader, "start", lambda key: starts.append(key[0]) or start(key))
    project = store.create()
    project.change(touch=False, model="onnx-alexnet", machine="null-2")
    app = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
    app.query_params["project"] = project.id
    checked(go(app, "model"))
    path = str(tmp_path / "typed.onnx")
    checked(app.sidebar.text_input(key="path").set_value(path).run())
    assert path in starts and "typed (3 ops)" in texts(app)
    assert project.settings.model == path and app.sidebar.text_input(key="path").value == ""


def test_a_file_with_a_machine_of_its_own_is_placed_on_it_after_another_machine(tmp_path):
    (tmp_path / "cut.json").write_text(json.dumps(canonical_file()))
    app, project = opened("model", model="onnx-squeezenet", machine="null-2")
    project.change(touch=True)
    checked(app.sidebar.text_input(key="path").set_value(str(tmp_path / "cut.json")).run())
    made = next(found for found in store.recent() if found.id != project.id)
    now = snapshot(made)
    assert now.machine == now.model.problem.machine
    path = now.shelf.path(now.named.name)
    for argv in (
        command_line.place(now, PlaceOptions()),
        command_line.compare(now, CompareOptions(placers=("heft",))),
        command_line.simulate(now, path),
    ):
        assert "--machine" not in argv and "--lanes" not in argv
    # The machine that was chosen comes back with the next model that needs one.
    assert made.settings.machine == project.settings.machine == "null-2"


def test_a_file_with_its_own_machine_in_an_untouched_project_leaves_the_chosen_machine(tmp_path):
    from placement.__main__ import main

    (tmp_path / "cut.json").write_text(json.dumps(canonical_file()))
    project = store.create()
    project.change(touch=False, model="onnx-squeezenet", lanes=3)
    app = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
    app.query_params["project"] = project.id
    checked(go(app, "model"))
    checked(app.sidebar.text_input(key="path").set_value(str(tmp_path / "cut.json")).run())
    assert project.settings.model.endswith("cut.json") and project.settings.lanes == 3
    now = snapshot(project)
    argv = command_line.simulate(now, now.shelf.path(now.named.name))
    assert main(argv) == 0
    project.change(touch=False, model_kind="sample", model="onnx-squeezenet")
    assert "--lanes" in command_line.place(snapshot(project), PlaceOptions())


def test_the_uploader_names_what_the_loaders_read(monkeypatch):
    edges = SimpleNamespace(name="edges", summary="a list of edges", suffixes=(".edges", ".pkl"))
    edges.refused = (".pkl",)
    every = (*loaders.loaders(), edges)
    monkeypatch.setattr(loaders, "loaders", lambda: every)
    app = checked(go(AppTest.from_file(str(APP), default_timeout=PATIENCE_S), "model"))
    found = uploader(app, "File (.edges, .json, .onnx, .pt2)")
    assert "an ONNX model" in found.help and "a list of edges" in found.help
