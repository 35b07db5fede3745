"""One file is enough: what docs/design.md shows as "how to add", put into a copy of the studio."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.profiling.live import diamond

ROOT = Path(__file__).parents[1]
STUDIO = ("app.py", "pages", "placement", "profiling", "studio", "assets", "tests")


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


# One process answers what the tests below ask: each of their own would import the same libraries
# once more. What fails, fails in the test that is about it.
ANSWERS = """
import json, subprocess, sys, traceback
from pathlib import Path
import pytest
from tests.command import call_here

calls, tests, out = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
said, passed = {}, []

def page_in_menu():
    from streamlit.testing.v1 import AppTest
    page = AppTest.from_file("app.py", default_timeout=120)
    page.switch_page("pages/sizes.py")
    page.run()
    assert not page.exception, page.exception
    import app
    pages = sorted(app.PAGES.glob("*.py"), key=app.place_in_menu)
    return subprocess.CompletedProcess("page", 0, " ".join(place.stem for place in pages), "")

def note(name, answer):
    try:
        done = answer()
        said[name] = [done.returncode or 0, done.stdout, done.stderr]
    except Exception:
        said[name] = [1, "", traceback.format_exc()]

for name, words in calls.items():
    note(name, lambda: call_here(*words))

class Noted:
    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            passed.append(report.nodeid)

status = int(pytest.main(tests, [Noted()]))
# Not before: Streamlit imports what is a plugin of pytest's, too.
note("page", page_in_menu)
with open(out, "w") as file:
    json.dump({"said": said, "status": status, "passed": passed}, file)
"""
# Of every file of the conformance tests those about what was added, but for one that looks through
# all placements there are, which takes long where nothing is compiled.
TESTS = (
    "-q", "-p", "no:cacheprovider", "tests/placers/test_placers.py",
    "tests/exporters/test_exporters.py", "tests/loaders/test_registry.py",
    "tests/profiling/backends/test_backends.py", "tests/loaders/test_zoo.py",
    "-k",
    "(dice and not brute_force) or device-list or edge-list or perceptron"
    " or (test_backends and (toy or reference))",
)  # fmt: skip


def shown_machine() -> str:
    """The machine file that the section shows."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    return re.search(r"```json\n(.*?)```", text.partition("**A backend**")[2], re.DOTALL)[1]


