"""One file is enough: what docs/design.md shows as "how to add", put into a copy of the studio."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.profiling.live import diamond

ROOT = Path(__file__).parents[1]
STUDIO = ("app.py", "pages", "placement", "profiling", "studio", "assets", "tests")
PAGE = """
import sys
from streamlit.testing.v1 import AppTest
page = AppTest.from_file("app.py", default_timeout=120)
page.switch_page("pages/sizes.py")
page.run()
assert not page.exception, page.exception
import app
from pathlib import Path
print(*(place.stem for place in sorted(app.PAGES.glob("*.py"), key=app.place_in_menu)))
"""


def shown() -> dict[str, str]:
    """The files that the section shows, by path."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = text.partition("## How to add")[2]
    found = {}
    for part in re.split(r"\n(?=\*\*)", section)[1:]:
        path = re.search(r"`([\w/]+/\w+\.py)`", part)
        code = re.search(r"```python\n(.*?)```", part, re.DOTALL)
        if code:
            found[path[1]] = code[1]
    return found


FILES = shown()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    for name in STUDIO:
        if (ROOT / name).is_dir():
            # With what Python has compiled of them, but not what it is about to.
            left_out = shutil.ignore_patterns("*.pyc.*", "*.onnx", "browser", "webgpu")
            shutil.copytree(ROOT / name, folder / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copy(ROOT / "tests/profiling/backends/added/reference.py", folder / "profiling/backends")
    for name, code in FILES.items():
        assert not (folder / name).exists(), f"{name} is there already"
        (folder / name).write_text(code)
    return folder


def answered(folder: Path, *arguments: str):
    command = (sys.executable, *arguments)
    # Compiled code is kept by path, so all of it would be compiled once more for the copy.
    uncompiled = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=folder, env=uncompiled, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Calls of the command line in one process, each as a list of words: what they print.
CALLS = """
import contextlib, io, json, sys
from placement.__main__ import main
said = []
for words in json.loads(sys.argv[1]):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(words)
    assert not status, (words, status)
    said.append(out.getvalue())
print(json.dumps(said))
"""


LISTINGS = (("placers", "--json"), ("exporters", "--json"))


def called(folder: Path, *commands: tuple[str, ...]) -> list[str]:
    return json.loads(answered(folder, "-c", CALLS, json.dumps(commands)))


def test_every_kind_is_shown():
    folders = {str(Path(name).parent) for name in FILES}
    assert folders == {
        "placement/placers",
        "placement/exporters",
        "placement/loaders",
        "placement/zoo",
        "profiling/backends",
        "pages",
    }


def test_what_is_shown_is_code_as_the_rest():
    for name, code in FILES.items():
        for tool in (("format", "--check"), ("check",)):
            subprocess.run(
                (sys.executable, "-m", "ruff", *tool, "--stdin-filename", name, "-"),
                cwd=ROOT,
                input=code,
                text=True,
                check=True,
            )


def test_the_command_line_lists_and_uses_them(copy, tmp_path):
    pl = ("-m", "placement")
    placers, exporters = map(json.loads, called(copy, *LISTINGS))
    listed = {row["name"]: row for row in placers}
    assert listed["dice"]["settings"]["stay"]["type"] == "float"
    assert "device-list" in {row["name"] for row in exporters}
    model, placed, out = tmp_path / "pair.edges", tmp_path / "p.json", tmp_path / "list.txt"
    model.write_text("a -> b\nb ->\n")
    on = (str(model), "--machine", "null-2")
    answered(copy, *pl, "place", *on, "--placer", "dice", "--set", "stay=1", "--out", str(placed))
    device_of = json.loads(placed.read_text())["device_of"]
    assert set(device_of) == {"a", "b"} and len(set(device_of.values())) == 1
    how = ("--placement", str(placed), "--format", "device-list", "--out", str(out))
    answered(copy, *pl, "export", *on, *how)
    assert out.read_text() == "".join(f"{op} {device}\n" for op, device in device_of.items())


def shown_machine() -> str:
    """The machine file that the section shows."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    return re.search(r"```json\n(.*?)```", text.partition("**A backend**")[2], re.DOTALL)[1]


def test_what_runs_on_the_toy_is_called_emulated(copy, tmp_path):
    code = "from profiling import backends; print(backends.names(), backends.get('toy').devices())"
    assert "toy:0" in answered(copy, "-c", code)
    model, machine = tmp_path / "pair.edges", tmp_path / "toys.json"
    model.write_text("a -> b\nb ->\n")
    machine.write_text(shown_machine())
    run = ("-m", "placement", "run", str(model), "--machine", str(machine), "--placer", "single")
    result = json.loads(answered(copy, *run, "--json"))
    assert result["emulated"] is True and result["outputs_match"] is None


def test_a_backend_that_computes_is_part_of_this_computer(copy, tmp_path):
    """Where it makes the same kernels as onnxruntime both run one model together."""
    machines = ("machine", "--json"), ("machine", "--machine", "local:reference", "--json")
    machine, alone = map(json.loads, called(copy, *machines))
    runtimes = {d["name"]: d["runtime"] for d in machine["devices"]}
    assert runtimes["cpu:0"] == "onnxruntime" and runtimes["reference:0"] == "reference"
    assert not {"null", "toy"} & set(runtimes.values()) and not machine["emulated"]
    assert [d["name"] for d in alone["devices"]] == ["reference:0"]
    diamond(tmp_path)
    on = (str(tmp_path / "small.onnx"), "--machine", "local", "--analytic")
    run = ("-m", "placement", "run", *on, "--placer", "round_robin", "--json")
    result = json.loads(answered(copy, *run))
    assert result["outputs_match"] is True and result["emulated"] is False
    assert result["actual_devices"]["reference:0"] == "numpy" and len(result["actual_devices"]) == 2


def test_the_network_is_listed_with_the_ops_that_it_has(copy):
    # Of the two the one with more to count.
    calls = ("samples", "--json"), ("inspect", "perceptron:training", "--json")
    samples, found = map(json.loads, called(copy, *calls))
    listed = {row["name"]: row for row in samples}
    for name in ("perceptron", "perceptron:training"):
        assert "Rumelhart" in listed[name]["source"]
    assert found["num_ops"] == listed["perceptron:training"]["num_ops"]


def test_a_machine_that_is_written_as_a_preset_is_one(copy):
    path = copy / "assets" / "machines" / "bench.json"
    write = ("machine", "--lanes", "1", "--preset", str(path))
    _, told = called(copy, write, ("machine", "--machine", "bench", "--json"))
    found = json.loads(told)
    content = json.loads(path.read_text())
    assert content["name"] == "bench" and content["note"].endswith(".")
    assert content["libraries"] == []
    assert all(d["core_ids"] == [] and d["label"] == "" for d in content["devices"])
    assert all(d["flops_per_s"] > 0 and d["memory_bytes_per_s"] > 0 for d in content["devices"])
    pairs = {(a["name"], b["name"]) for a in content["devices"] for b in content["devices"]}
    linked = {(link["src"], link["dst"]) for link in content["links"]}
    assert linked == {(a, b) for a, b in pairs if a != b}
    assert found["name"] == "bench" and len(found["devices"]) == len(content["devices"])


def test_the_page_is_in_the_menu_and_is_drawn(copy, tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    assert "sizes" in answered(copy, "-c", PAGE).split()


def test_the_conformance_tests_try_them(copy):
    told = answered(
        copy, "-m", "pytest", "-v", "-p", "no:cacheprovider", "tests/placers/test_placers.py",
        "tests/exporters/test_exporters.py", "tests/loaders/test_registry.py",
        "tests/profiling/backends/test_backends.py", "tests/loaders/test_zoo.py",
        "-k", "dice or device-list or test_registry or test_backends or perceptron"
    )  # fmt: skip
    passed = [line for line in told.splitlines() if " PASSED" in line]
    for new in ("dice", "device-list", "test_registry", "toy", "reference", "perceptron"):
        assert any(new in line for line in passed), told
