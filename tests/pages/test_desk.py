"""The Studio page: addresses of before, the score against a reference, and fragments by name."""

import json
import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.desk import present, score
from placement import simulate
from placement.core import formatting
from placement.core.placement import Placement
from profiling.measuring.store import ProfileStore
from studio import editing
from studio.consequence import Change
from studio.project import pins
from studio.project.file_cache import by_identity
from studio.snapshot import bound_of
from studio.transfer.placement_file import open_file
from tests.instances import canonical_file
from tests.pages.going import open_tab, opened_tab
from tests.pages.test_pages import (
    APP,
    checked,
    finished_run,
    menu,
    opened,
    own_home,
    placed,
    profile_for,
    shown,
    snapshot,
    texts,
)
from tests.thorough import either

__all__ = ["own_home"]
ADDRESSES = {
    "place": "Timeline",
    "timeline": "Timeline",
    "run": "Run",
    "compare": "Board",
    "what_if": "What if",
}


SMALL = {"model": "onnx-squeezenet", "machine": "null-2"}


def test_an_address_of_before_leads_to_what_it_had():
    app, project = opened("model", **SMALL)
    # From each to one that leads to another tab.
    walk = ("place", "run", "timeline", "compare", "what_if")
    assert {*walk} == {*ADDRESSES}
    for address in walk:
        checked(app.switch_page(f"pages/{address}.py").run())
        assert opened_tab(app) == ADDRESSES[address]
        assert "Place" in [b.label for b in app.button]
        assert app.query_params["project"] in (project.id, [project.id])


@pytest.mark.thorough
@pytest.mark.parametrize("address", either(["run", "what_if"], [*ADDRESSES]))
def test_a_session_may_begin_at_an_address_of_before(address):
    project = placed(**SMALL)
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    checked(app.switch_page(f"pages/{address}.py").run())
    assert opened_tab(app) == ADDRESSES[address]


def test_the_score_is_held_against_the_reference_that_a_person_chooses():
    app, project = opened("studio", **SMALL)
    now = snapshot(project)
    assert menu(app, "Against").options == ["all on null:0", "all on null:1"]
    now.shelf.add("alone", editing.all_on(now, "null:1"), "single", show=False)
    checked(app.run())
    for name in ("all on null:1", "alone"):
        menu(app, "Against").set_value(name).run()
        # What was run now is the score alone.
        checked(app.run())
        other_s = simulate(now.problem, editing.all_on(now, "null:1")).value
        change = formatting.percent(now.simulated.value / other_s - 1.0, signed=True)
        assert f":small[against {name}]" in texts(app) and f"**{change}**" in texts(app)
        assert project.settings.form["reference"] == name


def test_the_first_reference_is_the_device_that_is_hardest_to_beat():
    """On a laptop that is not the CPU, which stands first."""
    app, project = opened("studio", model="onnx-squeezenet", machine="laptop-gpu")
    now = snapshot(project)
    values = {
        device.name: simulate(now.problem, editing.all_on(now, device.name)).value
        for device in now.machine.devices
    }
    best = min(values, key=lambda name: values[name])
    assert best != now.machine.devices[0].name
    assert menu(app, "Against").value == f"all on {best}"
    assert f":small[against all on {best}]" in texts(app)
    change = formatting.percent(now.simulated.value / values[best] - 1.0, signed=True)
    assert (f"**{change}**" if now.simulated.value != values[best] else "the same") in texts(app)


def simulated(now, value_s, range_s=None):
    return replace(now.simulated, value=value_s, range_s=range_s)


def test_a_change_is_told_by_its_direction_and_a_tie_is_neither_praised_nor_blamed():
    project = placed(**SMALL)
    now = snapshot(project)
    one = simulated(now, 1.0)
    assert ":green[**-20%**]" in score.against(simulated(now, 0.8), one, "heft")
    slower = score.against(simulated(now, 1.5), one, "heft")
    assert ":orange[**+50%**]" in slower and "against heft" in slower
    assert "the same" in score.against(one, one, "heft")
    assert "not possible" in score.against(one, None, "heft")
    assert ":gray[**" in score.against(simulated(now, 0.8), one, "heft", holds=False)
    assert "against heft, not allowed" in score.against(one, one, "heft", broken=("It is large.",))
    unfair = score.against(simulated(now, 0.8), one, "heft", broken=("It is large.",))
    assert ":gray[**-20%**]" in unfair
    near = simulated(now, 1.054, (0.95, 1.2))
    assert ":gray[**+5.4%**, a tie]" in score.against(near, one, "heft")


