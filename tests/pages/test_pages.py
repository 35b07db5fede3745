"""Every page in every state that a person can meet: drawn without a trace, saying what is so."""

import itertools
import json
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import canvas
from pages.ui.forms import option_fields
from pages.ui.session import choices
from pages.ui.session.current import snapshot
from pages.ui.shell import messages
from placement import list_placers
from profiling.execution.execute import BY_ROUNDING
from studio import editing
from studio import snapshot as studio
from studio.jobs import jobs
from studio.jobs import kinds as start
from studio.project import claim, placements, store
from studio.project.files import write_json
from tests.pages.going import go, open_tab
from tests.thorough import either

APP = Path(__file__).parents[2] / "app.py"
PAGES = ("model", "devices", "place", "run", "compare", "what_if")


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def opened(page="model", **settings):
    """The app on one page of a new project with these settings."""
    project = store.create()
    if settings:
        project.change(**settings)
    return shown(project, page), project


def shown(project, page):
    """The app on one page of a project."""
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    app.session_state["command-open"] = True
    go(app, page)
    return checked(app)


def placed(**settings):
    """A new project with these settings and its first placement, which no page has drawn yet."""
    project = store.create()
    if settings:
        project.change(**settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "may_write", lambda: True)
        assert snapshot(project).named.file
    return project


def checked(app):
    assert not app.exception, app.exception[0].message
    assert not any(messages.FAULT in str(e.value) for e in app.error), "see what was logged"
    return app


def texts(app):
    """All that is written on the page, as one text without Markdown's escapes."""
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success, app.text)
    kinds += (app.sidebar.markdown, app.sidebar.caption, app.subheader)
    return "\n".join(str(e.value) for kind in kinds for e in kind).replace("\\", "")


def finished_run(project, **changes):
    """Put a run that has ended into the project, as its files would tell it."""
    now = snapshot(project)
    timeline = now.simulated.timeline.to_json()
    result = {
        "event": "result",
        "step_s": {"median": 0.030, "p5": 0.029, "p95": 0.033},
        "steps_s": [0.030, 0.029, 0.033],
        "predicted_s": 0.027,
        "error": -0.1,
        "costs": "measured",
        "baseline_s": {"cpu:0": 0.040, "cpu:1": None},
        "all_cores_s": 0.020,
        "outputs_match": True,
        "max_abs_diff": 0.0,
        "skipped_outputs_reason": "",
        "requested_devices": {"cpu:0": "CPUExecutionProvider", "cpu:1": "CPUExecutionProvider"},
        "actual_devices": {"cpu:0": "CPUExecutionProvider", "cpu:1": "CPUExecutionProvider"},
        "fallbacks": [],
        "critical_path": [
            {"kind": k, "name": n, "device": d, "start_s": s, "end_s": e}
            for k, n, d, s, e in (
                ("compute", "n0", "cpu:0", 0.0, 0.015),
                ("transfer", "r0", "cpu:0->cpu:1", 0.015, 0.018),
                ("wait", "n1", "cpu:1", 0.018, 0.030),
            )
        ],
        "busy_s": {"cpu:0": 0.015},
        "num_segments": 12,
        "transfer_bytes": 4096,
        "peak_bytes": {"cpu:0": 2**20},
        "emulated": False,
        "ops_per_device": {"cpu:0": 371},
        "timeline": {**timeline, "origin": "measured"},
        "predicted_timeline": timeline,
    }
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    about = {
        "placement": now.named.name,
        "devices_key": placements.devices_key(now.placement),
        "shelf": now.shelf.folder.name,
        "model": now.model.graph.name,
        "machine": now.machine.name,
        "steps": 3,
        "warmup": 1,
        "collected": True,
    }
    record = {"verb": "run", "argv": [], "pid": -1, "born_at": 0, "started_at": 0, "about": about}
    write_json(folder / "job.json", record)
    (folder / "events.jsonl").write_text(json.dumps({**result, **changes}) + "\n")
    return folder.name


def test_the_model_page_shows_its_command_line_once_it_is_asked_for():
    app, _ = opened()
    assert not app.code
    app.session_state["inspect-open"] = True
    assert "inspect onnx-inception-v2 --json" in checked(app.run()).code[0].value


