"""The rules of a project: their order, what they do to a placement, and that it is one step."""

import json
import subprocess
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import placement as pl
from pages.ui.panels import rules as ruling
from placement.constraints import regexes
from placement.constraints.rules import REGEX, Rule
from studio import editing
from studio.project import pins, rules
from studio.transfer import archive
from tests.pages.going import go
from tests.pages.problems import diamond
from tests.pages.test_pages import APP
from tests.studio.test_pins import now

HOSTILE = Path(__file__).parents[1] / "hostile"


def devices(project):
    return [d.name for d in now(project).machine.devices]


def convs(project):
    return [op.name for op in now(project).model.graph.ops if op.kind == "Conv"]


def test_rules_are_one_step_that_can_be_undone(project):
    first, second = devices(project)[:2]
    rules.add(now(project), f"*={first}; Conv={second}")
    before = now(project).placement.device_of
    assert "The rules moved" in rules.apply(now(project))
    after = now(project).placement.device_of
    assert {op for op, d in after.items() if d == second} == set(convs(project))
    assert len(now(project).history.done) == 1
    assert "moved nothing" in rules.apply(now(project))
    step = now(project)
    editing.go_to(step, len(step.history.done) - 1)
    assert now(project).placement.device_of == before


def test_a_later_rule_wins_and_the_order_can_be_changed(project):
    first, second = devices(project)[:2]
    rules.add(now(project), f"Conv={second};type:Conv={first}")
    assert [r.trouble for r in rules.rows(now(project))] == ["later rules take all of its ops", ""]
    rules.moved(now(project), 1, Rule("type:Conv", first), -1)
    assert [r.rule.device for r in rules.rows(now(project))] == [first, second]
    rules.apply(now(project))
    assert {now(project).placement.device_of[op] for op in convs(project)} == {second}
    rules.moved(now(project), 0, Rule("type:Conv", first), -1)
    rules.removed(now(project), 1, Rule("type:Conv", first))
    assert len(rules.rules_of(now(project))) == 2, "what has moved on is left alone"
    rules.removed(now(project), 0, Rule("type:Conv", first))
    assert rules.rules_of(now(project)) == (Rule("Conv", second),)


def test_rules_without_effect_are_reported_and_pinned_ops_stay(project):
    first, second = devices(project)[:2]
    rules.keep(now(project), [Rule("Nothing", first), Rule("Conv", "far:0"), Rule("Conv", second)])
    assert [r.trouble for r in rules.rows(now(project))] == [
        "matches no op",
        "this machine has no device 'far:0'",
        "",
    ]
    editing.edit(now(project), convs(project)[:2], first)
    pins.pin(now(project), convs(project)[:2])
    told = rules.apply(now(project))
    assert f"Without effect: Nothing={first}, Conv=far:0." in told
    assert "2 ops are pinned and stayed" in told
    placed = now(project).placement.device_of
    assert {placed[op] for op in convs(project)[:2]} == {first}
    assert {placed[op] for op in convs(project)[2:]} == {second}


def test_an_expression_without_end_is_not_kept_and_one_that_is_there_can_be_removed(
    project, monkeypatch
):
    """It may be there from another model, on whose names it was quick."""
    monkeypatch.setattr(regexes, "BUDGET_S", 0.2)
    first, second = devices(project)[:2]
    endless = Rule("regex:(?:x?|y?){40}!", first)
    with pytest.raises(ValueError, match="takes too long"):
        rules.add(now(project), endless.text)
    assert rules.rules_of(now(project)) == ()
    rules.keep(now(project), [endless, Rule("Conv", second)])
    slow, quick = rules.rows(now(project))
    assert "takes too long" in slow.trouble and (quick.trouble, quick.num_won > 0) == ("", True)
    assert f"Without effect: {endless.text}" in rules.apply(now(project))
    rules.removed(now(project), 0, endless)
    assert rules.rules_of(now(project)) == (Rule("Conv", second),)


