"""Outputs of confined processes: in their places at the end, and nothing else beside them."""

import json
import os
import subprocess

import pytest

from placement.files.output import drafted, drafts, write_text
from profiling.sandbox import landlock
from tests.command import answer, refused
from tests.instances import canonical_file


@pytest.fixture
def canonical(tmp_path):
    path = tmp_path / "canonical.json"
    path.write_text(json.dumps(canonical_file()))
    return path


@pytest.fixture
def told(monkeypatch):
    """Drafts of an output, as the process is told that writes them."""

    def tell(path):
        made = drafts([path])
        given = made.__enter__()
        for name, value in given.variables.items():
            monkeypatch.setenv(name, value)
        return given, lambda: made.__exit__(None, None, None)

    return tell


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_command_about_a_file_leaves_its_output_and_no_more(canonical, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for _ in range(2):
        answer("place", canonical, "--placer", "heft", "--out", out / "p.json")
    assert names(out) == ["p.json"]
    assert len(json.loads((out / "p.json").read_text())["device_of"]) == 10


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
def test_what_lies_beside_an_output_cannot_be_changed(canonical, tmp_path, told):
    """A program may lie there that runs the next time with all rights."""
    from profiling.sandbox import confinement

    (tmp_path / "program.py").write_text("ours")
    given, finish = told(tmp_path / "p.json")
    limits = confinement.limits_for(str(canonical), writable=given.folders)

    def wrote(path):
        with confinement.own_folder() as (_, environment):
            run = subprocess.run(
                confinement.command(
                    limits, "tests.profiling.sandbox.confined_probe", ("write", str(path))
                ),
                env=environment,
                capture_output=True,
                text=True,
            )
        return run.stdout.strip()

    assert wrote(tmp_path / "program.py") == "PermissionError"
    assert wrote(tmp_path / "p.json") == "PermissionError"
    assert wrote(drafted(tmp_path / "p.json")) == "written"
    finish()
    assert (tmp_path / "p.json").read_text() == "written"
    assert (tmp_path / "program.py").read_text() == "ours"


def test_only_what_is_named_like_the_output_is_taken(tmp_path, told):
    (tmp_path / "other.json").write_text("ours")
    _, finish = told(tmp_path / "p.json")
    draft = drafted(tmp_path / "p.json")
    write_text(tmp_path / "p.json", "new")
    assert draft.read_text() == "new" and not (tmp_path / "p.json").exists()
    (draft.parent / "other.json").write_text("theirs")
    assert drafted(tmp_path / "other.json") == tmp_path / "other.json", "nobody asked for it"
    finish()
    assert names(tmp_path) == ["other.json", "p.json"]
    assert (tmp_path / "other.json").read_text() == "ours"


def test_a_link_is_not_put_into_the_place_of_an_output(tmp_path, told):
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "p.json").write_text("old")
    _, finish = told(tmp_path / "p.json")
    drafted(tmp_path / "p.json").symlink_to(tmp_path / "secret")
    finish()
    assert (tmp_path / "p.json").read_text() == "old" and not (tmp_path / "p.json").is_symlink()


def test_files_of_a_folder_join_those_that_are_there(tmp_path, told):
    (tmp_path / "split").mkdir()
    (tmp_path / "split" / "notes").write_text("ours")
    _, finish = told(tmp_path / "split")
    draft = drafted(tmp_path / "split")
    draft.mkdir()
    (draft / "model.onnx").write_text("new")
    (draft / "link").symlink_to(tmp_path / "split" / "notes")
    finish()
    assert names(tmp_path / "split") == ["model.onnx", "notes"]


def test_through_a_link_the_file_that_it_leads_to_is_replaced(tmp_path, told):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "p.json").write_text("old")
    (tmp_path / "p.json").symlink_to(tmp_path / "there" / "p.json")
    _, finish = told(tmp_path / "p.json")
    write_text(tmp_path / "p.json", "new")
    finish()
    assert (tmp_path / "p.json").is_symlink()
    assert (tmp_path / "there" / "p.json").read_text() == "new"
    assert names(tmp_path / "there") == ["p.json"]


@pytest.mark.parametrize("option", ["--out", "--split"])
def test_an_output_does_not_take_the_place_of_the_model(option, canonical, tmp_path):
    before = canonical.read_bytes()
    (tmp_path / "link.json").symlink_to(canonical)
    for path in (canonical, tmp_path / "link.json"):
        said = refused("place", canonical, "--placer", "heft", option, path)
        assert "is the model itself" in said
    assert canonical.read_bytes() == before


def test_where_nothing_can_be_written_a_sentence_says_so(canonical, tmp_path):
    out = tmp_path / "p.json"
    out.mkdir()
    said = refused("place", canonical, "--placer", "heft", "--out", out)
    assert "is a folder" in said
    assert "There is no folder" in refused(
        "place", canonical, "--placer", "heft", "--out", tmp_path / "none" / "p.json"
    )
    assert answer("place", canonical, "--placer", "heft", "--out", os.devnull)