def open_id(app):
    """The project that the address names."""
    value = app.query_params["project"]
    return value if isinstance(value, str) else value[0]


def menu(app, label):
    return next(s for s in app.selectbox if s.label == label)


def metric(app, label):
    return next(m for m in app.metric if m.label == label)


def test_a_fresh_visit_shows_the_default_sample_placed_and_says_it_is_an_estimate():
    app = checked(AppTest.from_file(str(APP), default_timeout=120).run())
    shown = texts(app)
    assert "onnx-inception-v2 (371 ops)" in shown
    assert "estimated by formula, not measured" in shown
    project = store.find(open_id(app))
    now = snapshot(project)
    assert now.named.name == "heft"
    if len(now.machine.devices) > 1:
        assert len(now.placement.ops_per_device()) > 1


# The other pages of a new project are what most tests below begin with.
@pytest.mark.thorough
@pytest.mark.parametrize("page", either(("compare", "what_if"), PAGES))
def test_every_page_of_a_new_project(page):
    app, _ = opened(page)
    assert len(app.main.children) > 0


ELSEWHERE = ("laptop-gpu", "pcie-4gpu", "nvlink-8gpu", "null-2")
# Every page, and every machine on one of them.
BY_TURNS = [*zip(PAGES, itertools.cycle(ELSEWHERE), strict=False)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("page", "machine"), either(BY_TURNS, [*itertools.product(PAGES, ELSEWHERE)])
)
def test_machines_that_are_not_here_are_marked(page, machine):
    app, _ = opened(page, machine=machine)
    assert "estimated by formula" in texts(app)


def test_the_place_page_predicts_and_names_its_commands():
    app, project = opened("place")
    assert metric(app, "Predicted step time").delta == "estimate"
    assert "s" in metric(app, "Predicted step time").value
    code = app.code[-1].value
    assert "python -m placement place onnx-inception-v2 --placer auto --objective latency" in code
    assert f"--placement {project.folder}" in code


@pytest.mark.thorough
@pytest.mark.parametrize("placer", either(["single"], ["single", "round_robin", "heft"]))
def test_a_placement_by_every_method_is_shown(placer):
    import placement as pl

    app, project = opened("place")
    now = snapshot(project)
    found = pl.place(now.problem, placer)
    now.shelf.add(placer, found.placement, placer, studio.facts_of(found))
    checked(app.run())
    assert menu(app, "Placement").value == placer
    assert f"Found by {placer}" in texts(app)


@pytest.mark.thorough
def test_the_settings_form_follows_the_method():
    app, _ = opened("place")
    for name in either(("single", "heft"), ("single", "round_robin", "heft")):
        menu = next(s for s in app.selectbox if s.label == "Method")
        checked(menu.set_value(name).run())
        assert f"--placer {name}" in app.code[-1].value


def test_a_setting_is_in_the_command():
    method = next(p for p in list_placers() if p["settings"])
    app, project = opened("place", form={"placer": method["name"]})
    name, about = next(iter(method["settings"].items()))
    key = f"set-{method['name']}-{name}-{project.id}"
    if about["type"] == "bool":
        next(t for t in app.toggle if t.key == key).set_value(not about["default"]).run()
    elif about["type"] in ("int", "float"):
        next(n for n in app.number_input if n.key == key).set_value(about["default"] + 1).run()
    else:
        next(t for t in app.text_input if t.key == key).set_value("other").run()
    assert f"--set {name}=" in checked(app).code[-1].value


def test_a_setting_takes_what_its_range_allows():
    app, project = opened("place", form={"placer": "genetic"})
    fields = {n.key: n for n in app.number_input}
    share, number = (fields[f"set-genetic-{x}-{project.id}"] for x in ("mutation", "population"))
    assert (share.min, share.max) == (0.0, 1.0)
    assert number.min == 4


def test_the_goal_is_kept_in_the_project():
    app, project = opened("place")
    checked(next(s for s in app.selectbox if s.label == "Goal").set_value("throughput").run())
    assert project.settings.objective == "throughput"
    assert metric(app, "Predicted time per sample").value
    checked(go(app, "run"))
    assert "--objective throughput" in app.code[-1].value


