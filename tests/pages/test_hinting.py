"""Moves that would save most: listed, made by their button, undone; and what the menu offers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import placement as pl
from pages.ui.panels import best_moves
from pages.ui.session import cache
from pages.ui.session.current import snapshot
from placement.advice.best_moves import Hint
from placement.core.placement import Placement
from studio import snapshot as studio
from studio.jobs import methods
from studio.project import store
from tests.instances import random_problem
from tests.pages.going import go, open_tab
from tests.pages.problems import diamond, everywhere
from tests.workloads import diamond as diamond_workload

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def badly_placed(**settings):
    """A project whose placement deals the ops out in turn, so that single moves help."""
    project = store.create()
    project.change(model="onnx-squeezenet", machine="null-2", **settings)
    now = snapshot(project)
    placed = pl.place(now.problem, "round_robin")
    now.shelf.add("round_robin", placed.placement, "round_robin", studio.facts_of(placed))
    return project


def opened(project, *, hints=False):
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    app.session_state["command-open"] = True
    go(app, "place")
    return checked(open_tab(app, "Hints") if hints else app)


def checked(app):
    assert not app.exception, app.exception[0].message
    return app


def state(project):
    return snapshot(project)


def apply_buttons(app):
    return [b for b in app.button if b.label == "Apply"]


def test_moves_are_looked_for_only_while_somebody_looks(monkeypatch):
    project = badly_placed()

    def refuse(*given):
        raise AssertionError("The list is closed; nobody asked.")

    monkeypatch.setattr(cache, "hints", refuse)
    assert not apply_buttons(opened(project))


def test_a_move_is_applied_as_an_edit_by_hand_and_undone():
    project = badly_placed()
    app = opened(project, hints=True)
    before = state(project)
    found = pl.hints(before.problem, before.placement)
    assert 2 <= len(found) == len(apply_buttons(app)) <= 10
    shown = "\n".join(str(m.value) for m in app.markdown).replace("\\", "")
    assert f"{best_moves.way(before, found[0])}, {best_moves.saving(before, found[0])}" in shown

    checked(apply_buttons(app)[0].click().run())
    after = state(project)
    assert after.named.name == "manual" and after.shelf.read("round_robin") == before.placement
    assert all(after.placement.device_of[op] == found[0].device for op in found[0].ops)
    assert after.simulated.value == pytest.approx(found[0].value_s)
    assert len(apply_buttons(app)) == len(pl.hints(after.problem, after.placement))

    checked(next(b for b in app.button if b.label == "Undo").click().run())
    assert state(project).placement.device_of == before.placement.device_of


def test_where_no_move_helps_it_says_so(tmp_path):
    """Of a lone op both devices need the same."""
    content = {
        "format": "placement-problem",
        "devices": [{"name": "p1"}, {"name": "p2"}],
        "links": [],
        "ops": [{"name": "a", "times_s": [2.0, 2.0]}],
        "tensors": [],
    }
    (tmp_path / "lone.json").write_text(json.dumps(content))
    project = store.create()
    project.change(model_kind="path", model=str(tmp_path / "lone.json"))
    app = opened(project, hints=True)
    assert any(c.value == "No single move helps." for c in app.caption)
    assert not apply_buttons(app)


def test_a_second_session_can_look_at_moves_but_not_make_them():
    project = badly_placed()
    opened(project)
    second = opened(project, hints=True)
    assert apply_buttons(second) and all(b.disabled for b in apply_buttons(second))


class Now:
    """As much of a project as the wording needs."""

    problem = diamond()
    machine = problem.machine
    placement = everywhere(problem, b="cpu:1")


def test_a_move_is_told_with_its_way_and_its_share():
    mixed = Hint(("a_conv", "b_conv"), "block", "cpu:1", 0.0, 0.025)
    assert best_moves.way(Now, mixed) == "cpu:0 to cpu:1"
    assert best_moves.saving(Now, mixed) == "then everything fits, in 25 ms"
    saves = Hint(("b_conv",), "b", "cpu:0", 0.005, 0.020)
    assert best_moves.way(Now, saves) == "cpu:1 to cpu:0"
    assert best_moves.saving(Now, saves) == "saves 5 ms (20%)"


def test_what_the_score_would_call_a_tie_is_no_gain():
    saves = Hint(("b_conv",), "b", "cpu:0", 0.005, 0.020)
    tie = replace(saves, is_tie=True)
    assert best_moves.saving(Now, tie) == "saves 5 ms (20%), a tie"
    assert best_moves.heading((tie, saves), every=True).startswith("Predicted, each")
    assert best_moves.heading((tie,), every=True).startswith("No single move saves more than")
    assert best_moves.heading((), every=True) == "No single move helps."


def test_predictions_of_one_placement_with_other_calls_are_kept_apart(tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps(diamond_workload()))
    problem = pl.load(str(path)).problem
    accelerator = next(d.name for d in problem.machine.devices if not d.on_host)
    device_of = dict.fromkeys((op.name for op in problem.graph.ops), accelerator)
    once = Placement(problem.graph.fingerprint, problem.machine.name, device_of)
    twice = Placement(once.graph, once.machine, device_of, calls={accelerator: 2})
    assert cache.simulated(problem, once) is not cache.simulated(problem, twice)
    assert cache.simulated(problem, twice) is cache.simulated(problem, twice)


def test_the_menu_begins_with_auto_and_leaves_out_what_does_not_fit():
    listed = methods.offered(random_problem(0))
    assert next(iter(listed)) == methods.DEFAULT and not {"manual", "expert"} & set(listed)
    assert all("segment" in about.executions for about in listed.values())
    left = methods.left_out(random_problem(0))
    assert "pipedream" in left and "linear_dp" in listed and not set(left) & set(listed)


def test_auto_is_the_default_with_a_limit_and_a_remembered_choice_wins():
    project = store.create()
    project.change(machine="null-2")
    app = opened(project)
    menu = next(s for s in app.selectbox if s.label == "Method")
    limit = next(n for n in app.number_input if n.label == "Time limit (s)")
    assert (menu.value, limit.value) == ("auto", methods.SEARCH_S)
    checked(limit.set_value(2.0).run())
    assert "--placer auto" in app.code[-1].value and "--time-limit 2" in app.code[-1].value
    menu = next(s for s in app.selectbox if s.label == "Method")
    checked(menu.set_value("heft").run())
    limit = next(n for n in app.number_input if n.label == "Time limit (s)")
    assert limit.value is None and "--time-limit" not in app.code[-1].value
    again = opened(project)
    assert next(s for s in again.selectbox if s.label == "Method").value == "heft"
    menu = next(s for s in app.selectbox if s.label == "Method")
    checked(menu.set_value("auto").run())
    assert next(n for n in app.number_input if n.label == "Time limit (s)").value == 2.0


def test_a_method_that_does_not_know_the_goal_cannot_be_started():
    project = store.create()
    project.change(machine="null-2", objective="throughput", form={"placer": "heft"})
    app = opened(project)
    assert next(b for b in app.button if b.label == "Place").disabled
    assert any("does not work for the goal Most samples" in str(c.value) for c in app.caption)


@pytest.mark.parametrize(
    "objective", ["latency", pytest.param("throughput", marks=pytest.mark.only_thorough)]
)
def test_a_workload_is_placed_at_once_by_a_method_that_fits(objective, tmp_path):
    (tmp_path / "small.json").write_text(json.dumps(diamond_workload()))
    project = store.create()
    project.change(model_kind="path", model=str(tmp_path / "small.json"), objective=objective)
    app = opened(project)
    labels = {m.label for m in app.metric}
    assert "Sent per step" not in labels and "Ops per device" in labels
    offered = next(s for s in app.selectbox if s.label == "Method").options
    assert "heft" not in offered and {"auto", "linear_dp"} <= set(offered)
    assert studio.first_placer(state(project).problem) in offered
