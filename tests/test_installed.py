"""The program as `pip install` leaves it: its commands, started in folders of others."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
import urllib.error
import urllib.request
import venv
from pathlib import Path

import onnx
import psutil
import pytest
from onnx import TensorProto, helper

import placement

ROOT = Path(__file__).parents[1]
START_S = 120
HOSTILE = """
[server]
address = "0.0.0.0"
allowedHosts = ["evil.example"]
corsAllowedOrigins = ["https://evil.example"]
baseUrlPath = "hidden"
enableXsrfProtection = false
[browser]
gatherUsageStats = true
[client]
allowedOrigins = ["https://evil.example"]
"""
# Stands for pywebview: notes what is shown, and closes when a file says so.
WEBVIEW = """
import json, os, time
settings, shown = {}, []
def create_window(title, url, **more):
    shown.append([title, url])
def start(**more):
    with open(os.environ["SHOWN"] + ".part", "w") as file:
        json.dump(shown, file)
    os.replace(os.environ["SHOWN"] + ".part", os.environ["SHOWN"])
    while not os.path.exists(os.environ["SHOWN"] + ".closed"):
        time.sleep(0.02)
"""
# Every process of Python begins with it; that of the server writes its settings once it shows.
SITECUSTOMIZE = """
import json, os, sys, threading, time
def write():
    while not os.path.exists(os.environ["SHOWN"]):
        time.sleep(0.05)
    config = sys.modules.get("streamlit.config")
    if config is not None:
        found = {name: option.value for name, option in config.get_config_options().items()}
        with open(os.environ["SETTINGS"] + ".part", "w") as file:
            json.dump(found, file, default=str)
        os.replace(os.environ["SETTINGS"] + ".part", os.environ["SETTINGS"])