def test_another_project_on_the_place_page_brings_its_own_goal_and_method(monkeypatch):
    monkeypatch.setattr(start, "start_place", lambda *asked: None)
    app, project = opened("place")
    checked(menu(app, "Goal").set_value("throughput").run())
    checked(menu(app, "Method").set_value("single").run())
    other = store.create()
    app.query_params["project"] = other.id
    checked(app.run())
    assert (menu(app, "Goal").value, menu(app, "Method").value) == ("latency", "auto")
    next(b for b in app.button if b.label == "Place").click()
    checked(app.run())
    assert (other.settings.objective, project.settings.objective) == ("latency", "throughput")


def test_the_devices_page_shows_the_machine_of_each_project():
    app, _ = opened("devices", machine="pcie-4gpu")
    assert menu(app, "Machine").value == "pcie-4gpu"
    app.query_params["project"] = store.create().id
    assert menu(checked(app.run()), "Machine").value == "local"


def test_an_edit_by_hand_starts_a_placement_of_its_own_and_can_be_undone():
    app, project = opened("place")
    now = snapshot(project)
    before = dict(now.placement.device_of)
    name = now.model.graph.ops[0].name
    target = next(d.name for d in now.machine.devices if d.name != before[name])
    told = editing.edit(now, (name,), target)
    assert "'heft' is as it was" in told
    checked(app.run())
    assert next(s for s in app.selectbox if s.label == "Placement").value == "manual"
    assert "1 of 1 step is made" in texts(checked(open_tab(app, "History")))
    checked(next(b for b in app.button if b.label == "Undo").click().run())
    now = snapshot(project)
    assert dict(now.placement.device_of) == before
    checked(next(b for b in app.button if b.label == "Redo").click().run())
    now = snapshot(project)
    assert now.placement.device_of[name] == target
    assert now.shelf.read("heft").device_of[name] == before[name]


def test_placements_are_chosen_renamed_copied_and_deleted():
    app, project = opened("place")
    now = snapshot(project)
    checked(next(b for b in app.button if b.label == "Duplicate").click().run())
    assert [i.name for i in now.shelf.items] == ["heft", "heft copy"]
    checked(next(t for t in app.text_input if t.label == "New name").set_value("mine").run())
    checked(next(b for b in app.button if b.label == "Rename").click().run())
    assert [i.name for i in now.shelf.items] == ["heft", "mine"]
    checked(next(s for s in app.selectbox if s.label == "Placement").set_value("heft").run())
    assert now.shelf.current.name == "heft"
    checked(next(b for b in app.button if b.label == "Delete").click().run())
    assert [i.name for i in now.shelf.items] == ["mine"]


@pytest.mark.thorough
@pytest.mark.parametrize("sample", either(["onnx-squeezenet"], ["onnx-squeezenet", "onnx-alexnet"]))
def test_a_sample_opens_in_one_choice(sample):
    app, project = opened()
    checked(next(s for s in app.sidebar.selectbox if s.label == "Sample").set_value(sample).run())
    assert project.settings.model == sample
    assert f"Model: {sample}" in texts(app)


BAD_PATHS = {
    "missing.onnx": None,
    "empty.onnx": b"",
    "text.onnx": b"this is no model, it is a letter to a friend",
    "notes.txt": b"hello",
    "broken.json": b"{",
}


def test_a_bad_path_is_one_sentence_and_the_open_model_stays(tmp_path):
    app, project = opened()
    for name, content in BAD_PATHS.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        field = next(t for t in app.sidebar.text_input if t.label == "Path on this computer")
        checked(field.set_value(str(tmp_path / name)).run())
        assert len(app.error) == 1 and "\n" not in app.error[0].value, name
        assert name in app.error[0].value, app.error[0].value
        assert project.settings.model == store.DEFAULT_SAMPLE
        assert "Model: onnx-inception-v2" in texts(app)


def test_where_a_model_is_gone_another_can_be_opened(tmp_path):
    """That it is told on every page is shown in test_gallery.py."""
    app, project = opened("model", model_kind="path", model=str(tmp_path / "gone.onnx"))
    assert any("gone.onnx" in str(e.value) for e in app.error)
    menu = next(s for s in app.sidebar.selectbox if s.label == "Sample")
    checked(menu.set_value("onnx-squeezenet").run())
    assert not app.error and store.find(open_id(app)).settings.model == "onnx-squeezenet"
    assert project.settings.model.endswith("gone.onnx")


