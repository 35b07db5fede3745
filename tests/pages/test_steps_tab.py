"""The tab Steps without a browser: which methods it offers, and what becomes of its button."""

import json
from dataclasses import replace

import pytest
from msgspec import structs

from pages.ui.session import cache
from pages.ui.steps import player
from pages.ui.steps.walk import Walk
from placement import place, simulate, steps
from placement.api.steps import Steps, placers_with_steps
from placement.core.amounts import in_unit
from placement.core.problem import Execution
from placement.core.problem_json import problem_from_json
from placement.placers import placer_class
from placement.search.steps import Question, Step
from studio import editing, following
from studio.project import store
from studio.snapshot import FOLLOWED, facts_of, facts_of_steps
from tests.instances import canonical_file
from tests.pages.going import open_tab
from tests.pages.test_pages import checked, menu, opened, own_home, snapshot, texts
from tests.thorough import either
from tests.workloads import diamond

__all__ = ["own_home"]

PATIENCE_S = 120


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """As on a computer on which all methods were followed before."""
    monkeypatch.setattr(following, "is_compiled", lambda problem, placer: True)


def followed(tmp_path, content):
    path = tmp_path / "small.json"
    path.write_text(json.dumps(content))
    app, project = opened("studio", model_kind="path", model=str(path))
    return checked(open_tab(app, "Steps")), project


def test_methods_that_show_their_steps_are_offered_and_their_answer_is_taken(tmp_path, monkeypatch):
    app, project = followed(tmp_path, canonical_file())
    offered = menu(app, "Method to follow")
    assert {"heft", "cpop", "peft", "etf"} <= set(offered.options)
    assert not {"auto", "manual"} & set(offered.options)
    assert "auto does not show its steps: it runs other methods side by side" in texts(app)
    checked(offered.set_value("cpop").run())
    # It is there already: nothing places once more in the page's process.
    monkeypatch.setattr(cache.pl, "place", None)
    checked(next(b for b in app.button if b.label == "Make this the placement").click().run())
    now = snapshot(project)
    assert now.named.name == now.named.made_by == "cpop"
    assert simulate(now.problem, now.placement).value == 86.0
    assert editing.all_on(now, "P1") != now.placement


@pytest.mark.thorough
@pytest.mark.parametrize("name", either(placers_with_steps()[::2], placers_with_steps()))
def test_what_is_kept_of_an_answer_is_what_place_would_tell(tmp_path, name):
    """But for how long it took, of every method that shows its steps."""
    kind = placer_class(name)
    is_call = Execution.SEGMENT not in kind.executions
    path = tmp_path / "small.json"
    path.write_text(json.dumps(diamond() if is_call else canonical_file()))
    goal = kind.objectives[0]
    project = store.create()
    project.change(model_kind="path", model=str(path), objective=goal)
    now = snapshot(project)
    brief = {"max_iterations": 1} if kind.followed_with else {}
    posed = now.pinned_problem
    if posed.execution not in kind.executions:
        posed = replace(posed, execution=Execution.SEGMENT)
        now.__dict__["pinned_problem"] = posed
    placed = place(posed, name, settings=brief)
    found = steps(posed, name, most=40, settings=brief)
    assert found.placement == placed.placement
    told = facts_of(placed)
    account = "; ".join(filter(None, (told.account, FOLLOWED)))
    expected = structs.replace(told, seconds=found.seconds, account=account)
    assert facts_of_steps(now, found) == expected


def test_a_workload_and_a_learner_are_followed_too(tmp_path):
    app, project = followed(tmp_path, diamond())
    offered = menu(app, "Method to follow")
    assert {"linear_dp", "metis", "mutation"} <= set(offered.options)
    assert not {"heft", "branch_and_bound"} & set(offered.options)
    # Its search goes on elsewhere while the page is there.
    checked(offered.set_value("mutation").run())
    assert "Followed for 40 batches; Place searches as long as its settings say." in texts(app)
    ahead = following.find(snapshot(project).pinned_problem, "mutation")
    assert ahead.result().steps
    checked(app.run())
    taken = next(b for b in app.button if b.label == "Make this the placement")
    checked(taken.click().run())
    now, found = snapshot(project), ahead.result()
    assert now.named.name == now.named.made_by == "mutation"
    assert now.placement == found.placement
    facts = now.named.facts
    assert facts.value == in_unit(simulate(now.problem, found.placement).value, now.problem.unit)
    assert facts.lower_bound <= facts.value and "is the best of" in facts.account
    assert facts.problem == now.pinned_problem.fingerprint and facts.seconds > 0


