"""The Projects page, what a bare address opens, and the line that says what to do next."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.shell import messages
from studio.project import claim, store, trash
from studio.transfer import archive
from tests.pages.going import go
from tests.pages.test_pages import APP, checked, open_id, opened, texts
from tests.thorough import either


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def bare():
    """A visit of the bare address."""
    return checked(AppTest.from_file(str(APP), default_timeout=120).run())


def press(app, label, key=""):
    found = [b for b in app.button if b.label == label and str(b.key or "").startswith(key)]
    return checked(found[0].click().run())


def worked_on(name):
    project = store.create(name)
    project.change(model="onnx-squeezenet")
    return project


def test_a_bare_address_opens_what_was_worked_on_last():
    store.create("looked at")
    worked_on("first")
    last = worked_on("last")
    assert open_id(bare()) == last.id


def test_a_bare_address_leaves_a_project_of_another_session_alone():
    first, last = worked_on("first"), worked_on("last")
    app = bare()
    assert open_id(app) == last.id and claim.holder(last.folder) is not None
    assert open_id(bare()) == first.id
    third = open_id(bare())
    assert third not in (first.id, last.id)
    assert not store.find(third).settings.touched


def test_a_project_that_nobody_worked_on_is_as_good_as_a_new_one():
    unused = store.create()
    assert open_id(bare()) == unused.id


def test_an_address_can_ask_for_a_new_project():
    kept = worked_on("kept")
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = store.NEW
    checked(app.run())
    assert open_id(app) not in (kept.id, store.NEW)
    first = open_id(app)
    assert open_id(checked(app.run())) == first


def test_a_deleted_project_is_offered_back_and_comes_back():
    other = worked_on("other")
    app, project = opened("projects", model="onnx-squeezenet")
    press(app, "Delete", f"delete-{project.id}")
    assert store.find(project.id) is None and open_id(app) == other.id
    assert "Deleted: onnx-inception-v2" in texts(app)
    press(app, "Undo")
    assert store.find(project.id) is not None and trash.listed() == ()
    assert "is back" in texts(app)


def test_the_trash_lists_restores_and_is_emptied():
    thrown = [trash.throw_away(worked_on(name)) for name in ("one", "two")]
    app, _ = opened("projects")
    assert [e.label for e in app.expander if "Trash" in e.label] == ["Trash (2)"]
    press(app, "Restore", f"restore-{thrown[0].id}")
    assert [t.name for t in trash.listed()] == ["two"]
    press(app, "Remove for good")
    assert trash.listed() == () and store.find(thrown[0].id) is not None


def test_the_address_of_a_deleted_project_says_where_it_is():
    thrown = trash.throw_away(worked_on("mine"))
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = thrown.id
    assert "'mine' is in the trash" in texts(checked(app.run()))


def test_any_project_is_renamed_and_duplicated_from_the_list():
    other = worked_on("other")
    app, _ = opened("projects")
    field = next(t for t in app.text_input if str(t.key).startswith(f"rename-{other.id}"))
    checked(field.set_value("  better ").run())
    assert other.settings.name == "better"
    press(app, "Duplicate", f"copy-{other.id}")
    assert {p.settings.name for p in store.recent()} == {"better", "better (copy)"}


def test_a_project_of_another_session_cannot_be_deleted_or_renamed():
    _, project = opened("place")
    second = AppTest.from_file(str(APP), default_timeout=120)
    checked(second.run())
    checked(go(second, "projects"))
    project.change()
    checked(second.run())
    delete = next(b for b in second.button if b.key == f"delete-{project.id}")
    assert delete.disabled and "open in another session" in texts(second)


def test_many_projects_are_found_by_name():
    for number in range(25):
        worked_on(f"number {number}")
    app, _ = opened("projects")
    assert "and 6 older ones" in texts(app)

    def find(text):
        field = next(t for t in app.text_input if t.label == "Find a project")
        return checked(field.set_value(text).run())

    find("number 0")
    assert "number 0" in texts(app) and "number 7" not in texts(app)
    find("nothing like it")
    assert "No project has that in its name" in texts(app)


def upload(app, name, content):
    field = next(u for u in app.get("file_uploader") if u.label == "Project file")
    return checked(field.set_value((name, content, "application/zip")).run())


def test_an_imported_project_is_opened():
    content = archive.pack(worked_on("from afar"))
    app, project = opened("projects")
    upload(app, "x.zip", content)
    assert open_id(app) != project.id
    # One of that name is here: the very one that was packed.
    assert store.find(open_id(app)).settings.name == "from afar (imported)"
    assert "Imported 'from afar (imported)'" in texts(app)


def test_a_bad_project_file_is_one_sentence():
    app, project = opened("projects")
    upload(app, "bad.zip", b"no zip")
    assert [e.value.replace("\\", "") for e in app.error] == [
        "bad.zip was not imported: it is no zip file, or a damaged one."
    ]
    assert open_id(app) == project.id


def next_steps(app):
    return [str(e.proto.label) for e in app.get("page_link") if e.proto.label] + [
        str(c.value) for c in app.caption if "arrow" in str(c.value)
    ]


def test_every_page_says_what_to_do_next_and_that_follows_from_what_was_done():
    app, project = opened("model")
    for page, said in (
        ("model", "Open yours on the left"),
        ("devices", "Measure"),
        ("place", "Press Place"),
    ):
        if page != "model":
            checked(go(app, page))
        assert any(said in step for step in next_steps(app)), next_steps(app)
    project.change(machine="null-2")
    assert not any("Press Place" in step for step in next_steps(checked(app.run())))
    project.change(machine="local")
    assert any("estimates so far" in step for step in next_steps(checked(app.run())))


ADDRESSES = sorted(p.stem for p in (APP.parent / "pages").glob("*.py"))
# The others are addresses of before, which lead to the Studio page as "run" does.
PAGES = ["devices", "lessons", "model", "projects", "run", "studio"]


@pytest.mark.thorough
@pytest.mark.parametrize("page", either(PAGES, ADDRESSES))
def test_a_model_that_is_gone_comes_with_the_way_out(page, tmp_path):
    app, _ = opened(page, model_kind="path", model=str(tmp_path / "gone.onnx"))
    told = [e for e in app.main.error if "gone.onnx" in str(e.value)]
    assert len(told) == (page not in ("projects", "lessons"))
    way_out = {"model": "on the left", "projects": "", "lessons": ""}.get(page, "choose another")
    assert any(way_out in step for step in next_steps(app)) or not way_out


def test_a_fault_in_a_callback_is_one_sentence_too(tmp_path, monkeypatch):
    page = tmp_path / "page.py"
    page.write_text(
        "import streamlit as st\n"
        "from pages.ui.shell import messages\n"
        "st.button('press', on_click=lambda: {}['gone'])\n"
    )
    monkeypatch.chdir(APP.parent)
    app = AppTest.from_file(str(page), default_timeout=120).run()
    app.button[0].click().run()
    assert messages.FAULT in app.exception[0].message and not app.exception[0].stack_trace


def test_a_fault_is_one_sentence_and_its_trace_is_logged(tmp_path, caplog):
    page = tmp_path / "page.py"
    page.write_text(
        "from pages.ui.shell import messages\n"
        "with messages.plain_errors():\n"
        "    raise KeyError('<b>')\n"
    )
    app = AppTest.from_file(str(page), default_timeout=120).run()
    assert not app.exception and messages.FAULT in app.error[0].value
    assert "KeyError" in app.error[0].value and "<b>" not in app.error[0].value
    assert "Traceback" in caplog.text