def onnx_with_open_batch(path):
    import onnx
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 8]) for n in "xy"]
    node = helper.make_node("Relu", ["x"], ["y"], name="only")
    graph = helper.make_graph([node], "open", value[:1], value[1:])
    onnx.save(helper.make_model(graph, ir_version=10), path)


def test_open_dimensions_have_fields_with_what_is_open(tmp_path):
    onnx_with_open_batch(tmp_path / "open.onnx")
    app, project = opened(model_kind="path", model=str(tmp_path / "open.onnx"))
    field = next(n for n in app.number_input if n.label == "batch")
    assert field.value == 1
    checked(field.set_value(4).run())
    assert dict(project.settings.dims) == {"batch": 4}
    assert any("In: x [4, 8]" in str(c.value).replace("\\", "") for c in app.caption)
    app.session_state["inspect-open"] = True
    assert "--dim batch=4" in checked(app.run()).code[-1].value
    # A size that cannot be had is not left in its field.
    (tmp_path / "open.onnx").write_bytes(b"no model any more")
    field = next(n for n in app.number_input if n.label == "batch")
    app = field.set_value(5).run()
    assert app.error and dict(project.settings.dims) == {"batch": 4}
    fields = [n for n in app.number_input if n.label == "batch"]
    assert all(n.value == 4 for n in fields)


def test_more_lanes_than_cores_are_refused():
    app, project = opened("devices")
    checked(next(n for n in app.number_input if n.label == "Lanes of the CPU").set_value(64).run())
    assert "Cannot split the CPU into 64 lanes" in app.error[0].value
    assert project.settings.lanes is None
    field = next(n for n in app.number_input if n.label == "Lanes of the CPU")
    assert field.value == len(snapshot(project).machine.devices)


def test_a_later_session_finds_the_blocks_open_that_were(monkeypatch):
    app, project = opened(model="onnx-squeezenet")
    graph = snapshot(project).model.graph
    group = sorted(canvas.default_expanded(graph) | {"of another model"})[0]
    app.session_state["expanded_of"], app.session_state["expanded"] = graph.fingerprint, [group]
    checked(app.run())
    views = []
    drawn = canvas.mount_view
    monkeypatch.setattr(canvas, "mount_view", lambda view: views.append(view) or drawn(view))
    later = AppTest.from_file(str(APP), default_timeout=120)
    later.query_params["project"] = project.id
    checked(later.run())
    assert views[-1].hash == canvas.build_view(graph, frozenset({group})).hash
    assert views[-1].hash != canvas.build_view(graph, canvas.default_expanded(graph)).hash


def test_a_preset_is_chosen_in_one_step():
    app, project = opened("devices")
    checked(next(s for s in app.selectbox if s.label == "Machine").set_value("pcie-4gpu").run())
    assert project.settings.machine == "pcie-4gpu"
    measure = next(b for b in app.button if b.label == "Measure this model")
    assert measure.disabled


def test_the_menu_of_projects_is_another_one_on_every_page_and_for_every_project():
    """A browser keeps a menu open until another one is in its place."""

    def of_menu(app):
        boxes = app.sidebar.get("popover")
        return [b.proto.id or b.proto.popover.id for b in boxes]

    app, _ = opened()
    found = [of_menu(app), of_menu(checked(go(app, "place")))]
    app.query_params["project"] = store.create().id
    found.append(of_menu(checked(app.run())))
    assert len({str(ids) for ids in found}) == 3, found


def test_a_finished_run_is_told_in_full():
    app, project = opened("run")
    assert "No run yet" in texts(app)
    finished_run(project)
    app.session_state["path-open-Measured"] = True
    told = texts(checked(app.run()))
    assert metric(app, "Measured step time").value == "30 ms"
    assert metric(app, "Predicted").delta == "-10% against measured"
    assert metric(app, "Outputs").value == "match"
    assert "25% faster than the best device alone (cpu:0)" in told
    assert "One device with all cores is faster still: 20 ms" in told
    assert "50% is computing, 10% sending between devices and 40% waiting" in told
    assert "Does not fit alone on: cpu:1" in told
    # Its critical path has the names of blocks.
    table = next(d.value for d in app.dataframe if "Takes" in d.value)
    assert "conv1" in table["Name"][0], table["Name"]