threading.Thread(target=write, daemon=True).start()
"""
# A visitor of the installed studio, who asks for the second model that was named at its start.
VISIT = """
import json, os
from streamlit.testing.v1 import AppTest
word = list(json.loads(os.environ["PLACEMENT_STUDIO_MODELS"]))[1]
page = AppTest.from_file("app.py", default_timeout=120)
page.query_params.update(project="new", open=word)
page.run()
assert not page.exception, page.exception
print(json.dumps([e.value for e in page.sidebar.markdown]), dict(page.query_params))
"""


def tiny() -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "tiny", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """The folder of the commands: a wheel of this tree, beside libraries that are here already."""
    made = tmp_path_factory.mktemp("installed")
    source, fresh = made / "source", made / "fresh"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "requirements.txt"):
        shutil.copy(ROOT / name, source)
    shutil.copy(ROOT / "app.py", source)
    caches = shutil.ignore_patterns("__pycache__")
    for name in ("placement", "profiling", "studio", "pages", "assets", ".streamlit"):
        shutil.copytree(ROOT / name, source / name, ignore=caches)
    before = files_in(source)
    venv.create(fresh, with_pip=False, symlinks=True)
    inside = Path(sysconfig.get_path("purelib", vars={"base": fresh, "platbase": fresh}))
    (inside / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = fresh / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    offline = ("--no-deps", "--no-index", "--no-build-isolation")
    subprocess.run((*pip, "--python", python, "install", *offline, source), check=True)
    assert files_in(source) == before, "building leaves files in the source"
    return python.parent


@pytest.fixture
def around(tmp_path, monkeypatch):
    """An environment with folders of its own for whatever is written, and an empty one to be in."""
    for name, folder in (("HOME", "person"), ("XDG_CACHE_HOME", "cache"), ("TMPDIR", "temporary")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    for name in ("PYTHONPATH", "XDG_DATA_HOME", "PLACEMENT_STUDIO_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "empty").mkdir()
    return tmp_path


def files_in(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*")}


def packages(scripts: Path) -> Path:
    return next((scripts.parent / "lib").glob("python*/site-packages"))


def said(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout


def settings_of(file: Path) -> dict[str, object]:
    """Options by their full names, of the sections of a file."""
    sections = tomllib.loads(file.read_text())
    flat = {}
    while sections:
        name, value = sections.popitem()
        if isinstance(value, dict):
            sections |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            flat[name] = value
    return flat


def status(url: str, host: str = "") -> int:
    asked = urllib.request.Request(url, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def addresses(process: psutil.Process) -> set[str]:
    """Where a process and those that it started listen."""
    each = (process, *process.children(recursive=True))
    return {c.laddr.ip for p in each for c in p.net_connections("inet") if c.status == "LISTEN"}


def test_both_commands_tell_the_version_and_know_the_bundled_files(scripts, around):
    folder = around / "empty"
    version = f"placement-studio {placement.__version__}\n"
    assert said(scripts / "placement", "--version", cwd=folder) == version
    assert said(scripts / "placement-studio", "--version", cwd=folder) == version
    named = json.loads(said(scripts / "placement", "samples", "--json", cwd=folder))
    assert {"llama-3.1-8b", "onnx-inception-v2"} <= {sample["name"] for sample in named}
    machine = said(scripts / "placement", "machine", "--machine", "laptop-gpu", cwd=folder)
    assert "cuda:0" in machine
    assert not files_in(folder)


def test_its_packages_have_names_of_their_own(scripts):
    ours = {path.name for path in packages(scripts).iterdir() if path.suffix != ".dist-info"}
    assert ours - {"others.pth", "__pycache__"} == {"placement", "placement_studio", "profiling"}


def test_the_studio_has_its_own_settings_in_a_folder_of_somebody_else(scripts, around):
    """In a window, with which it ends; nothing is written there nor beside the program."""
    folder, fakes = around / "theirs", around / "fakes"
    (folder / ".streamlit").mkdir(parents=True)
    (folder / ".streamlit" / "config.toml").write_text(HOSTILE)
    for name in ("numpy", "streamlit", "pages", "placement"):
        (folder / f"{name}.py").write_text("raise SystemExit('a file of somebody else ran')")
    onnx.save(tiny(), folder / "tiny.onnx")
    fakes.mkdir()
    (fakes / "webview.py").write_text(WEBVIEW)
    (fakes / "sitecustomize.py").write_text(SITECUSTOMIZE)
    shown, settings = around / "shown.json", around / "settings.json"
    fake = {"PYTHONPATH": str(fakes), "SHOWN": str(shown), "SETTINGS": str(settings)}
    # To compile for a single visit, into an empty folder, would take longer than all else here.
    fake["NUMBA_DISABLE_JIT"] = "1"
    before = files_in(packages(scripts)), files_in(folder)
    command = (scripts / "placement-studio", "--window", "onnx-alexnet", "tiny.onnx")
    process = psutil.Popen(command, cwd=folder, env={**os.environ, **fake})
    try:
        end_s = time.monotonic() + START_S
        while (
            not (shown.exists() and settings.exists())
            and process.poll() is None
            and time.monotonic() < end_s
        ):
            time.sleep(0.02)
        (title, url), (_, other) = json.loads(shown.read_text())
        assert (status(url), status(url, "evil.example")) == (200, 403)
        assert addresses(process) == {"127.0.0.1"}
        given = next(iter(process.children())).environ()
        shown.with_name("shown.json.closed").touch()
        assert process.wait(30) == 0
    finally:
        if process.is_running():
            process.terminate()
    assert title == "Placement Studio"
    assert "?project=new&open=" in url and "?project=new&open=" in other and url != other
    had = json.loads(settings.read_text())
    own = settings_of(ROOT / ".streamlit" / "config.toml")
    assert own and {name: had[name] for name in own} == own
    assert had["server.baseUrlPath"] == ""
    visit = (scripts / "python", "-c", VISIT)
    site = packages(scripts) / "placement_studio"
    done = subprocess.run(visit, cwd=site, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Model: tiny (2 ops)" in done.stdout
    assert "'open'" not in done.stdout, "a reload would open it again"
    (project,) = (Path(given["HOME"]) / ".local/share/placement-studio/projects").iterdir()
    stored = json.loads((project / "project.json").read_text())
    assert (stored["model_kind"], stored["model"]) == ("path", str(folder / "tiny.onnx"))
    assert (files_in(packages(scripts)), files_in(folder)) == before
