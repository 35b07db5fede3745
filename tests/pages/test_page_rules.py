"""The rules of a project: their order, what they do to a placement, and that it is one step."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import pins, rules, ruling, studio
from pages.ui.canvas import searching
from placement.rules import REGEX, Rule
from tests.pages.test_pages import APP
from tests.pages.test_pins import now


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
    studio.step_back(now(project))
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
    studio.edit(now(project), convs(project)[:2], first)
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
    monkeypatch.setattr(searching, "PATIENCE_S", 0.5)
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
