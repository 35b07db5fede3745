"""The switch above the picture: every choice draws, says what it shows, and is kept."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import canvas
from pages.ui.canvas import colour_switch
from pages.ui.session.current import snapshot
from placement.drawing.colours import painting
from studio.project.facts import Facts
from studio.project.files import write_json
from tests.pages.going import go
from tests.pages.test_pages import checked, opened, own_home, placed, shown
from tests.workloads import diamond

assert own_home


def switch(app: AppTest):
    return next(box for box in app.selectbox if box.label == "Colour by")


@pytest.mark.parametrize("by", colour_switch.BY)
def test_every_choice_gives_a_tone_to_every_node(by):
    project = placed()
    now = snapshot(project)
    now.shelf.duplicate(now.named.name)
    view = canvas.build_view(now.model.graph, canvas.default_expanded(now.model.graph))
    others = [i.name for i in now.shelf.items if i.name != now.named.name]
    tones = colour_switch.tones_of(now, view, by, others[0])
    if by == "device":
        assert tones is None
        return
    assert tones.title and len(tones.codes) == len(view.nodes)
    assert set(tones.codes) <= set(painting.CODE[: len(tones.keys)]) | {"*", "."}
    assert tones.is_scale == (by in ("time", "time-log", "memory"))
    if by in ("difference", "groups"):
        assert set(tones.codes) == {"0"}, "a copy differs nowhere, and heft forms no groups"


def test_groups_of_the_method_are_told_apart_by_size():
    project = placed()
    now = snapshot(project)
    num_ops = len(now.model.graph.ops)
    groups = [7 if i < num_ops // 3 else 2 for i in range(num_ops)]
    about = {"placer": "hsdag", "shelf": now.shelf.folder.name, "objective": "latency"}
    job = "1"
    record = {"verb": "place", "argv": [], "pid": -1, "born_at": 0, "started_at": 0, "about": about}
    write_json(project.folder / "jobs" / job / "job.json", record)
    result = {"event": "result", "value": 1.0, "unit": "s", "groups": groups}
    (project.folder / "jobs" / job / "events.jsonl").write_text(json.dumps(result) + "\n")
    now.shelf.add("hsdag", now.placement, "hsdag", Facts(job=job))
    now = snapshot(project)
    view = canvas.build_view(now.model.graph, range(len(now.model.graph.ops)))
    tones = colour_switch.tones_of(now, view, "groups", "")
    assert [(key.label, key.count) for key in tones.keys] == [
        ("group 1", num_ops - num_ops // 3),
        ("group 2", num_ops // 3),
    ]
    assert set(tones.codes) >= {painting.CODE[0], painting.CODE[1]}


def test_the_choice_is_kept_in_the_project_and_may_have_nothing_to_compare_with():
    app, project = opened()
    switch(app).select("difference").run()
    checked(app)
    assert len([box for box in app.selectbox if box.label == "Compared with"]) == 0
    go(app, "place")
    go(app, "model")
    assert switch(checked(app)).value == "difference"
    assert project.settings.form["colour-by"] == "difference"


def test_the_difference_is_to_the_placement_that_is_named():
    project = placed()
    now = snapshot(project)
    first = now.named.name
    now.shelf.duplicate(first)
    app = shown(project, "model")
    switch(app).select("difference").run()
    against = next(box for box in checked(app).selectbox if box.label == "Compared with")
    assert against.options == [first]


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_a_workload_has_tones_in_its_own_unit(objective, tmp_path):
    (tmp_path / "small.json").write_text(json.dumps(diamond()))
    project = placed(model_kind="path", model=str(tmp_path / "small.json"), objective=objective)
    now = snapshot(project)
    view = canvas.build_view(now.model.graph, frozenset())
    tones = {by: colour_switch.tones_of(now, view, by, "") for by in colour_switch.BY}
    assert tones["time"].ends[1].endswith(" ms") and "from the file" in tones["time"].title
    assert "There is no other placement" in tones["difference"].title
    assert all(t is None or len(t.codes) == len(view.nodes) for t in tones.values())
