"""Placements from files on the pages: beside the menu of placements, and named at the start."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

import placement as pl
from pages.ui.panels.placement_menu import OPEN
from placement.core.placement import placement_to_text
from placement.files import named
from studio import editing, lesson
from studio.project import store
from studio.project.facts import FILE
from tests.pages.going import go
from tests.pages.test_pages import (
    APP,
    checked,
    menu,
    open_id,
    opened,
    own_home,
    snapshot,
    texts,
    uploader,
)
from tests.workloads import diamond

__all__ = ["own_home"]


def give(app, content, name="mine.json"):
    """Drop a file on the field beside the menu of placements."""
    content = content if isinstance(content, bytes) else content.encode()
    return checked(uploader(app, OPEN).set_value((name, content, "application/json")).run())


def is_marked_up(text):
    """Whether a text of a file is anything but letters: each sign stands behind a backslash."""
    return any(sign in re.sub(r"\\.", "", text) for sign in ("<b", "<img", "<script", "**qq"))


@pytest.mark.parametrize("page", ["studio", pytest.param("model", marks=pytest.mark.only_thorough)])
def test_a_placement_is_opened_beside_the_menu_of_placements(page):
    app, project = opened(page, model="onnx-squeezenet", machine="null-2")
    now = snapshot(project)
    placed = pl.place(now.problem, "round_robin").placement
    give(app, placement_to_text(placed))
    now = snapshot(project)
    assert (now.named.name, now.named.made_by, now.placement) == ("mine", FILE, placed)
    assert menu(app, "Placement").value == "mine"
    assert "mine is the placement now, predicted to take" in texts(app)
    # The field is an empty one, so that the same file can be opened once more.
    assert uploader(app, OPEN).value is None
    checked(app.run())
    assert len(snapshot(project).shelf.items) == 2
    checked(menu(app, "Placement").set_value("heft").run())
    assert snapshot(project).named.name == "heft"


def test_what_is_wrong_is_told_and_the_placement_stays():
    app, project = opened("studio", model="onnx-squeezenet", machine="null-2")
    before = snapshot(project)
    away = dict.fromkeys(before.placement.device_of, "cuda:0")
    for content, said in (
        (b"", "was not opened: it is empty"),
        (b"<html>", "was not opened: it is not valid JSON"),
        (json.dumps({**before.placement.to_json(), "device_of": away}), "device 'cuda:0'"),
        (json.dumps({"device_of": {"<script>alert(1)</script>": "null:0"}}), "alert(1)"),
    ):
        give(app, content, "<img src=x>.json")
        shown = [str(error.value) for error in app.error]
        assert any(said in text.replace("\\", "") for text in shown), shown
        assert not any(is_marked_up(text) for text in shown), shown
        assert snapshot(project).shelf.items == before.shelf.items
    assert snapshot(project).placement == before.placement


def test_a_hostile_name_is_text_in_every_place():
    app, project = opened("studio", model="onnx-squeezenet", machine="null-2")
    now = snapshot(project)
    name = "<b>x **qq** all on null:0"
    give(app, placement_to_text(editing.all_on(now, "null:1")), f"../{name}.json")
    assert snapshot(project).named.name == name
    for page in ("compare", "run", "model"):
        checked(go(app, page))
        written = [str(e.value) for kind in (app.markdown, app.caption, app.success) for e in kind]
        assert not any(is_marked_up(text) for text in written), page


def test_a_session_that_only_looks_cannot_open_one():
    app, project = opened("studio", model="onnx-squeezenet", machine="null-2")
    second = AppTest.from_file(str(APP), default_timeout=120)
    second.query_params["project"] = project.id
    checked(go(second, "studio"))
    assert uploader(second, OPEN).disabled and not uploader(app, OPEN).disabled


def test_a_lesson_that_leaves_the_work_to_a_person_has_no_field_for_it():
    app = AppTest.from_file(str(APP), default_timeout=120)
    checked(go(app, "lessons"))
    checked(next(b for b in app.button if b.label == "Begin").click().run())
    checked(go(app, "studio"))
    assert lesson.hides(snapshot(store.find(open_id(app))), "methods")
    assert OPEN not in [field.label for field in app.get("file_uploader")]


def test_a_placement_named_at_the_start_is_opened_with_its_model(tmp_path, monkeypatch):
    model, file = tmp_path / "small.json", tmp_path / "mine.json"
    model.write_text(json.dumps(diamond()))
    problem = pl.load(str(model)).problem
    placed = pl.place(problem, "single").placement
    file.write_text(placement_to_text(placed))
    words, variables = named.variables(["small.json"], tmp_path, "mine.json")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for _ in range(2):
        app = AppTest.from_file(str(APP), default_timeout=120)
        app.query_params["project"] = store.NEW
        app.query_params[named.QUERY] = words[0]
        checked(app.run())
        now = snapshot(store.find(open_id(app)))
        assert now.model.graph.name == "small" and now.placement == placed
        assert [i.name for i in now.shelf.items if i.made_by == FILE] == ["mine"]
        assert "mine is the placement now" in texts(app)
    file.write_text("{}")
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = store.NEW
    app.query_params[named.QUERY] = words[0]
    checked(app.run())
    assert any("mine.json was not opened" in str(e.value).replace("\\", "") for e in app.error)
