"""A step as bars: the plan is solid, alternatives are ghosts, and a hidden step tells no answer."""

import placement as pl
from pages.ui.steps.plan import end_s, step_panel
from placement.core.problem_json import problem_from_json
from tests.instances import canonical_file

COLOURS = {"P1": "#0072b2", "P2": "#e69f00", "P3": "#009e73"}


def bars(panel, *, ghost):
    names = [row.name for row in panel.rows]
    return {(bar.text, names[bar.row]) for bar in panel.bars if bar.ghost is ghost}


def test_the_winner_is_solid_and_a_hidden_step_shows_every_alternative():
    problem = problem_from_json(canonical_file(), "canonical")
    steps = pl.steps(problem, "heft").steps
    axis_s = end_s(steps)
    assert axis_s == max(span.end_s for step in steps for span in (*step.spans, *step.ghosts))
    before, step = steps[1], steps[2]
    shown = step_panel(problem, step, before, "Plan", "", COLOURS, axis_s)
    assert ("n4", "P2") in bars(shown, ghost=False)
    assert bars(shown, ghost=True) == {("n4", "P1"), ("n4", "P3")}
    assert [shown.bars[i].text for i in shown.selected(["n4"])] == ["n4"]
    assert shown.end_s == axis_s and not shown.idle
    hidden = step_panel(problem, step, before, "Plan", "", COLOURS, axis_s, hidden=True)
    assert bars(hidden, ghost=False) == {("n1", "P3")}
    assert bars(hidden, ghost=True) == {("n4", "P1"), ("n4", "P2"), ("n4", "P3")}
    silent = step_panel(
        problem, step, before, "Plan", "", COLOURS, axis_s, hidden=True, ghosts=False
    )
    assert bars(silent, ghost=True) == set()
