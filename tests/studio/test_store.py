"""Projects on disk: what was decided is found again, whole, whatever happened in between."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from studio.project import claim, store
from studio.project.edits import Edit, History, State, assign
from studio.project.files import read_json, write_json
from studio.project.placements import HAND, Shelf, is_about
from tests.pages.problems import MACHINE, diamond, everywhere

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def shelf_of(project):
    return Shelf.of(project.folder, diamond().graph, MACHINE)


def test_a_new_project_opens_the_default_sample():
    settings = store.create().settings
    assert (settings.model_kind, settings.model) == ("sample", store.DEFAULT_SAMPLE)
    assert settings.machine == "local" and not settings.touched


def test_a_shelf_is_found_by_the_fingerprint_that_its_graph_had_before():
    """More is known of a graph's shapes than when a placement of it was made by hand."""
    project, before = store.create(), diamond().graph
    Shelf.of(project.folder, before, MACHINE).add("mine", everywhere(diamond()), HAND)
    wider = tuple(replace(tensor, num_bytes=tensor.num_bytes + 1) for tensor in before.tensors)
    unknown = replace(before, tensors=wider)
    known = replace(unknown, formerly=before.fingerprint)
    assert not is_about(project.folder, unknown) and is_about(project.folder, known)
    assert Shelf.of(project.folder, unknown, MACHINE).items == ()
    shelf = Shelf.of(project.folder, known, MACHINE)
    assert [named.name for named in shelf.items] == ["mine"]
    shelf.read("mine").require_graph(known)


def test_everything_is_found_again_by_another_process():
    project = store.create("kept")
    project.change(dims={"batch": 4}, lanes=2)
    problem = diamond()
    placed = everywhere(problem)
    move = assign(problem, State(placed.device_of, {}), ["b_conv"], "cpu:1")
    name = shelf_of(project).add("manual", placed, HAND)
    shelf_of(project).replace(name, everywhere(problem, b="cpu:1"))
    shelf_of(project).keep_history(name, History().add(Edit("a move", move.changes)))
    script = """
import sys
from studio.project import store as projects
from tests.studio.test_store import shelf_of
project = projects.find(sys.argv[1])
shelf = shelf_of(project)
print(project.settings.name, dict(project.settings.dims), shelf.current.name)
print(shelf.read("manual").device_of["b_conv"], len(shelf.history("manual").done))
"""
    out = subprocess.run(
        [sys.executable, "-c", script, project.id], cwd=ROOT, capture_output=True, text=True
    )
    assert out.stdout.split("\n")[:2] == ["kept {'batch': 4} manual", "cpu:1 1"], out.stderr


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    write_json(path, {"version": 1})
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_json(path, {"version": 2})
    assert read_json(path) == {"version": 1}
    assert os.listdir(tmp_path) == ["x.json"]


@pytest.mark.parametrize(
    "project_id", ["", "..", "../x", "a" * 10 + "/..", "ABCDEFGHIJ", "nosuchone0"]
)
def test_an_id_that_is_none_finds_nothing(project_id):
    store.create()
    assert store.find(project_id) is None


@pytest.mark.parametrize(
    "name", ["../../evil.onnx", "/etc/passwd", "..", "a b\n.onnx", "C:\\x.onnx", ".hidden"]
)
def test_an_upload_stays_in_the_project(name):
    project = store.create()
    kept = project.keep_upload(name, b"content")
    assert (project.folder / "model" / kept).resolve().parent == project.folder / "model"
    assert (project.folder / "model" / kept).read_bytes() == b"content"


def test_a_copy_is_a_project_of_its_own():
    project = store.create("first")
    shelf_of(project).add("manual", everywhere(diamond()), HAND)
    twin = store.copy(project)
    shelf_of(twin).replace("manual", everywhere(diamond(), "cpu:1"))
    assert twin.settings.name == "first (copy)"
    assert shelf_of(project).read("manual").device_of["a_conv"] == "cpu:0"


def test_untouched_projects_make_room_and_touched_ones_stay():
    old, kept = store.create(), store.create()
    kept.change(name="mine")
    long_ago = time.time() - 30 * 86_400
    for project in (old, kept):
        os.utime(project.folder / "project.json", (long_ago, long_ago))
    store.create()
    assert store.find(old.id) is None
    assert [p.id for p in store.recent()] == [kept.id]


