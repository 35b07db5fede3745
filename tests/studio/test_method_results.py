"""A method's result takes the place of its earlier one, but not of one that has been run."""

import time
from dataclasses import replace

import pytest

from pages.ui.session.current import snapshot
from studio.project import placements, store
from studio.project.files import write_json


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    monkeypatch.setattr("pages.ui.session.choices.may_write", lambda: True)
    made = store.create()
    made.change(model="onnx-squeezenet", machine="null-2")
    return made


def on_one_device(placement, device):
    return replace(placement, device_of=dict.fromkeys(placement.device_of, device), order=None)


def run_of(project, placement):
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    about = {"devices_key": placements.devices_key(placement)}
    record = {"verb": "run", "argv": [], "pid": -1, "born_at": 0, "started_at": 0, "about": about}
    write_json(folder / "job.json", record)


def test_what_was_run_stays_beside_what_the_method_finds_later(project):
    now = snapshot(project)
    shelf = now.shelf
    first, second, third = (
        on_one_device(now.placement, device) for device in ("null:0", "null:1", "null:0")
    )

    def kept(placed):
        return placements.keep(project, shelf, "single", placed, "single", {})

    assert kept(first) == "single"
    assert kept(second) == "single"
    assert shelf.read("single") == second
    run_of(project, second)
    assert kept(second) == "single"
    other = kept(third)
    assert other != "single"
    assert shelf.read("single") == second and shelf.read(other) == third
