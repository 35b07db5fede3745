"""Deleted projects: whole in the trash, back as they were, and gone after their time."""

import os
import time

import pytest

from studio.jobs import jobs
from studio.project import claim, store, trash
from studio.project.files import read_json, write_json


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def files_of(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}


def worked_on(name):
    project = store.create(name)
    project.change(dims={"batch": 4})
    project.keep_upload("mine.onnx", b"content")
    return project


def test_a_deleted_project_is_found_in_the_trash_and_nowhere_else():
    project = worked_on("mine")
    thrown = trash.throw_away(project)
    assert (thrown.name, thrown.model, thrown.days_left) == ("mine", store.DEFAULT_SAMPLE, 30)
    assert store.find(project.id) is None and store.recent() == ()
    assert trash.listed() == (thrown,) and trash.find(project.id) == thrown


def test_a_restored_project_is_as_it_was():
    project = worked_on("mine")
    before = files_of(project.folder)
    trash.throw_away(project)
    restored = trash.restore(project.id)
    assert restored == project and files_of(restored.folder) == before
    assert trash.listed() == ()
    with pytest.raises(ValueError, match="no longer in the trash"):
        trash.restore(project.id)


def test_a_claim_does_not_bring_back_the_folder_of_a_deleted_project():
    project = worked_on("mine")
    trash.throw_away(project)
    assert not claim.claim(project.folder, "one", lambda session: True)
    assert not claim.claim(project.folder, "one", lambda session: True, force=True)
    assert not project.folder.exists()


def test_what_is_left_of_a_folder_is_not_in_the_way_of_a_restore():
    project = worked_on("mine")
    before = files_of(project.folder)
    trash.throw_away(project)
    write_json(project.folder / "owner.json", {})
    assert files_of(trash.restore(project.id).folder) == before


def test_a_restore_that_fails_says_so_and_loses_nothing():
    project = worked_on("mine")
    trash.throw_away(project)
    store.Project(project.folder).write(store.Settings("another", 0.0))
    with pytest.raises(ValueError, match="could not be restored"):
        trash.restore(project.id)
    assert trash.find(project.id) and store.find(project.id).settings.name == "another"


def test_the_trash_lets_go_of_what_has_been_there_long_enough():
    old, new = worked_on("old"), worked_on("new")
    for project in (old, new):
        trash.throw_away(project)
    home = store.folder().parent / "trash"
    long_ago = time.time() - (trash.KEEP_DAYS + 1) * 86_400
    write_json(home / old.id / "deleted.json", {"deleted_at": long_ago})
    assert trash.empty(only_old=True) == 1
    assert [t.name for t in trash.listed()] == ["new"] and not (home / old.id).exists()
    assert trash.empty() == 1 and trash.listed() == ()


def test_a_damaged_note_of_the_deletion_counts_from_when_the_folder_changed():
    thrown = trash.throw_away(worked_on("mine"))
    folder = store.folder().parent / "trash" / thrown.id
    (folder / "deleted.json").write_text("[")
    assert trash.find(thrown.id).deleted_at == folder.stat().st_mtime


def test_a_project_whose_settings_are_not_understood_is_let_go_of_as_well():
    project = worked_on("mine")
    (project.folder / "project.json").write_text('{"lanes": 2000}')
    thrown = trash.throw_away(project)
    assert trash.listed() == (thrown,) and thrown.name == project.id
    assert trash.empty() == 1 and trash.listed() == ()


def test_deleting_stops_the_jobs_and_frees_the_project():
    project = worked_on("mine")
    claim.claim(project.folder, "one", lambda session: True)
    command = ("python3", "-c", "import time; time.sleep(600)")
    job_id = jobs.start(project.folder, "run", [], command=command)
    trash.throw_away(project)
    folder = store.folder().parent / "trash" / project.id
    while jobs.read(folder, job_id).is_live:
        time.sleep(0.05)
    assert jobs.read(folder, job_id).status == "cancelled"
    assert claim.holder(trash.restore(project.id).folder) is None


def test_a_copy_has_the_runs_but_not_the_one_that_goes_on():
    project = worked_on("mine")
    ended = project.folder / "jobs" / "1"
    about = {"collected": True}
    record = {"verb": "run", "argv": [], "pid": -1, "born_at": 0, "started_at": 0, "about": about}
    write_json(ended / "job.json", record)
    command = ("python3", "-c", "import time; time.sleep(600)")
    living = jobs.start(project.folder, "run", [], command=command)
    twin = store.copy(project)
    jobs.stop(project.folder, living)
    assert jobs.listed(twin.folder) == ("1",) and set(jobs.listed(project.folder)) == {"1", living}
    assert twin.settings.name == "mine (copy)" and dict(twin.settings.dims) == {"batch": 4}


def test_a_copy_that_fails_leaves_no_project(monkeypatch):
    project = worked_on("mine")
    monkeypatch.setattr(os, "rename", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        store.copy(project)
    assert [p.id for p in store.recent()] == [project.id]


def test_old_drafts_make_room():
    draft = store.Project(store.folder() / ".draft-0123456789")
    draft.folder.mkdir(parents=True)
    store.create()
    assert draft.folder.is_dir()
    long_ago = time.time() - 2 * store.DRAFT_HOURS * 3_600
    os.utime(draft.folder, (long_ago, long_ago))
    store.create()
    assert not draft.folder.exists()


def test_the_last_changed_comes_first_and_the_untouched_last():
    looked_at, first, second = store.create("looked at"), worked_on("first"), worked_on("second")
    for age_s, project in ((0, looked_at), (20, first), (10, second)):
        at = time.time() - age_s
        os.utime(project.folder / "project.json", (at, at))
    assert [p.id for p in store.recent()] == [second.id, first.id]
    assert store.recent(untouched=True)[-1] == looked_at
    assert read_json(looked_at.folder / "project.json")["touched"] is False
