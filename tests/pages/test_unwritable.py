"""Pages on a disk that takes no more: what is lost is told and taken back, all can be looked at."""

import json
from contextlib import contextmanager

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.panels.placement_menu import OPEN
from pages.ui.session import choices, saving
from pages.ui.session.current import snapshot
from pages.ui.shell import messages
from placement.core.placement import placement_to_text
from profiling.measuring.store import ProfileStore
from studio import editing
from studio.jobs import jobs, kinds
from studio.project import store, trash
from tests.disks import files_up_to, filled, small_disk, without_rights
from tests.pages.going import go
from tests.pages.test_pages import (
    APP,
    checked,
    finished_run,
    open_id,
    opened,
    placed,
    profile_for,
    shown,
    texts,
    uploader,
)
from tests.studio.jobs.test_kinds import finished
from tests.thorough import either

PAGES = ("model", "devices", "place", "run", "timeline", "compare", "what_if", "projects")
CAUSES = ("the disk is full", "it would be larger than files may be here", "you have no right to")
# Room for the claim of a session, which renews it every other second, but not for a project.
CLAIM_BYTES = 200
DISK_BYTES = 16 * 2**20


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder on a small disk of its own, where such a one can be had."""
    with small_disk(tmp_path / "disk", DISK_BYTES) as is_small:
        monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "disk" / "home"))
        (tmp_path / "disk" / "home").mkdir()
        monkeypatch.setattr("tests.pages.test_unwritable.IS_SMALL", is_small)
        yield tmp_path / "disk" / "home"


IS_SMALL = False


@contextmanager
def full(home, spare_bytes=0):
    """A full disk; where none can be mounted, a limit that stands for it."""
    if IS_SMALL:
        with filled(home.parent, spare_bytes):
            yield
    else:
        with files_up_to(CLAIM_BYTES if spare_bytes else 0):
            yield


def nearly_full(home):
    """Room for the first files of an edit, but not for all of them."""
    return full(home, spare_bytes=5 * 4096)


def limited(home):
    return files_up_to(CLAIM_BYTES)


def tree(folder):
    """All files of a folder with what they hold, but for who has it open."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "owner.json"
    }


def press(app, label):
    return checked(next(b for b in app.button if _label(b) == label).click().run())


def _label(button):
    """Without the number of its key and Markdown's escapes."""
    return button.label.lstrip("0123456789 ").replace("\\", "")


def says_why(shown, home):
    assert any(cause in shown for cause in CAUSES), shown
    assert str(home) in shown, shown
    assert "All changes saved" not in shown


# Every page, half of them with each cause.
BY_TURNS = [(full, PAGES[::2]), (without_rights, PAGES[1::2])]
EVERY_PAGE = [(full, PAGES), (without_rights, PAGES)]


@pytest.mark.thorough
@pytest.mark.parametrize(("closed", "pages"), either(BY_TURNS, EVERY_PAGE))
def test_every_page_shows_what_there_is_and_says_why_nothing_can_be_saved(home, closed, pages):
    project = placed(machine="null-2")
    finished_run(project)
    app = shown(project, "place")
    seen = texts(app)
    assert "All changes saved" in seen and saving.LOOK_ONLY not in seen
    before = tree(project.folder)
    (project.folder / "owner.json").unlink()
    with closed(home):
        says_why(texts(checked(app.run())), home)
        for page in pages:
            told = texts(checked(go(app, page)))
            says_why(told, home)
            assert saving.LOOK_ONLY in told and "View only: nothing can be saved" in told
            assert len(app.metric) or page not in ("model", "place", "run")
        # A second visitor, for whom nothing has been drawn yet, sees all of it too.
        fresh = AppTest.from_file(str(APP), default_timeout=120)
        fresh.query_params["project"] = project.id
        says_why(texts(checked(fresh.run())), home)
        assert open_id(fresh) == project.id
    assert tree(project.folder) == before
    told = texts(checked(app.run()))
    assert "All changes saved" in told and "cannot be written" not in told


def shown_with(project, **state):
    """The app on the Studio page of a project, in a session of which this is so."""
    app = shown(project, "place")
    for key, value in state.items():
        app.session_state[key] = value
    return checked(app.run())


@pytest.mark.parametrize("closed", [nearly_full, limited])
def test_an_edit_that_is_not_saved_is_taken_back_and_the_next_one_is_saved(home, closed):
    project = placed(machine="null-2")
    now = snapshot(project)
    name = now.model.graph.ops[0].name
    target = next(d.name for d in now.machine.devices if d.name != now.placement.device_of[name])
    app = shown_with(project, selection=[name])
    before = tree(project.folder)
    with closed(home):
        told = texts(press(app, target))
        assert saving.TAKEN_BACK in told and "The last change is not saved" in told
        says_why(told, home)
        assert tree(project.folder) == before
        assert "cannot be written" in texts(checked(app.run())), "it stays until a change is saved"
    told = texts(press(app, target))
    assert "All changes saved" in told and "cannot be written" not in told
    now = snapshot(project)
    assert now.placement.device_of[name] == target and now.named.name == "manual"


CHANGES = {
    "undo": ("place", "Undo"),
    "duplicate": ("place", "Duplicate"),
    "delete": ("place", "Delete"),
    "pin": ("place", "Pin"),
    "rules": ("place", "Apply rules"),
    "place": ("place", "Place"),
    "run": ("run", "Run (emulated)"),
    "compare": ("compare", "Run these methods"),
    "new project": ("model", "New project"),
    "copy": ("model", "Duplicate this project"),
}