def test_a_run_of_another_model_shows_only_when_somebody_picks_it():
    app, project = opened("run")
    other = finished_run(project)
    project.change(model="onnx-squeezenet")
    assert "No run yet" in texts(checked(app.run()))
    assert not any(m.label == "Measured step time" for m in app.metric)
    assert menu(app, "Run").value is None
    checked(menu(app, "Run").set_value(other).run())
    assert metric(app, "Measured step time").value == "30 ms"
    own = finished_run(project, step_s={"median": 0.010, "p5": 0.009, "p95": 0.011})
    project.change(model="onnx-squeezenet")
    assert metric(checked(app.run()), "Measured step time").value == "30 ms"
    checked(menu(app, "Run").set_value(own).run())
    assert metric(app, "Measured step time").value == "10 ms"


def test_steps_that_scatter_make_the_page_doubt_them():
    project = placed()
    finished_run(project, step_s={"median": 0.074, "p5": 0.048, "p95": 0.312})
    app = shown(project, "run")
    told = texts(app)
    assert "took between 48 ms and 312 ms" in told and "run again when it is quiet" in told
    finished_run(project, step_s={"median": 0.030, "p5": 0.029, "p95": 0.033})
    assert "took between" not in texts(checked(app.run()))


def test_a_run_beside_others_is_doubted_and_one_that_scatters_by_itself_told_apart():
    project = placed()
    load = {"seconds": 1.0, "others_s": 0.8, "num_cores": 2, "slowdown": 1.0}
    finished_run(project, load=load)
    app = shown(project, "run")
    told = texts(app)
    assert "other programs computed on 0.8 of 2 cores" in told and "Trust none" in told
    wide = {"median": 0.074, "p5": 0.048, "p95": 0.312}
    finished_run(project, step_s=wide, load={**load, "others_s": 0.001, "slowdown": 1.3})
    told = texts(checked(app.run()))
    assert "though nothing else computed here" in told and "became 30% slower" in told


def test_a_run_of_a_placement_edited_since_says_so():
    project = placed()
    now = snapshot(project)
    editing.edit(now, (now.model.graph.ops[0].name,), now.machine.devices[-1].name)
    finished_run(project)
    app = shown(project, "run")
    assert "edited after this run" not in texts(app)
    now = snapshot(project)
    editing.edit(now, (now.model.graph.ops[-1].name,), now.machine.devices[-1].name)
    editing.edit(
        snapshot(project),
        (now.model.graph.ops[1].name,),
        now.machine.devices[0].name,
    )
    assert "edited after this run" in texts(checked(app.run()))


def test_outputs_that_differ_fallbacks_and_emulation_stand_out():
    project = placed()
    finished_run(
        project,
        outputs_match=False,
        max_abs_diff=0.5,
        emulated=True,
        fallbacks=["Op n3 ran on CPUExecutionProvider instead of <b>CUDA</b>"],
        lanes_note="Lanes ran in Python, because value 'n3' has no fixed shape.",
    )
    app = shown(project, "run")
    told = texts(app)
    assert "do not trust this run" in told
    assert "Emulated: this run followed a virtual clock" in told
    assert "Lanes ran in Python, because value 'n3' has no fixed shape." in told
    assert "Fell back: Op n3" in told and "Emulated step time" in [m.label for m in app.metric]


def test_outputs_that_rounding_alone_moves_are_told_as_such():
    project = placed()
    finished_run(project, max_abs_diff=0.5, outputs_note=BY_ROUNDING)
    outputs = metric(shown(project, "run"), "Outputs")
    assert outputs.value == "match" and outputs.help.endswith(BY_ROUNDING)
    assert outputs.delta == "largest difference 0.5, by rounding alone"