def test_a_damaged_project_says_so():
    project = store.create()
    (project.folder / "project.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        _ = project.settings
    assert store.find(project.id) is None


def test_a_placer_never_takes_the_place_of_a_hand_made_placement():
    shelf, problem = shelf_of(store.create()), diamond()
    assert shelf.add("heft", everywhere(problem), "heft") == "heft"
    assert shelf.add("heft", everywhere(problem, "cpu:1"), "heft") == "heft"
    shelf.rename("heft", "mine")
    shelf.duplicate("mine")
    shelf.rename("mine copy", "heft")
    assert shelf.add("heft", everywhere(problem), "heft") == "heft 2"
    assert shelf.read("heft").device_of["a_conv"] == "cpu:1"
    assert [i.name for i in shelf.items] == ["mine", "heft", "heft 2"]
    assert shelf.current.name == "heft 2"


def test_names_on_the_shelf_are_unique_and_files_are_safe():
    shelf, problem = shelf_of(store.create()), diamond()
    for _ in range(3):
        shelf.add("../../a/b", everywhere(problem), HAND)
    assert [i.name for i in shelf.items] == ["../../a/b", "../../a/b 2", "../../a/b 3"]
    assert all(shelf.path(i.name).parent == shelf.folder for i in shelf.items)
    with pytest.raises(ValueError, match="already a placement"):
        shelf.rename("../../a/b 2", "../../a/b")
    with pytest.raises(ValueError, match="needs a name"):
        shelf.rename("../../a/b 2", "  ")
    shelf.remove("../../a/b")
    assert [i.name for i in shelf.items] == ["../../a/b 2", "../../a/b 3"]
    assert shelf.current.name == "../../a/b 2"


def test_a_placement_file_is_what_the_command_line_reads():
    shelf = shelf_of(store.create())
    shelf.add("manual", everywhere(diamond()), HAND)
    content = json.loads(shelf.path("manual").read_text())
    assert content["graph"] == diamond().graph.fingerprint and len(content["device_of"]) == 8


def always(session):
    return True


def never(session):
    return False


def test_one_session_owns_a_project_and_a_second_does_not(tmp_path):
    assert claim.claim(tmp_path, "one", always)
    assert claim.claim(tmp_path, "one", always)
    assert not claim.claim(tmp_path, "two", always)
    assert claim.holder(tmp_path).session == "one"


def test_a_closed_session_gives_way(tmp_path):
    claim.claim(tmp_path, "one", always)
    assert claim.claim(tmp_path, "two", never)


def test_who_looked_on_waits_for_a_page_that_is_loaded_again(tmp_path, monkeypatch):
    """The page comes back as another session, which finds the project free before onlookers do."""
    assert claim.claim(tmp_path, "one", always)
    assert not claim.claim(tmp_path, "onlooker", always)

    def connected(session):
        return session != "one"

    assert not claim.claim(tmp_path, "onlooker", connected)
    assert claim.claim(tmp_path, "one again", connected)
    assert not claim.claim(tmp_path, "onlooker", connected)
    # Where nobody comes back it is free after a while.
    clock = [time.time()]
    monkeypatch.setattr(claim.time, "time", lambda: clock[0])
    assert not claim.claim(tmp_path, "onlooker", never)
    clock[0] += claim.RELOAD_S
    assert claim.claim(tmp_path, "onlooker", never)


def test_taking_over_is_noticed_by_the_first_session(tmp_path):
    claim.claim(tmp_path, "one", always)
    assert claim.claim(tmp_path, "two", always, force=True)
    assert not claim.claim(tmp_path, "one", always)


def other_server(tmp_path, server, renewed_at):
    write_json(
        tmp_path / "owner.json", {"session": "one", "server": server, "renewed_at": renewed_at}
    )
    return claim.claim(tmp_path, "two", always)


def test_a_server_that_is_gone_owns_nothing(tmp_path):
    assert other_server(tmp_path, "999999999-1.00", time.time())
    assert other_server(tmp_path, "nonsense", time.time())


def test_a_session_of_another_living_server_counts_until_it_is_silent(tmp_path):
    parent = claim.psutil.Process(os.getppid())
    server = f"{parent.pid}-{parent.create_time():.2f}"
    assert not other_server(tmp_path, server, time.time())
    assert other_server(tmp_path, server, time.time() - 2 * claim.STALE_AFTER_S)


def test_a_damaged_claim_counts_as_none(tmp_path):
    (tmp_path / "owner.json").write_text("[")
    assert claim.claim(tmp_path, "one", always)


def test_a_removed_placement_comes_back_with_its_history():
    shelf, problem = shelf_of(store.create()), diamond()
    shelf.add("heft", everywhere(problem), "heft")
    shelf.add("mine", everywhere(problem, "cpu:1"), HAND)
    history = History().add(Edit("a move", (("a_conv", "cpu:0", "cpu:1"),)))
    shelf.keep_history("mine", history)
    shelf.remove("mine")
    assert [i.name for i in shelf.items] == ["heft"] and shelf.current.name == "heft"
    assert shelf.add("mine", everywhere(problem), HAND) == "mine"
    (gone,) = shelf.removed
    assert shelf.restore(gone.file) == "mine 2" and shelf.current.name == "mine 2"
    assert shelf.history("mine 2") == history and not shelf.removed
    assert shelf.read("mine 2").device_of["a_conv"] == "cpu:1"
    assert shelf.read("mine").device_of["a_conv"] == "cpu:0" and not shelf.history("mine").done


def test_only_the_last_removed_placements_are_kept():
    shelf, problem = shelf_of(store.create()), diamond()
    for number in range(8):
        shelf.add(f"p{number}", everywhere(problem), HAND)
    files = [i.file for i in shelf.items]
    for number in range(7):
        shelf.remove(f"p{number}")
    assert [i.name for i in shelf.removed] == [f"p{n}" for n in range(2, 7)]
    assert [(shelf.folder / file).exists() for file in files] == [False] * 2 + [True] * 6
    with pytest.raises(ValueError, match="removed for good"):
        shelf.restore(files[0])


@pytest.mark.parametrize(
    "odd", [{"lanes": "two"}, {"dims": [1]}, {"dims": {"batch": 0}}, {"model_kind": "pickle"}]
)
def test_settings_that_are_none_are_refused_in_a_sentence(odd):
    project = store.create()
    project.change(dims={"batch": 4})
    path = project.folder / "project.json"
    known = read_json(path)
    write_json(path, {**known, "of a later version": 1})
    assert dict(project.settings.dims) == {"batch": 4} and store.find(project.id) == project
    write_json(path, {**known, **odd})
    assert store.find(project.id) is None and store.recent(untouched=True) == ()
    with pytest.raises(ValueError, match=f"Project {project.id} cannot be read; open a new one"):
        _ = project.settings
