"""Values of different times never stand side by side; a change of times says what it changed."""

import dataclasses

import pytest
from msgspec import structs
from streamlit.testing.v1 import AppTest

import placement as pl
from pages.ui.panels import yardstick
from pages.ui.session.current import snapshot
from pages.ui.what_if import ask_method
from placement.api.results.placing import PlaceResult
from placement.core import formatting
from placement.core.placement import Placement
from placement.costs.what_if import ConditionRows
from profiling.measuring.store import ProfileStore
from studio import editing, standings
from studio import snapshot as studio
from studio.jobs import outcomes, runs
from studio.jobs.outcomes import what_if_shelf
from tests.pages.going import go
from tests.pages.test_pages import (
    APP,
    checked,
    finished_run,
    menu,
    metric,
    opened,
    placed,
    profile_for,
    shown,
    texts,
)

REASON = "The times are measured now; before they were estimates"


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def again(project):
    return snapshot(project)


def measured(project, factor=1.0):
    """Make the project's times measured ones, each op this many milliseconds."""
    now = again(project)
    profile = profile_for(now.model, now.machine)
    took = tuple(tuple(s * factor for s in row) for row in profile.compute_s)
    ProfileStore().put(dataclasses.replace(profile, compute_s=took))


def seconds(now, name):
    value = pl.simulate(now.problem, standings.placement_of(now, name)).value
    return formatting.seconds(value, now.problem.unit)


def test_values_shown_as_estimates_are_told_anew_once_times_are_measured():
    app, project = opened("place", model="onnx-squeezenet", machine="null-2")
    first = again(project)
    name, once = first.named.name, seconds(first, first.named.name)
    seen = first.placement
    assert metric(app, "Predicted step time").value == once and REASON not in texts(app)
    measured(project)
    checked(app.run())
    now = seconds(again(project), name)
    said = f"{name}: {once} was an estimate, with measured times the same placement takes {now}"
    assert once != now and REASON in texts(app) and said in texts(app)
    assert metric(app, "Predicted step time").value == now
    # Placed again, the name is of another placement than the one that was shown.
    later = again(project)
    later.shelf.replace(name, pl.place(later.problem, "round_robin").placement)
    checked(app.run())
    again_since = f"placed again by its method since, so {name} is another now"
    assert said in texts(app) and again_since in texts(app)
    later.shelf.replace(name, seen)
    # It stays on every page until somebody has taken note.
    checked(go(app, "compare"))
    assert said in texts(app)
    checked(next(b for b in app.button if b.label == "Understood").click().run())
    assert REASON not in texts(app)
    measured(project, 2.0)
    checked(app.run())
    assert "The model was measured again" in texts(app) and f"{now} came from" in texts(app)


def test_a_placement_made_by_measured_times_does_not_hide_what_was_an_estimate():
    app, project = opened("place", model="onnx-squeezenet", machine="null-2")
    first = again(project)
    name, once = first.named.name, seconds(first, first.named.name)
    measured(project)
    later = again(project)
    found = pl.place(later.problem, "single")
    later.shelf.add("single", found.placement, "single", studio.facts_of(found))
    checked(app.run())
    assert later.shelf.current.name == "single"
    assert f"{name}: {once} was an estimate" in texts(app)


def test_messages_of_methods_name_the_times_they_are_by():
    told = PlaceResult(value=0.0361, unit="s", costs="measured")
    assert outcomes.predicted(told) == "predicted 36.1 ms by measured times"
    assert outcomes.predicted(structs.replace(told, costs="analytic")).endswith(
        " by estimated times"
    )
    assert outcomes.predicted(structs.replace(told, costs="given")) == "predicted 36.1 ms"


def test_a_message_about_a_placement_goes_when_another_one_is_shown():
    project = placed(model="onnx-squeezenet", machine="null-2")
    now = again(project)
    now.shelf.add("mine", pl.place(now.problem, "single").placement, "single")
    now.shelf.choose("heft")
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    app.session_state["messages-page"] = [["info", "Placed by heft: predicted 3 ms."]]
    checked(go(app, "place"))
    assert "Placed by heft" in texts(app)
    checked(menu(app, "Placement").set_value("mine").run())
    assert again(project).named.name == "mine" and "Placed by heft" not in texts(app)