def test_older_runs_can_be_looked_at_again():
    project = placed()
    first = finished_run(project, step_s={"median": 0.5, "p5": 0.5, "p95": 0.5})
    finished_run(project)
    app = shown(project, "run")
    assert metric(app, "Measured step time").value == "30 ms"
    checked(next(s for s in app.selectbox if s.label == "Run").set_value(first).run())
    assert metric(app, "Measured step time").value == "500 ms"


@pytest.mark.parametrize("verb", ["place", "profile", "run"])
def test_a_job_that_failed_is_one_sentence_until_dismissed(verb):
    page = {"place": "place", "profile": "devices", "run": "run"}[verb]
    project = store.create()
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    record = {"verb": verb, "argv": [], "pid": -1, "born_at": 0, "started_at": 0, "about": {}}
    write_json(folder / "job.json", record)
    (folder / "errors.txt").write_text("Device 'x' is not here; choose another.\n")
    app = shown(project, page)
    assert any("Device 'x' is not here" in str(e.value).replace("\\", "") for e in app.error)
    checked(next(b for b in app.button if b.label == "Dismiss").click().run())
    assert not app.error


def test_a_second_session_can_look_but_not_change(monkeypatch):
    monkeypatch.setattr(option_fields, "may_search_elsewhere", lambda: True)
    app, project = opened("place")
    second = AppTest.from_file(str(APP), default_timeout=120)
    second.query_params["project"] = project.id
    checked(second.run())
    assert "open in another session" in texts(second)
    looks = {"Colour by", "Hatch devices", "Which ops", "Format", "Against"}
    assert "Search on" in {s.label for s in second.selectbox}
    for kind in ("selectbox", "number_input", "slider", "checkbox", "toggle"):
        fields = [f.label for f in second.get(kind) if not f.proto.disabled]
        assert set(fields) <= looks, (kind, fields)
    checked(next(b for b in second.button if b.label == "Take over").click().run())
    assert "open in another session" not in texts(second)
    assert "open in another session" in texts(checked(app.run()))
    checked(next(b for b in app.button if b.label == "Open a copy").click().run())
    assert "open in another session" not in texts(app)
    assert open_id(app) != project.id


def test_an_unknown_project_gives_a_new_one_and_says_so():
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = "nosuchone0"
    checked(app.run())
    assert "There is no project 'nosuchone0' here" in texts(app)


def test_a_project_is_renamed_and_opened_again_from_the_list():
    app, project = opened()
    field = next(t for t in app.sidebar.text_input if t.label == "Name of this project")
    checked(field.set_value("first").run())
    assert project.settings.name == "first"
    checked(next(b for b in app.sidebar.button if b.label == "New project").click().run())
    assert open_id(app) != project.id
    entry = next(b for b in app.sidebar.button if b.label.startswith("first"))
    checked(entry.click().run())
    assert open_id(app) == project.id
    assert claim.holder(project.folder) is not None


def test_placing_from_the_page_runs_a_worker_and_keeps_the_result():
    app, project = opened("place", machine="null-2", form={"placer": "single"})
    checked(next(b for b in app.button if b.label == "Place").click().run())
    job_id = jobs.listed(project.folder, "place")[0]
    while jobs.read(project.folder, job_id).is_live:
        time.sleep(0.05)
    shown = texts(checked(app.run()))
    assert "Placed by single" in shown
    assert next(s for s in app.selectbox if s.label == "Placement").value == "single"


def test_running_from_the_page_on_a_virtual_clock_says_emulated():
    app, project = opened("run", machine="null-2")
    next(n for n in app.number_input if n.label == "Steps").set_value(3).run()
    checked(next(b for b in app.button if b.label == "Run (emulated)").click().run())
    job_id = jobs.listed(project.folder, "run")[0]
    while (job := jobs.read(project.folder, job_id)).is_live:
        time.sleep(0.05)
    assert job.status == "done", job.message
    shown = texts(checked(app.run()))
    assert "Emulated: this run followed a virtual clock" in shown