def test_the_sentence_before_an_audience_judges_as_the_score_does():
    """What is a tie there is not told as a gain here."""
    faster, tied = Change(1.0, 0.9, "s"), Change(1.0, 0.9, "s", is_tie=True)
    assert present.compared(faster) == "10% less than before"
    assert present.compared(Change(1.0, 1.1, "s")) == "10% more than before"
    assert present.compared(tied).startswith("a tie with before") and "%" not in present.compared(
        tied
    )
    assert tied.text.endswith("a tie")
    for same in (Change(1.0, 1.0, "s"), Change(1.0, 1.0, "s", is_tie=True)):
        assert present.compared(same) == "as long as before" and "no change" in same.text


def test_before_an_audience_another_placement_is_no_change(monkeypatch):
    project = placed(**SMALL)
    kept = {}
    monkeypatch.setattr(present.choices, "kept", lambda key, default: kept.get(key, default))
    monkeypatch.setattr(present.choices, "keep", kept.__setitem__)

    def told():
        present.notice_change(snapshot(project))
        return kept.get(present.CHANGE, "")

    def move(op):
        now = snapshot(project)
        home = now.placement.device_of[op]
        away = next(d.name for d in now.machine.devices if d.name != home)
        editing.edit(now, [op], away)
        return editing.label(now, snapshot(project).history.done[-1])

    first, *_, last = snapshot(project).model.graph.index
    told()
    made = move(first)
    assert told().startswith(f"{made}; now "), "the copy that an edit makes has that one step"
    open_file(
        snapshot(project), "mine.json", json.dumps(snapshot(project).placement.to_json()).encode()
    )
    assert told().startswith("The placement mine is on the screen: ")
    editing.undo(snapshot(project))
    assert told().startswith("The placement manual is on the screen: ")
    editing.redo(snapshot(project))
    assert told().startswith("The placement mine is on the screen: ")
    pins.pin(snapshot(project), [last])
    snapshot(project).shelf.choose("heft")
    told()
    snapshot(project).shelf.choose("mine")
    assert told().startswith("The placement mine is on the screen: ")


def test_the_list_of_changes_counts_the_steps_that_it_shows():
    project = placed(**SMALL)
    first = snapshot(project).named.name
    content = json.dumps(snapshot(project).placement.to_json()).encode()
    ops = list(snapshot(project).model.graph.index)
    snapshot(project).shelf.add("own", snapshot(project).placement, "hand")
    for name in (first, "own"):
        snapshot(project).shelf.choose(name)
        open_file(snapshot(project), "mine.json", content)
        pins.pin(snapshot(project), [ops[len(snapshot(project).history.done)]])
    assert len(snapshot(project).history.done) == 3
    app = shown(project, "studio")
    checked(open_tab(app, "History"))

    def listed():
        return [b.label for b in app.button if (b.key or "").startswith("change-")]

    assert "3 of 3 steps are made" in texts(app)
    assert [re.search(r"\d+", label)[0] for label in listed()] == ["3", "2", "1", "0"]
    assert listed()[-1].endswith("what was on the screen before")
    checked(next(b for b in app.button if b.label in listed()[1:2]).click().run())
    assert "2 of 3 steps are made" in texts(app)
    assert len(snapshot(project).history.done) == 2
    checked(next(b for b in app.button if b.label == listed()[-1]).click().run())
    assert snapshot(project).named.name == "own"
    # What was opened in its place is one more step.
    assert "0 of 1 step is made" in texts(app)


def test_the_yardstick_is_worked_out_once_for_a_problem_whatever_is_edited(monkeypatch):
    worked_out = []
    app, project = opened("studio", **SMALL)
    # Remembered anew, for what was before may know it from another test.
    monkeypatch.setattr(score, "all_on", by_identity(16)(score.all_on.__wrapped__))
    everything_on = score.everything_on
    monkeypatch.setattr(
        score, "everything_on", lambda *about: worked_out.append(1) or everything_on(*about)
    )
    checked(app.run())
    assert len(worked_out) == 1
    for op in list(snapshot(project).model.graph.index)[:2]:
        now = snapshot(project)
        other = next(d for d in ("null:0", "null:1") if d != now.placement.device_of[op])
        editing.edit(now, (op,), other)
        assert snapshot(project).placement != now.placement
        checked(app.run())
        assert len(worked_out) == 1
    checked(menu(app, "Against").set_value("all on null:1").run())
    assert len(worked_out) == 2