@pytest.fixture
def worked_on(home):
    """A project with an edit to undo, a rule to apply and a run."""
    project = placed(machine="null-2")
    now = snapshot(project)
    devices = [d.name for d in now.machine.devices]
    name = now.model.graph.ops[0].name
    editing.edit(now, (name,), next(d for d in devices if d != now.placement.device_of[name]))
    finished_run(project)
    (project.folder / "rules.json").write_text(
        json.dumps([{"pattern": "type:Conv", "device": devices[1]}])
    )
    return project


def test_every_kind_of_change_is_taken_back_whole(home, worked_on):
    project, opened_at = worked_on, "place"
    selected = next(iter(snapshot(project).model.graph.index))
    app = shown_with(project, selection=[selected], **{"rules-open": True})
    for name, (page, label) in CHANGES.items():
        if page != opened_at:
            checked(go(app, page))
            opened_at = page
        # What is told below is of this change.
        app.session_state["not_saved"] = ""
        everything = tree(home)
        with limited(home):
            told = texts(press(app, label))
            says_why(told, home)
            lost = {
                "new project": "The project was not made.",
                "copy": "The project was not copied.",
                **dict.fromkeys(("place", "run", "compare"), "The job was not started."),
            }.get(name, saving.TAKEN_BACK)
            assert lost in told, name
            assert open_id(app) == project.id and not jobs.open_ones(project.folder)[1:], name
        assert tree(home) == everything, name


def test_a_field_that_is_not_saved_holds_on_the_screen_and_is_saved_with_the_next_change(home):
    app, project = opened("run", machine="null-2")
    field = next(n for n in app.number_input if n.label == "Steps")
    with limited(home):
        told = texts(checked(field.set_value(7).run()))
        assert choices.ON_SCREEN in told
        says_why(told, home)
        assert next(n for n in app.number_input if n.label == "Steps").value == 7
    assert 7 not in project.settings.form.values()
    name = next(t for t in app.sidebar.text_input if t.label == "Name of this project")
    assert "All changes saved" in texts(checked(name.set_value("mine").run()))
    assert 7 in project.settings.form.values() and project.settings.name == "mine"


def test_a_project_can_be_deleted_and_a_job_stopped_on_a_full_disk(home, worked_on):
    """That is how room is made."""
    project = worked_on
    with full(home):
        thrown = trash.throw_away(project)
        assert [t.id for t in trash.listed()] == [thrown.id]
        assert trash.empty() == 1 and not trash.listed()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("closed", "pages"),
    either([(full, ("devices", "run")), (without_rights, ("model", "projects"))], EVERY_PAGE),
)
def test_a_folder_that_cannot_be_made_still_shows_the_sample(home, closed, pages):
    visit = AppTest.from_file(str(APP), default_timeout=120)
    with closed(home):
        told = texts(checked(visit.run()))
        says_why(told, home)
        assert "onnx-inception-v2 (371 ops)" in told and saving.LOOK_ONLY in told
        for page in pages:
            says_why(texts(checked(go(visit, page))), home)
        assert not tree(home)
    told = texts(checked(visit.run()))
    assert "All changes saved" in told and "cannot be written" not in told
    assert store.find(open_id(visit)).folder.is_dir()


def test_a_first_look_that_cannot_be_written_is_still_drawn(home):
    """The claim fits on the disk, the placement does not."""
    project = store.create()
    project.change(machine="null-2")
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    with limited(home):
        told = texts(checked(app.run()))
        assert "The first placement is not saved" in texts(checked(app.run()))
        assert "onnx-inception-v2 (371 ops)" in told
    checked(app.run())
    assert "cannot be written" not in texts(checked(app.run()))
    assert snapshot(project).shelf.items[0].file


def test_a_result_that_is_not_kept_is_told_once_and_taken_over_later(home, project, monkeypatch):
    """Also what a job measured and could not store itself."""
    profile = profile_for(now(project).model, now(project).machine)
    job_id = finished(project)
    events = project.folder / "jobs" / job_id / "events.jsonl"
    not_kept = {"event": "not_kept", "message": "", "profile": profile.to_json()}
    events.write_text(json.dumps(not_kept) + "\n" + events.read_text())
    before = tree(home)
    with limited(home):
        (told,) = kinds.collect(now(project))
        assert "the result could not be kept" in told and "tried again" in told
        assert kinds.collect(now(project)) == []
        assert {p: c for p, c in tree(home).items() if p.name != "profiles.sqlite"} == before
    assert kinds.collect(now(project)) == ["Placed by single on 2 ops: predicted 20 ms."]
    assert ProfileStore().get(profile.graph, profile.machine.fingerprint) == profile


@pytest.fixture
def project(home, monkeypatch):
    monkeypatch.setattr("pages.ui.session.choices.may_write", lambda: True)
    made = store.create()
    made.change(machine="null-2")
    return made


def now(project):
    return snapshot(project)


def test_files_that_are_not_taken_over_are_told_of(home):
    app, project = opened("devices", machine="null-2")
    machine = json.dumps(now(project).machine.to_json()).encode()
    before = tree(home)
    with limited(home):
        field = uploader(app, "Machine file (JSON)")
        told = texts(checked(field.set_value(("mine.json", machine, "application/json")).run()))
        assert "mine.json was not taken over." in told
        says_why(told, home)
    assert tree(home) == before and project.settings.machine == "null-2"


def test_a_placement_that_cannot_be_kept_is_not_opened(home):
    app, project = opened("studio", machine="null-2")
    file = placement_to_text(editing.all_on(now(project), "null:1")).encode()
    before = tree(home)
    with limited(home):
        field = uploader(app, OPEN)
        told = texts(checked(field.set_value(("mine.json", file, "application/json")).run()))
        assert "mine.json was not opened." in told and "is the placement now" not in told
        says_why(told, home)
    assert tree(home) == before


def test_a_fault_does_not_say_that_all_is_saved():
    assert "is saved" not in messages.FAULT and "may not be saved" in messages.FAULT