class Answers:
    """What the copy printed when it was called, and the files that it was told to write."""

    def __init__(self, copy: Path, folder: Path) -> None:
        self.folder, self.preset = folder, copy / "assets" / "machines" / "bench.json"
        self.placed, self.listed = folder / "p.json", folder / "list.txt"
        model, toys = folder / "pair.edges", folder / "toys.json"
        model.write_text("a -> b\nb ->\n")
        toys.write_text(shown_machine())
        diamond(folder)
        pair = (str(model), "--machine", "null-2")
        dice = ("--placer", "dice", "--set", "stay=1", "--out", str(self.placed))
        how = ("--placement", str(self.placed), "--format", "device-list")
        both = ("run", str(folder / "small.onnx"), "--machine", "local", "--analytic")
        calls = {
            "placers": ("placers", "--json"),
            "exporters": ("exporters", "--json"),
            "place": ("place", *pair, *dice),
            "export": ("export", *pair, *how, "--out", str(self.listed)),
            "toy": ("run", str(model), "--machine", str(toys), "--placer", "single", "--json"),
            "local": ("machine", "--json"),
            "alone": ("machine", "--machine", "local:reference", "--json"),
            "both": (*both, "--placer", "round_robin", "--json"),
            "samples": ("samples", "--json"),
            # Of the two networks the one with more to count.
            "network": ("inspect", "perceptron:training", "--json"),
            "preset": ("machine", "--lanes", "1", "--preset", str(self.preset)),
            "bench": ("machine", "--machine", "bench", "--json"),
        }
        answers = folder / "answers.json"
        asked = ("-c", ANSWERS, json.dumps(calls), json.dumps(TESTS), str(answers))
        # Compiled code is kept by path, so all of it would be compiled once more for the copy.
        variables = {"NUMBA_DISABLE_JIT": "1", "PLACEMENT_STUDIO_HOME": str(folder / "home")}
        done = subprocess.run(
            (sys.executable, *asked),
            cwd=copy,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        self.told = done.stdout
        self._answers = json.loads(answers.read_text())
        self.passed: list[str] = self._answers["passed"]

    def of(self, name: str) -> str:
        status, printed, errors = self._answers["said"][name]
        assert status == 0, errors
        return printed

    def json(self, name: str) -> Any:
        return json.loads(self.of(name))

    def status_of_tests(self) -> int:
        return self._answers["status"]


@pytest.fixture(scope="module")
def answers(copy, tmp_path_factory):
    return Answers(copy, tmp_path_factory.mktemp("asked"))


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


def test_the_command_line_lists_and_uses_them(answers):
    listed = {row["name"]: row for row in answers.json("placers")}
    assert listed["dice"]["settings"]["stay"]["type"] == "float"
    assert "device-list" in {row["name"] for row in answers.json("exporters")}
    assert answers.of("place") and answers.of("export")
    device_of = json.loads(answers.placed.read_text())["device_of"]
    assert set(device_of) == {"a", "b"} and len(set(device_of.values())) == 1
    assert answers.listed.read_text() == "".join(f"{op} {d}\n" for op, d in device_of.items())


def test_what_runs_on_the_toy_is_called_emulated(answers):
    result = answers.json("toy")
    assert result["emulated"] is True and result["outputs_match"] is None
    assert set(result["actual_devices"]) == {"toy:0"}


def test_a_backend_that_computes_is_part_of_this_computer(answers):
    """Where it makes the same kernels as onnxruntime both run one model together."""
    machine, alone = answers.json("local"), answers.json("alone")
    runtimes = {d["name"]: d["runtime"] for d in machine["devices"]}
    assert runtimes["cpu:0"] == "onnxruntime" and runtimes["reference:0"] == "reference"
    assert not {"null", "toy"} & set(runtimes.values()) and not machine["emulated"]
    assert [d["name"] for d in alone["devices"]] == ["reference:0"]
    result = answers.json("both")
    assert result["outputs_match"] is True and result["emulated"] is False
    assert result["actual_devices"]["reference:0"] == "numpy" and len(result["actual_devices"]) == 2


def test_the_network_is_listed_with_the_ops_that_it_has(answers):
    listed = {row["name"]: row for row in answers.json("samples")}
    for name in ("perceptron", "perceptron:training"):
        assert "Rumelhart" in listed[name]["source"]
    assert answers.json("network")["num_ops"] == listed["perceptron:training"]["num_ops"]


def test_a_machine_that_is_written_as_a_preset_is_one(answers):
    assert answers.of("preset")
    found, content = answers.json("bench"), json.loads(answers.preset.read_text())
    assert content["name"] == "bench" and content["note"].endswith(".")
    assert content["libraries"] == []
    assert all(d["core_ids"] == [] and d["label"] == "" for d in content["devices"])
    assert all(d["flops_per_s"] > 0 and d["memory_bytes_per_s"] > 0 for d in content["devices"])
    pairs = {(a["name"], b["name"]) for a in content["devices"] for b in content["devices"]}
    linked = {(link["src"], link["dst"]) for link in content["links"]}
    assert linked == {(a, b) for a, b in pairs if a != b}
    assert found["name"] == "bench" and len(found["devices"]) == len(content["devices"])


def test_the_page_is_in_the_menu_and_is_drawn(answers):
    assert "sizes" in answers.of("page").split()


def test_the_conformance_tests_try_them(answers):
    for new in ("dice", "device-list", "edge-list", "toy", "reference", "perceptron"):
        assert any(new in test for test in answers.passed), answers.told
    assert answers.status_of_tests() == 0, answers.told
