"""The export panel: every format is offered, made of what is on the screen, or refused."""

import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import canvas
from pages.ui.canvas import colour_switch
from pages.ui.panels import export
from pages.ui.session import choices
from pages.ui.session.current import snapshot
from placement.core.verb_options import ExportOptions
from placement.exporters import exporter, exporters
from studio import editing
from studio.jobs import command_line
from studio.project import store
from tests.pages.going import go
from tests.pages.test_pages import APP, checked, finished_run, placed, texts
from tests.workloads import diamond, node, workload


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


@pytest.fixture
def project():
    """A project with a small sample, which no page has drawn yet."""
    return placed(model="onnx-squeezenet")


@pytest.fixture
def squeezenet(project):
    """The place page of such a project."""
    return exporting(project), project


def exporting(project):
    """The app on the place page of a project, with the panel open."""
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    app.session_state["export-open"] = True
    return checked(go(app, "place"))


def test_every_format_is_offered_with_its_command(squeezenet):
    app, project = squeezenet
    menu = app.selectbox(key="export-format")
    assert len(menu.options) == len(exporters())
    assert menu.options[0] == "Placement (.json)"
    app = checked(menu.set_value("perfetto-trace").run())
    assert "The step for ui.perfetto.dev" in texts(app)
    shown = [code.value for code in app.code if "--format perfetto-trace" in code.value]
    assert len(shown) == 1 and ".pftrace" in shown[0]
    assert app.selectbox(key="export-format").value == "perfetto-trace"
    assert project.settings.form["export-format"] == "perfetto-trace", "it is remembered"


def test_the_files_are_of_the_placement_on_the_screen(project):
    now = snapshot(project)
    moved = now.model.graph.ops[3].name
    other = next(d.name for d in now.machine.devices if d.name != now.placement.device_of[moved])
    stored = json.loads(export.content(project, "json", frozenset()))
    assert stored["device_of"] == dict(now.shelf.read(now.named.name).device_of)
    changed = replace(now.placement, device_of={**now.placement.device_of, moved: other})
    now.shelf.add("mine", changed, "hand")
    again = json.loads(export.content(project, "json", frozenset()))
    assert again["device_of"][moved] == other


@pytest.fixture
def halves(tmp_path):
    """A project whose two ops belong on one device, with a placement from before that was known."""
    path = tmp_path / "pair.json"
    pair = [node(i, 9, 1, colorClass=0) for i in (1, 2)]
    path.write_text(json.dumps(workload(pair, [])))
    project = store.create()
    project.change(model_kind="path", model=str(path))
    now = snapshot(project)
    everywhere = now.problem.placement_of([0])
    now.shelf.add("whole", everywhere, "single")
    first, second = everywhere.device_of
    apart = {first: "acc:0", second: "acc:1"}
    now.shelf.add("split", replace(everywhere, device_of=apart), "single")
    return project


def test_a_placement_that_splits_a_group_is_exported_whole(halves, tmp_path):
    from placement.__main__ import main

    now = snapshot(halves)
    exported = export.content(halves, "json", frozenset())
    assert set(json.loads(exported)["device_of"].values()) == {"acc:0"}
    asked = ExportOptions(format="json", out=str(tmp_path / "out.json"))
    line = command_line.export(now, now.shelf.path("split"), asked)
    assert main([*line, "--json"]) == 0
    assert (tmp_path / "out.json").read_bytes() == exported


def test_a_difference_is_to_the_placement_with_its_groups_whole(halves):
    now = snapshot(halves)
    now.shelf.choose("whole")
    now = snapshot(halves)
    graph = now.model.graph
    view = canvas.build_view(graph, canvas.default_expanded(graph))
    tones = colour_switch.tones_of(now, view, "difference", "split")
    assert len(tones.keys) == 1, "all ops are on the same device"


def test_pictures_show_the_blocks_that_are_open(project):
    graph = snapshot(project).model.graph
    closed = export.content(project, "graph-svg", frozenset())
    groups = frozenset(group.id for group in canvas.scope_tree(graph).groups[1:])
    opened = export.content(project, "graph-svg", groups)
    assert closed.count(b"<title>") < len(graph.ops) < opened.count(b"<title>")