@pytest.fixture
def questions(monkeypatch):
    """How many expressions each process was asked for, within a second."""
    asked = []

    class Counted(subprocess.Popen):
        def communicate(self, question=None, **more):
            if question:
                asked.append(len(json.loads(question)[0]))
            return super().communicate(question, **more)

    monkeypatch.setattr(regexes, "BUDGET_S", 1.0)
    monkeypatch.setattr(subprocess, "Popen", Counted)
    return asked


def test_a_hundred_expressions_without_end_have_one_budget_and_are_paid_for_once(
    project, questions
):
    first, second = devices(project)[:2]
    name = now(project).model.graph.ops[0].name
    slow = [Rule(f"regex:(?:x?|y?){{40}}{i}!", first) for i in range(98)]
    rules.keep(now(project), [*slow, Rule(f"regex:^{name}$", second), Rule("Conv", second)])
    rows = rules.rows(now(project))
    assert ["takes too long" in row.trouble for row in rows] == [True] * 98 + [False] * 2
    assert rows[98].num_matched == 1 and rows[99].num_won > 0
    rules.rows(now(project))
    rules.apply(now(project))
    rules.moved(now(project), 0, slow[0], 1)
    assert rules.rows(now(project))[0].rule == slow[1]
    assert questions == [99]


def test_a_project_of_a_hundred_slow_rules_is_imported_and_shown(project, questions, monkeypatch):
    monkeypatch.setattr(regexes, "BUDGET_S", 0.2)
    content = (HOSTILE / "redos100.zip").read_bytes()
    imported = archive.unpack(content, lambda path, dims: pl.load(path, dict(dims)))
    assert questions == [100]
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = imported.id
    app.session_state["rules-open"] = True
    go(app, "place")
    assert not app.exception
    box = next(b for b in app.expander if b.label == ruling.TITLE)
    said = [text.value for text in box.markdown if "takes too long" in text.value]
    assert len(said) == 100
    app.run()
    assert questions == [100, 100]


def test_the_placer_of_rules_refuses_a_slow_expression_by_name(monkeypatch):
    monkeypatch.setattr(regexes, "BUDGET_S", 0.2)
    slow = "regex:(?:x?|y?){40}!=cpu:0"
    with pytest.raises(ValueError, match="take too long to match") as said:
        pl.place(diamond(), "manual", settings={"rules": f"*conv=cpu:1;{slow}"})
    assert slow in str(said.value) and "*conv" not in str(said.value)


def test_expressions_of_rules_heed_capital_letters(project):
    first = devices(project)[0]
    name = now(project).model.graph.ops[0].name
    rules.add(now(project), f"regex:^{name}$={first}; regex:^{name.swapcase()}$={first}")
    assert [row.num_matched for row in rules.rows(now(project))] == [1, 0]


@pytest.mark.parametrize("content", ["{", "{}", '[{"pattern": "a"}]', "3"])
def test_a_damaged_file_holds_no_rules(project, content):
    (project.folder / "rules.json").write_text(content)
    assert rules.rules_of(now(project)) == ()


def test_what_is_no_rule_is_refused(project):
    for text, said in (("", "no rule in this"), ("Conv", "PATTERN=DEVICE"), ("Conv=x", "'x'")):
        with pytest.raises(ValueError, match=said):
            rules.add(now(project), text)
    with pytest.raises(ValueError, match="100 rules at most"):
        rules.keep(now(project), [Rule("a", "b")] * 101)


def test_what_is_wrong_with_a_new_rule_is_said_beside_its_form(project):
    app = AppTest.from_file(str(APP), default_timeout=60)
    app.query_params["project"] = project.id
    app.session_state["rules-open"] = True
    app.run()
    next(s for s in app.selectbox if s.label == "New rule for").set_value(REGEX).run()
    next(t for t in app.text_input if t.label == ruling.KINDS[REGEX]).set_value("conv_[").run()
    app.button(key="rule-add").click().run()
    box = next(b for b in app.expander if b.label == ruling.TITLE)
    assert not app.exception and "is not a regular expression" in box.warning[0].value
    assert not rules.rules_of(now(project))