def test_messages_stay_as_long_as_what_they_are_about():
    """As after an edit, which redraws a part of the page with its messages and not the page."""
    project = placed(model="onnx-squeezenet", machine="null-2")
    now = again(project)

    def part(key):
        import streamlit as st

        from pages.ui.session import choices
        from pages.ui.session.current import studio
        from pages.ui.shell import messages

        st.query_params["project"] = key
        if st.session_state.pop("fresh", True):
            choices.say("info", "Placed by heft.")
            choices.say("error", "The result could not be kept.")
            messages.take(studio())
        messages.still_true(studio())

    script = AppTest.from_function(part, kwargs={"key": project.id}, default_timeout=120)
    script.session_state["fresh"] = True
    checked(script.run())
    script.session_state["fresh"] = False
    assert [e.value for e in checked(script.run()).info] == ["Placed by heft."]
    first = now.model.graph.ops[0].name
    target = next(d.name for d in now.machine.devices if d.name != now.placement.device_of[first])
    editing.edit(now, (first,), target)
    script.session_state["fresh"] = False
    script.run()
    assert not script.info and [e.value for e in script.error] == ["The result could not be kept."]


def test_answers_for_what_if_machines_are_predicted_by_the_times_of_now():
    project = placed(model="onnx-squeezenet", machine="null-2")
    now = again(project)
    found = pl.place(now.problem, "single")
    told = studio.facts_of(found)
    facts = structs.replace(told, what_if=ConditionRows(), unchanged_value=found.value)
    what_if_shelf(project.folder, now.shelf.folder.name).add("one", found.placement, "x", facts)
    measured(project)
    later = again(project)
    (item,) = what_if_shelf(project.folder, now.shelf.folder.name).items
    value = formatting.seconds(pl.simulate(later.problem, found.placement).value)
    assert (
        ask_method.values_of(later, item)
        == (value, value)
        != (formatting.seconds(found.value),) * 2
    )


def test_the_run_page_has_the_menu_of_placements_and_shows_runs_of_the_one_on_it():
    project = placed(model="onnx-squeezenet", machine="null-2")
    now = again(project)
    name = now.named.name
    finished_run(project)
    now.shelf.add("mine", pl.place(now.problem, "single").placement, "single")
    now.shelf.choose(name)
    app = shown(project, "run")
    assert menu(app, "Placement").options == [name, "mine"]
    assert metric(app, "Measured step time").value == "30 ms"
    checked(menu(app, "Placement").set_value("mine").run())
    assert "No run yet. The placement mine is predicted" in texts(app)
    assert not [m for m in app.metric if m.label == "Measured step time"]
    assert "To run: the placement **mine**" in texts(app)


def test_the_prediction_beside_a_run_is_of_its_placement_by_the_times_of_now():
    project = placed(model="onnx-squeezenet", machine="null-2")
    finished_run(project, placement=again(project).placement.to_json())
    measured(project)
    app = shown(project, "run")
    now = again(project)
    (job,) = runs.finished(project)
    value = pl.simulate(now.problem, now.placement).value
    assert runs.predicted_s(now, job) == value != job.result.predicted_s
    assert metric(app, "Predicted").value == formatting.seconds(value)
    assert metric(app, "Predicted").delta.startswith(
        formatting.percent(value / 0.030 - 1, signed=True)
    )


def test_ops_that_went_to_what_they_are_fused_with_are_told():
    project = placed(model="onnx-squeezenet", machine="null-2")
    now = again(project)
    ops = [op.name for op in now.model.graph.ops]
    devices = [device.name for device in now.machine.devices]
    apart = Placement(now.placement.graph, now.placement.machine, dict.fromkeys(ops, devices[0]))
    moved = dataclasses.replace(apart, device_of={**apart.device_of, ops[0]: devices[1]})
    once, anew = yardstick.Value(apart, 1.0), yardstick.Value(moved, 2.0)
    assert "with 1 op moved to what it is fused with" in yardstick.of_what(once, anew)
    assert yardstick.of_what(once, once) == "the same placement"