def test_traces_hold_the_newest_run_of_this_placement_and_no_other(project):
    plain = json.loads(export.content(project, "chrome-trace", frozenset()))
    assert {e["pid"] for e in plain["traceEvents"]} == {1}
    finished_run(project)
    both = json.loads(export.content(project, "chrome-trace", frozenset()))
    assert {e["pid"] for e in both["traceEvents"]} == {1, 2}
    now = snapshot(project)
    everywhere = dict.fromkeys(now.placement.device_of, now.machine.devices[0].name)
    now.shelf.add("mine", replace(now.placement, device_of=everywhere), "hand")
    edited = json.loads(export.content(project, "chrome-trace", frozenset()))
    assert {e["pid"] for e in edited["traceEvents"]} == {1}


def test_a_workload_says_why_it_has_no_model_to_export(tmp_path):
    path = tmp_path / "workload.json"
    path.write_text(json.dumps(diamond()))
    project = store.create()
    project.change(model_kind="path", model=str(path))
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    app.session_state["export-open"] = True
    checked(app.run())
    app = checked(app.selectbox(key="export-format").set_value("split-onnx").run())
    assert "has no executable side" in texts(app)
    app = checked(app.selectbox(key="export-format").set_value("csv").run())
    assert "has no executable side" not in texts(app)
    assert export.content(project, "csv", frozenset()).startswith(b"op,kind,")


def test_file_names_are_safe(project):
    now = snapshot(project)
    now.shelf.rename(now.named.name, "../a b/<script>模")
    name = export.file_name(snapshot(project), exporter("csv"))
    assert name == "onnx-squeezenet-.._a_b__script_-csv.csv"


def test_the_command_that_is_shown_writes_the_same_file(project, tmp_path):
    from placement.__main__ import main

    now = snapshot(project)
    for name in ("csv", "graph-svg", "chrome-trace"):
        out = tmp_path / name
        path = now.shelf.path(now.named.name)
        asked = ExportOptions(format=name, out=str(out))
        assert main([*command_line.export(now, path, asked), "--json"]) == 0
        expanded = canvas.default_expanded(now.model.graph)
        label = path.stem
        assert label == now.named.name
        assert out.read_bytes() == export.content(project, name, expanded)


def test_a_download_that_fails_says_why(squeezenet, monkeypatch):
    """The browser only tells that there is no file; the panel says the reason."""
    app, project = squeezenet

    def refuse(*arguments, **options):
        raise ValueError("'m.onnx' has changed since it was opened; open it again.")

    monkeypatch.setattr(export.pl, "export", refuse)
    with pytest.raises(ValueError, match="has changed"):
        export.content(project, "json", frozenset())
    assert "has changed since it was opened" in texts(checked(app.run()))
    other = checked(app.selectbox(key="export-format").set_value("csv").run())
    assert "has changed" not in texts(other), "another format did not fail"


def test_what_a_format_says_is_worked_out_once_for_a_placement(squeezenet, monkeypatch):
    app, project = squeezenet
    asked = []

    def noted(model, problem, placement, format, view):
        asked.append(format)
        return "", "Mind."

    monkeypatch.setattr(export.pl, "export_notes", noted)
    app = checked(app.selectbox(key="export-format").set_value("networkx").run())
    before = len(asked)
    assert "Mind." in texts(checked(app.run())) and len(asked) == before == 1
    now = snapshot(project)
    now.shelf.add("mine", editing.all_on(now, now.machine.devices[0].name), "hand")
    checked(app.run())
    assert len(asked) == 2, "another placement"


def test_before_an_audience_a_picture_shows_the_blocks_that_are_open_there(squeezenet, monkeypatch):
    app, _ = squeezenet
    asked, found = [], canvas.default_expanded

    def noted(graph, most=canvas.FIRST_SIGHT):
        asked.append(most)
        return found(graph, most)

    monkeypatch.setattr(canvas, "default_expanded", noted)
    monkeypatch.setattr(choices, "presenting", lambda: True)
    checked(app.run())
    assert asked and set(asked) == {canvas.PRESENTED_SIGHT}