def test_the_yardstick_stays_where_a_device_cannot_run_all_and_that_is_moved(tmp_path):
    """Its own place for such an op is the fastest, wherever the placement on the screen has it."""
    content = canonical_file()
    content["ops"][3]["times_s"] = [None, 8.0, 17.0]
    path = tmp_path / "gap.json"
    path.write_text(json.dumps(content))
    project = placed(model_kind="path", model=str(path))
    references = []
    for device in ("P2", "P3"):
        now = snapshot(project)
        editing.edit(now, ("n4",), device)
        now = snapshot(project)
        assert now.placement.device_of["n4"] == device
        references.append(score.reference_of(now, "all on P1"))
    problem = snapshot(project).problem
    alone = dict.fromkeys(problem.graph.index, "P1") | {"n4": "P2"}
    there = Placement(problem.graph.fingerprint, problem.machine.name, alone)
    assert [found.value for found in references] == [simulate(problem, there).value] * 2


def test_pins_leave_the_yardstick_as_it_is():
    project = placed(**SMALL)
    now = snapshot(project)
    name = f"all on {now.machine.devices[0].name}"
    there = [op for op, d in now.placement.device_of.items() if d != now.machine.devices[0].name]
    before = score.against(now.simulated, score.reference_of(now, name), name)
    pins.pin(now, there[:5])
    later = snapshot(project)
    assert len(later.pins) >= 5
    assert score.against(later.simulated, score.reference_of(later, name), name) == before
    assert "best possible" in texts(shown(project, "studio"))


def test_a_bound_of_estimates_says_that_it_is_one():
    app, project = opened("studio", **SMALL)
    assert "best possible, estimated" in texts(app)
    now = snapshot(project)
    ProfileStore().put(profile_for(now.model, now.machine))
    told = texts(checked(app.run()))
    assert "best possible" in told and "best possible, estimated" not in told


def test_a_run_below_the_bound_says_that_the_costs_hold_no_longer():
    project = placed(model="onnx-squeezenet")
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    bound_s = bound_of(snapshot(project))
    # Just below is noise, far below cannot be.
    for share, is_told in ((0.97, False), (0.3, True)):
        median = share * bound_s
        finished_run(project, step_s={"median": median, "p5": median, "p95": median})
        told = texts(checked(app.run()))
        assert ("less than the estimates allow" in told) == is_told
        assert ("best possible" in told) != is_told
        assert ":green[**" not in told or not is_told
    # What is predicted elsewhere is marked too, and so is the way to better times.
    for tab in ("Board", "What if"):
        told = texts(checked(open_tab(app, tab)))
        assert "Trust no predicted time here" in told, tab


def test_what_a_run_found_stands_above_the_fields_that_start_one():
    project = placed(model="onnx-squeezenet")
    finished_run(project)
    labels = [getattr(element, "label", "") for element in shown(project, "run").main]
    assert labels.index("Measured step time") < labels.index("Steps")


def test_only_the_tab_that_is_open_is_computed(monkeypatch):
    app, _ = opened("studio", **SMALL)
    asked = []
    for name in ("hints", "memory"):
        real = getattr(score.cache, name)
        monkeypatch.setattr(
            score.cache, name, lambda *of, real=real, name=name: asked.append(name) or real(*of)
        )
    for tab, names in (("Table", set()), ("Hints", {"hints"}), ("Memory", {"memory"})):
        asked.clear()
        checked(open_tab(app, tab))
        assert set(asked) == names, tab


def test_what_a_page_learns_first_is_gone_and_moves_nothing_later():
    """A part that stood elsewhere in the next run would be drawn anew in the browser."""
    app, _ = opened("studio", **SMALL)

    def parts():
        found = {}
        for place, child in app.main.children.items():
            block = getattr(child, "proto", None)
            found[place] = (child.type, getattr(block, "id", ""))
        return found

    def named(block, name):
        inside = getattr(block, "children", {}).values()
        own = name in getattr(getattr(block, "proto", None), "id", "")
        return own + sum(named(child, name) for child in inside)

    first = parts()
    assert not [w for w in (*app.button, *app.selectbox, *app.checkbox) if w.label == "first"]
    checked(app.run())
    assert parts() == first
    assert named(app.main, "desk-graph") == 1