def problem_file(path):
    """Two ops on two devices with given times, in a unit of the file's own."""
    content = {
        "format": "placement-problem",
        "devices": [{"name": "p1"}, {"name": "p2"}],
        "links": [
            {"src": a, "dst": b, "latency_s": 0.0, "bytes_per_s": 1.0}
            for a, b in (("p1", "p2"), ("p2", "p1"))
        ],
        "ops": [{"name": "a", "times_s": [2.0, 3.0]}, {"name": "b", "times_s": [4.0, None]}],
        "tensors": [{"producer": "a", "consumers": ["b"], "bytes": 5}],
    }
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("page", PAGES)
def test_a_problem_file_brings_its_own_machine_and_times(page, tmp_path):
    problem_file(tmp_path / "given.json")
    app, _ = opened(page, model_kind="path", model=str(tmp_path / "given.json"))
    shown = texts(app)
    if page == "place":
        assert metric(app, "Predicted step time").delta == "from the file"
        assert metric(app, "Ops per device").value == "2 / 0"
    if page == "model":
        assert "(2 ops)" in shown and "Times: given in the file" in shown
    assert not app.error


def profile_for(model, machine):
    """A made-up profile: every op its own kernel, a millisecond each."""
    from placement.core.profile import Profile

    num_ops, num_devices = len(model.graph.ops), len(machine.devices)
    return Profile(
        graph=model.graph.fingerprint,
        machine=machine,
        kernels=model.graph,
        sources=tuple((op.name,) for op in model.graph.ops),
        compute_s=((0.001,) * num_devices,) * num_ops,
        spread=((0.0,) * num_devices,) * num_ops,
        call_s=(0.0,) * num_devices,
        step_s=(0.001 * num_ops,) * num_devices,
        measured_at="2026-01-01T00:00:00+00:00",
    )


def uploader(app, label):
    return next(u for u in app.get("file_uploader") if u.label == label)


def test_machine_and_profile_files_are_taken_over_once_each():
    import placement as pl
    from placement.core.machine import machine_to_text

    app, project = opened("devices", model="onnx-squeezenet")
    mine = pl.machine("null-2")
    machine = ("mine.json", machine_to_text(mine).encode(), "application/json")
    checked(uploader(app, "Machine file (JSON)").set_value(machine).run())
    assert project.settings.machine == "mine.json"
    assert menu(app, "Machine").value == "mine.json"
    now = snapshot(project)
    profile = json.dumps(profile_for(now.model, now.machine).to_json()).encode()
    given = ("times.json", profile, "application/json")
    checked(uploader(app, "Profile file (JSON)").set_value(given).run())
    assert "times.json is used from now on" in texts(app)
    assert "66 kernels on 2 devices" in texts(app)
    checked(app.run())
    assert "times.json is used from now on" not in texts(app)


BAD_FILES = ((b"[" * 100_000, "nested too deeply"), (b'{"devices": []}', "bad.json"))
UPLOADERS = ("Profile file (JSON)", "Machine file (JSON)")


@pytest.mark.parametrize(("content", "said"), BAD_FILES)
def test_bad_machine_and_profile_files_are_one_sentence_each(content, said):
    app, project = opened("devices")
    # One after the other: what the field before was given is told no more.
    for label in UPLOADERS:
        checked(uploader(app, label).set_value(("bad.json", content, "application/json")).run())
        assert len(app.error) == 1 and said in app.error[0].value.replace("\\", ""), label
        assert project.settings.machine == "local"


def test_a_value_that_the_browser_sends_late_changes_nothing():
    """After an edit the old chooser may report its name once more; the edit stays on the screen."""
    app, project = opened("place")
    now = snapshot(project)
    old = next(s for s in app.selectbox if s.label == "Placement")
    first = now.model.graph.ops[0].name
    target = next(d.name for d in now.machine.devices if d.name != now.placement.device_of[first])
    editing.edit(now, (first,), target)
    assert old.value == "heft" and now.shelf.current.name == "manual"

    def late(key):
        import streamlit as st

        from pages.ui.panels import placement_menu
        from pages.ui.session import choices

        st.query_params["project"] = key.partition("|")[0]
        st.session_state["late"] = "heft"
        choices.renew_claim(choices.project(), force=True)
        st.button("late", on_click=placement_menu.choose, args=("late", "heft"))

    script = AppTest.from_function(late, kwargs={"key": f"{project.id}|"}, default_timeout=120)
    checked(checked(script.run()).button[0].click().run())
    assert now.shelf.current.name == "manual"
