"""Placements measured against each other on the Place page: asked for, told, and what may win."""

import json
import shlex
import time

import pytest

from pages.ui.session.current import snapshot
from studio.jobs import kinds
from studio.project.facts import FILE, HAND, Facts
from studio.project.files import write_json
from tests.pages.test_pages import checked, own_home, placed, shown, texts

assert own_home
WHOLE = "whole CPU as one device"


def row(name, seconds, placement, **more):
    about = {"predicted_s": 0.02, "low_s": 0.9 * seconds, "high_s": 1.1 * seconds, "turns": 12}
    return {"name": name, "measured_s": seconds, "placement": placement, **about, **more}


def raced(project, *, whole_wins=False, is_certain=True, load=None):
    """A place job that has ended with a race, and what is told of it."""
    now = snapshot(project)
    here = now.placement.to_json()
    whole = {**here, "machine": "local:1", "device_of": dict.fromkeys(here["device_of"], "cpu:0")}
    best = row("search", 0.010, here)
    one = row(WHOLE, 0.008 if whole_wins else 0.015, whole, left="" if whole_wins else "slower")
    rows = [one, best] if whole_wins else [best, one]
    machine = "local:1" if whole_wins else ""
    result = {
        "value": 0.02,
        "unit": "s",
        "placement": rows[0]["placement"],
        "measured_s": rows[0]["measured_s"],
        "finals": {"rows": rows, "is_certain": is_certain, "machine": machine, "load": load},
    }
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    about = {"placer": "auto", "shelf": now.shelf.folder.name}
    record = {"verb": "place", "argv": [], "pid": -1, "born_at": 0, "started_at": 0}
    write_json(folder / "job.json", {**record, "about": about})
    (folder / "events.jsonl").write_text(json.dumps({"event": "result", **result}) + "\n")
    return kinds.collect(now)


@pytest.fixture
def project():
    return placed(model="onnx-squeezenet", machine="null-2")


def test_the_table_stands_beside_the_placement_that_won(project):
    app = shown(project, "compare")
    assert "Measured turn by turn" not in [e.label for e in app.expander]
    assert raced(project) == ["Placed by auto: predicted 20 ms, measured 10 ms."]
    app.run()
    assert "search is the fastest measured, and that is certain." in texts(checked(app))
    table = next(t.value for t in app.dataframe if "95 % interval" in t.value.columns)
    assert list(table["Placement"]) == ["search", WHOLE]
    assert list(table["95 % interval"]) == ["9 ms to 11 ms", "13.5 ms to 16.5 ms"]
    assert list(table["Out"])[1] == "slower after 12 turns"


def test_a_race_beside_others_is_doubted_wherever_it_is_told(project):
    load = {"seconds": 5.0, "others_s": 0.3, "num_cores": 2, "beside": 0.02}
    (told,) = raced(project, load=load, is_certain=False)
    app = shown(project, "compare")
    assert "doubtful" not in told and "trust this order" not in texts(app)
    assert "but more turns might say otherwise" in texts(app)
    (told,) = raced(project, load={**load, "others_s": 9.0})
    assert "measured 10 ms while other programs computed (doubtful, measure again)" in told
    told = texts(checked(app.run()))
    assert "those on several devices most" in told and "before you trust this order" in told


def test_where_the_whole_cpu_wins_the_best_on_this_machine_is_kept_and_a_button_leads_there(
    project,
):
    (told,) = raced(project, whole_wins=True)
    assert told.endswith("measured 10 ms. The whole CPU as one device is faster still, 8 ms.")
    now = snapshot(project)
    assert now.named.name == "auto" and now.placement.machine != "local:1"
    assert set(now.placement.device_of.values()) <= set(now.machine.index)
    app = shown(project, "compare")
    assert "for the machine local:1" in texts(app)
    next(b for b in app.button if b.label == "Use the CPU as one device").click().run()
    assert project.settings.lanes == 1 and project.settings.machine == "local"
    assert len(snapshot(project).machine.devices) == 1


def test_measuring_in_the_end_is_asked_for_by_a_switch_and_stands_in_the_command():
    project = placed(model="onnx-squeezenet")
    now = snapshot(project)
    for name, made_by in (("mine", HAND), ("brought", FILE), ("found", "single")):
        now.shelf.add(name, now.placement, made_by, Facts())
    app = shown(project, "place")
    next(t for t in app.toggle if t.label == "Measure in the end").set_value(True).run()
    limit = next(n for n in app.number_input if n.label == "Seconds of measuring")
    limit.set_value(45.0).run()
    command = next(str(c.value) for c in checked(app).code if " place " in str(c.value))
    words = shlex.split(command.splitlines()[0])
    assert "--live" in words and words[words.index("--live-limit") + 1] == "45"
    # One's own take part, too; what methods found finds itself.
    beside = [words[i + 1].partition("=")[0] for i, word in enumerate(words) if word == "--beside"]
    assert beside == ["mine", "brought"]
    menu = next(box for box in app.selectbox if box.label == "Method")
    menu.select("mutation").run()
    labels = [n.label for n in checked(app).number_input]
    assert "Placements to measure" in labels and "Seconds of measuring" not in labels
