"""Policies on the Place page: what a method begins from, what it keeps, and files of strangers."""

import shlex
from pathlib import Path

import pytest

from placement.learning.checkpoint import path_of
from tests.pages.test_pages import checked, opened, own_home
from tests.thorough import either

assert own_home


def placing(method):
    """The Place page of a project in which the method was chosen before."""
    return opened("place", model="onnx-squeezenet", machine="null-2", form={"placer": method})


def begin_from(app):
    return next(box for box in app.selectbox if box.label == "Begin from")


def asked(app):
    """The settings that the page's command names."""
    command = next(str(c.value) for c in app.code if " place " in str(c.value)).splitlines()[0]
    words = shlex.split(command)
    return dict(words[i + 1].split("=", 1) for i, word in enumerate(words) if word == "--set")


def upload(app, name, content):
    field = next(u for u in app.get("file_uploader") if u.label.startswith("Add a policy"))
    field.upload(name, content, "application/octet-stream")
    return checked(app.run())


@pytest.mark.thorough
@pytest.mark.parametrize("method", either(["random_search"], ["heft", "random_search"]))
def test_methods_without_policies_have_no_fields_for_them(method):
    app, _ = placing(method)
    assert not [box for box in app.selectbox if box.label == "Begin from"]


@pytest.mark.parametrize(("method", "first"), [("hsdag", ""), ("list_policy", "bundled")])
def test_the_menu_begins_with_the_methods_default(method, first):
    app, _ = placing(method)
    assert begin_from(app).value == first
    assert asked(app) == {}
    other = "" if first else "bundled"
    begin_from(app).select(other).run()
    assert asked(checked(app)) == {"policy": other}


def test_what_it_learns_is_kept_in_the_project_and_offered_afterwards():
    app, project = placing("hsdag")
    next(t for t in app.toggle if t.label == "Keep what it learns").set_value(True).run()
    kept = Path(asked(checked(app))["save"])
    assert kept == project.folder / "policies" / "hsdag.safetensors"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(path_of("bundled", "hsdag").read_bytes())
    app.run()
    assert "hsdag.safetensors" in begin_from(checked(app)).options
    begin_from(app).select("hsdag.safetensors").run()
    assert asked(checked(app))["policy"] == str(kept)
    menu = next(box for box in app.selectbox if box.label == "Method")
    menu.select("group_pg").run()
    assert "hsdag.safetensors" not in begin_from(checked(app)).options


def test_an_uploaded_policy_is_chosen_and_one_of_another_method_refused():
    app, project = placing("hsdag")
    content = path_of("bundled", "hsdag").read_bytes()
    app = upload(app, "mine.safetensors", content)
    assert begin_from(app).value == "mine.safetensors"
    assert asked(app) == {"policy": str(project.folder / "policies" / "mine.safetensors")}
    assert (project.folder / "policies" / "mine.safetensors").read_bytes() == content
    other = path_of("bundled", "rnn").read_bytes()
    app = upload(app, "other.safetensors", other)
    assert "is a policy of rnn; add one of hsdag." in "".join(str(e.value) for e in app.error)
    app = upload(app, "none.safetensors", b"\xff" * 100)
    assert "is no policy that was saved here" in "".join(str(e.value) for e in app.error)
    assert not (project.folder / "policies" / "other.safetensors").exists()
    assert begin_from(app).value == "mine.safetensors"


def test_a_file_that_is_given_replaces_none_and_is_offered():
    app, project = placing("hsdag")
    content, folder = path_of("bundled", "hsdag").read_bytes(), project.folder / "policies"
    folder.mkdir()
    (folder / "hsdag.safetensors").write_bytes(content + b"")
    (folder / "mine.safetensors").write_bytes(content)
    for name in ("hsdag.safetensors", "MINE.SAFETENSORS", ".safetensors"):
        before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        app = upload(app, name, content)
        assert begin_from(app).value in begin_from(app).options, name
        assert begin_from(app).value not in before, name
        assert {name: (folder / name).stat().st_mtime_ns for name in before} == before, name


def test_a_choice_that_is_gone_is_the_default_again():
    app, project = placing("list_policy")
    kept = project.folder / "policies" / "list_policy.safetensors"
    kept.parent.mkdir()
    kept.write_bytes(path_of("bundled", "list_policy").read_bytes())
    app.run()
    begin_from(checked(app)).select(kept.name).run()
    kept.unlink()
    app.run()
    assert begin_from(checked(app)).value == "bundled" and asked(app) == {}