@pytest.mark.only_thorough
def test_a_search_that_is_cancelled_can_be_followed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(placer_class("mutation"), "followed_with", {"max_iterations": 1_000_000})
    app, project = followed(tmp_path, canonical_file())
    checked(menu(app, "Method to follow").set_value("mutation").run())
    ahead = following.find(snapshot(project).pinned_problem, "mutation")
    checked(next(b for b in app.button if b.label == "Cancel").click().run())
    assert ahead.done.wait(PATIENCE_S) and ahead.is_stopped
    app.run()
    assert "Stopped before it finished." in [info.value for info in app.info]
    monkeypatch.setattr(placer_class("mutation"), "followed_with", {"max_iterations": 2})
    checked(next(b for b in app.button if b.label == "Follow it again").click().run())
    again = following.find(snapshot(project).pinned_problem, "mutation")
    assert again is not ahead and again.result().steps


def test_a_method_that_is_not_compiled_yet_is_followed_beside_the_page(tmp_path, monkeypatch):
    """Compiling may take a minute: meanwhile it is told, and can be cancelled."""
    monkeypatch.setattr(following, "is_compiled", lambda problem, placer: False)
    app, project = followed(tmp_path, canonical_file())
    ahead = following.find(snapshot(project).pinned_problem, "heft")
    checked(next(b for b in app.button if b.label == "Cancel").click().run())
    assert ahead.done.wait(PATIENCE_S) and ahead.is_stopped
    checked(app.run())
    assert "Stopped before it finished." in [info.value for info in app.info]
    noted = []
    monkeypatch.setattr(following, "note_warm", noted.append)
    checked(next(b for b in app.button if b.label == "Follow it again").click().run())
    again = following.find(snapshot(project).pinned_problem, "heft")
    assert again.result().placement == again.result().steps[-1].placement
    assert noted == ["heft:steps:latency:op"], "from now on it shows its steps at once"
    checked(app.run())
    checked(next(b for b in app.button if b.label == "Make this the placement").click().run())
    now = snapshot(project)
    assert now.named.made_by == "heft" and simulate(now.problem, now.placement).value == 80.0
    assert now.named.facts.seconds == again.result().seconds > 0


@pytest.mark.parametrize(
    ("limit", "value", "latency_s"), [("AT_ONCE_S", -1.0, 3.0), ("MOST_AT_ONCE", 1, 4.0)]
)
def test_what_would_hold_up_the_page_goes_on_beside_it(
    tmp_path, monkeypatch, limit, value, latency_s
):
    """Whether that is known of a problem's size, or found out on the way."""
    monkeypatch.setattr(cache, limit, value)
    # A problem that no other test has followed.
    content = canonical_file()
    content["links"][0]["latency_s"] = latency_s
    app, project = followed(tmp_path, content)
    posed = snapshot(project).pinned_problem
    ahead = following.find(posed, "heft")
    assert ahead is not None and "Cancel" in [button.label for button in app.button]
    own = steps(posed, "heft")
    assert [step.why for step in ahead.result().steps] == [step.why for step in own.steps]
    checked(app.run())
    assert "Cancel" not in [button.label for button in app.button]
    checked(next(b for b in app.button if b.label == "Make this the placement").click().run())
    assert snapshot(project).placement == own.placement


def test_an_answer_that_is_as_good_is_right_and_both_are_named():
    asked = Question("Where?", ("P1", "P2", "P3"), "P1", ("P3",))
    step = Step(line=0, why="", devices=(), question=asked)
    found = Steps("heft", ("go",), problem_from_json(canonical_file(), "canonical"), (step,))
    for given, num_right in ((0, 1), (2, 1), (1, 0)):
        shown = Walk("heft", found, 0, True, {0: given})
        assert shown.num_right == num_right
        told = player.asked_of(shown)
        assert told["right"] == [0, 2] and told["equal"] == "Equally good: P1, P3."
    untold = player.asked_of(Walk("heft", found, 0, True, {}))
    assert untold["right"] == [] and untold["equal"] == ""
