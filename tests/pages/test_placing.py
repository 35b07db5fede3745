"""What a method is asked to do, what it may not move, and what becomes of its answer."""

import base64
import json
import re
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.panels import device_loads
from pages.ui.panels.device_loads import Load
from pages.ui.session.current import snapshot
from placement.core.verb_options import PlaceOptions
from placement.drawing.colours.palette import device_pattern
from studio.jobs import command_line, kinds
from studio.project import pins, store
from studio.project.files import write_json
from tests.pages.going import go
from tests.pages.test_pages import checked, opened, texts

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    monkeypatch.setattr("pages.ui.session.choices.may_write", lambda: True)
    made = store.create()
    made.change(model="onnx-squeezenet", machine="null-2")
    return made


def now(project):
    return snapshot(project)


def ops_of(project):
    return [op.name for op in now(project).model.graph.ops]


def test_few_pins_stand_in_the_command_and_many_in_a_file(project):
    assert command_line.fixed_ops(now(project)) == []
    ops = ops_of(project)
    pins.pin(now(project), ops[:1])
    device = now(project).pins[ops[0]]
    assert command_line.fixed_ops(now(project)) == [f"--pin={ops[0]}={device}", "--mend"]
    pins.pin(now(project), ops)
    option, path, mend = command_line.fixed_ops(now(project))
    assert (option, mend) == ("--pins", "--mend")
    assert json.loads(Path(path).read_text()) == dict(now(project).pins)
    lasting = command_line.fixed_ops(now(project), lasting=True)[1]
    pins.unpin(now(project), ops[:1])
    assert len(json.loads(Path(lasting).read_text())) == len(ops) > len(now(project).pins)


def test_the_selection_is_handed_on_in_files_with_the_placement_as_it_is(project):
    ops = ops_of(project)[:3]
    keep, placement, move, names, mend = command_line.fixed_ops(now(project), ops)
    assert (keep, move, mend) == ("--keep", "--move", "--mend")
    assert json.loads(Path(placement).read_text()) == now(project).placement.to_json()
    assert json.loads(Path(names).read_text()) == ops


def test_place_takes_the_fields_as_they_stand_when_it_is_pressed(project, monkeypatch):
    """Typed and pressed at once: the page has not been drawn with the new values yet."""
    started = []
    monkeypatch.setattr(kinds, "start_place", lambda now, *asked: started.append(asked))
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    go(app, "place")
    app.selectbox(key=f"placer-{project.id}").set_value("annealing")
    app.number_input(key=f"place-seed-{project.id}").set_value(7)
    next(b for b in app.button if b.label == "Place").click()
    app.run()
    assert not app.exception
    assert started == [(PlaceOptions(placer="annealing", time_limit_s=5.0, seed=7), ())]
    app.number_input(key=f"time-limit-{project.id}-annealing").set_value(2.5)
    next(b for b in app.button if b.label == "Place").click()
    app.run()
    assert started[1] == (PlaceOptions(placer="annealing", time_limit_s=2.5, seed=7), ())


def test_what_was_typed_stays_with_its_project(project):
    other = store.create()
    other.change(model=project.settings.model, machine=project.settings.machine)
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    go(app, "place")
    app.selectbox(key=f"placer-{project.id}").set_value("annealing").run()
    app.number_input(key=f"place-seed-{project.id}").set_value(7)
    moves = next(n for n in app.number_input if n.label == "Max iterations")
    moves.set_value(12).run()
    app.query_params["project"] = other.id
    app.run()
    app.selectbox(key=f"placer-{other.id}").set_value("annealing").run()
    assert not app.exception
    assert app.number_input(key=f"place-seed-{other.id}").value == 0
    assert next(n for n in app.number_input if n.label == "Max iterations").value != 12


def finished_job(project, placer, num_selected, **result):
    """A place job that has ended with the placement that is on the screen."""
    placed = now(project)
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    about = {"placer": placer, "shelf": placed.shelf.folder.name, "num_selected": num_selected}
    about |= {"num_pinned": 0, "from": placed.named.name}
    record = {"verb": "place", "argv": [], "pid": -1, "born_at": 0, "started_at": 0}
    write_json(folder / "job.json", {**record, "about": about})
    answer = {"value": 0.02, "unit": "s", "placement": placed.placement.to_json(), **result}
    (folder / "events.jsonl").write_text(json.dumps({"event": "result", **answer}) + "\n")


