"""Names from files are shown letter by letter; numbers carry fitting units; commands are exact."""

import re
import shlex

import pytest

from pages.ui.session.current import snapshot
from pages.ui.shell import glossary
from placement.core import formatting
from placement.core.verb_options import PlaceOptions, ProfileOptions, RunOptions
from studio.jobs import command_line
from studio.project import store


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.5, "1.5 s"),
        (0.0698, "69.8 ms"),
        (3e-5, "30 µs"),
        (0.0, "0 s"),
        (250.0, "250 s"),
        (0.0009999999, "1 ms"),
    ],
)
def test_seconds(value, shown):
    assert formatting.seconds(value) == shown


def test_a_file_s_own_unit_is_kept():
    """Times are seconds inside, and a number of the file's unit once a command has printed them."""
    assert formatting.seconds(0.08, "ms") == formatting.stated(80.0, "ms") == "80 ms"
    assert formatting.seconds(20.0, "ms") == "20000 ms" and formatting.stated(0.08, "s") == "80 ms"
    assert formatting.seconds(None) == "unknown"


def test_bytes_counts_and_ages():
    assert (formatting.num_bytes(0), formatting.num_bytes(4096), formatting.num_bytes(None)) == (
        "0 B",
        "4 KiB",
        "no limit",
    )
    assert (formatting.count(4.07e9), formatting.count(12)) == ("4.07 G", "12")
    assert (formatting.age(5), formatting.age(3600), formatting.age(2.5 * 86_400)) == (
        "just now",
        "1 hour ago",
        "2 days ago",
    )


@pytest.mark.parametrize("text", ["![x](http://evil)", "<img src=x>", "**b**", ":red[x]", "$x$"])
def test_markup_is_disarmed(text):
    shown = glossary.plain(text)
    assert shown.replace("\\", "") == text
    assert all(shown[i - 1] == "\\" for i, c in enumerate(shown) if c in "*<[]$!:(")


@pytest.mark.parametrize("text", ["www.evil.example", "see HTTPS://evil.example/x", "&lt;b&gt;"])
def test_addresses_and_entities_are_disarmed(text):
    """Addresses are looked for once the backslashes are gone, as the browser does it."""
    shown = glossary.plain(text)
    assert not re.search(r"(https?://|www(?=\.))[-.\w]+", shown.replace("\\", ""), re.IGNORECASE)
    assert not re.search(r"(?<!\\)&", shown)
    assert shown.replace("\\", "").replace("\u200b", "") == text


def test_long_text_is_cut():
    assert len(glossary.plain("x" * 1000)) == 400


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "my home"))
    return store.create()


def parsed(argv):
    """What the command line's own parser makes of the text that a page shows."""
    from placement.cli.options import make_parser

    text = command_line.text(argv)
    assert text.startswith("python -m placement ")
    return make_parser().parse_args(shlex.split(text)[3:])


def test_commands_are_understood_by_the_command_line(project):
    project.change(lanes=2)
    now = snapshot(project)
    found = parsed(command_line.place(now, PlaceOptions(time_limit_s=1.5, seed=3), out="x.json"))
    assert (found.input, found.lanes) == ("onnx-inception-v2", 2)
    assert (found.placer, found.time_limit, found.seed, found.out) == ("heft", 1.5, 3, "x.json")
    path = project.folder / "placements" / "x.json"
    assert parsed(command_line.run(now, path, RunOptions(steps=7, warmup=2, seed=1))).steps == 7
    assert parsed(command_line.simulate(now, path)).placement == str(path)
    assert parsed(command_line.profile(now, ProfileOptions(refresh=True))).refresh
    assert (
        parsed(command_line.inspect(project)).json
        and parsed(command_line.machine(project)).lanes == 2
    )
    project.change(dims={"batch": 4})
    assert parsed(command_line.inspect(project)).dim == ["batch=4"]


def test_an_uploaded_model_is_named_by_its_real_path(project):
    name = project.keep_upload("my model's.onnx", b"x")
    project.change(model_kind="file", model=name)
    assert parsed(command_line.inspect(project)).input == str(project.folder / "model" / name)


def test_a_machine_file_in_the_project_is_named_by_its_path(project):
    project.keep_upload("mine.json", b"{}", folder="machines")
    project.change(machine="mine.json", lanes=3)
    found = parsed(command_line.place(snapshot(project), PlaceOptions()))
    assert found.machine == str(project.folder / "machines" / "mine.json") and found.lanes is None