def test_answers_for_a_selection_stand_beside_everything_else(project):
    first = now(project).named.name
    by_hand = now(project).shelf.duplicate(first)
    for expected in ("single on 2 ops", "single on 2 ops 2"):
        finished_job(project, "single", 2)
        assert kinds.collect(now(project)) == [f"Placed by {expected}: predicted 20 ms."]
        assert now(project).named.name == expected
    facts = now(project).named.facts
    assert (facts.num_selected, facts.start) == (2, "single on 2 ops")
    names = [item.name for item in now(project).shelf.items]
    assert names == [first, by_hand, "single on 2 ops", "single on 2 ops 2"]


def test_what_was_found_until_a_stop_is_kept(project):
    finished_job(project, "annealing", 0, cancelled=True)
    assert "the best that annealing had found is kept" in kinds.collect(now(project))[0]
    assert now(project).named.name == "annealing"


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_loads_are_those_of_the_prediction(project, objective):
    project.change(objective=objective)
    found = device_loads.loads_of(now(project))
    predicted, counts = now(project).simulated, now(project).placement.ops_per_device()
    assert [load.device for load in found] == [d.name for d in now(project).machine.devices]
    assert [load.num_ops for load in found] == [counts.get(load.device, 0) for load in found]
    assert [load.memory_bytes for load in found] == [predicted.peak_bytes[x.device] for x in found]
    if objective == "latency":
        assert [load.busy_s for load in found] == [predicted.busy_s[x.device] for x in found]
    else:
        assert max(load.busy_share for load in found) <= 1 + 1e-9
    assert all(load.busy_share == pytest.approx(load.busy_s / predicted.value) for load in found)


def test_all_bars_have_one_width_whatever_stands_beside_them():
    few = Load("a", "#0072b2", 1, 0.5, 0.25, 3, 2000)
    many = Load("b", "#e69f00", 12_345, 123.456, 0.987, 123_456_789, 987_654_321)
    drawn = device_loads.html([few, many, Load("c", "#009e73", 0, 0.0, 0.0, 0, None)], "s")
    tracks = re.findall(r'class="track" style="flex:([^;]+);', drawn)
    # Of a width of its own each, that neither grows nor shrinks: two for each device.
    assert tracks == [f"0 0 {device_loads.TRACK}"] * 6


def test_bars_and_squares_have_the_hatch_of_their_device(project):
    loads = device_loads.loads_of(now(project))
    assert [load.pattern for load in loads] == [device_pattern(i) for i in range(len(loads))]
    assert "url(" not in device_loads.html(loads, "s")
    drawn = device_loads.html(loads[:2], "s", hatched=True)
    tile = r"background:#e69f00 url\(data:image/svg\+xml;base64,(\S+)\) 0 0/8px"
    tiles = re.findall(tile, drawn)
    # Its square, and its bars of time and memory; the first device is plain everywhere.
    assert len(tiles) == drawn.count("url(") == 3
    assert f'd="{device_pattern(1)}"' in base64.b64decode(tiles[0]).decode()


def test_names_of_devices_are_shown_letter_by_letter_and_too_much_is_said():
    load = Load("<img src=x>", "#0072b2", 1, 0.5, 0.25, 3000, 2000)
    drawn = device_loads.html([load], "s")
    assert "<img" not in drawn and "&lt;img src=x&gt;" in drawn
    assert "too much" in drawn and "width:25.0%" in drawn and "width:100.0%" in drawn
    free = device_loads.html([Load("a", "#0072b2", 2, 0.5, 0.25, 3000, None)], "s")
    assert "too much" not in free and "2 ops" in free and " of " not in free


def test_what_was_put_aside_is_shown_when_somebody_asks_for_it():
    app, project = opened("place", model="onnx-squeezenet", machine="null-2")
    first = now(project).named.name
    finished_job(project, "annealing", 0)
    record = max((project.folder / "jobs").iterdir()) / "job.json"
    told = json.loads(record.read_text())
    told["about"]["screen"] = "of before an edit"
    write_json(record, told)
    checked(app.run())
    assert now(project).named.name == first
    assert "annealing has ended: " in texts(app) and f"against {first}." in texts(app)
    next(b for b in app.button if b.label == "Show it").click()
    checked(app.run())
    assert now(project).named.name == "annealing" and "has ended" not in texts(app)
