"""The side panel about selected ops shows the names of a file letter by letter."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

import placement as api
from pages.ui.panels import inspector
from placement import simulate
from placement.core import formatting
from placement.core.machine import Device, Link, Machine
from placement.search.steps import deciding
from studio import consequence
from tests.pages import problems

HOSTILE = ("![x](http://evil.example/a)", "**b** <img src=x> &lt; www.evil.example :red[y]")


def _drawn(ops=("b_conv",)):
    from types import SimpleNamespace

    from pages.ui.panels import inspector
    from placement import simulate
    from tests.pages.problems import MACHINE, diamond, everywhere

    problem = diamond()
    here, there = (d.name for d in MACHINE.devices)
    placed = everywhere(problem, here, b=there)
    now = SimpleNamespace(
        model=SimpleNamespace(graph=problem.graph),
        problem=problem,
        pinned_problem=problem,
        placement=placed,
        simulated=simulate(problem, placed),
        is_estimate=True,
        costs="given",
        named=SimpleNamespace(made_by="hand", by_hand=True),
        cache=SimpleNamespace(simulated=simulate, violations=lambda *_: ()),
    )
    inspector.show(now, list(ops))


def test_no_cell_of_the_inspector_is_markup(monkeypatch):
    first, second = HOSTILE
    links = (Link(first, second, 0.001, 1e9), Link(second, first, 0.001, 1e9))
    machine = Machine("two", (Device(first), Device(second)), links)
    monkeypatch.setattr(problems, "MACHINE", machine)
    app = AppTest.from_function(_drawn).run()
    assert not app.exception
    cells = [str(c) for table in app.table for c in table.value.to_numpy().ravel()]
    assert any("evil" in c for c in cells) and any(" to " in c for c in cells)
    for cell in cells:
        assert not re.search(r"(?<!\\)[*<>&\[\]()!:]", cell), cell
        assert "www." not in cell and "//evil.example" not in cell.replace("\\:\u200b//", "")


def test_what_in_part_means_stands_beside_it():
    """And only where ops on several devices are selected together."""
    both = AppTest.from_function(_drawn, kwargs={"ops": ("b_conv", "c_conv")}).run()
    one = AppTest.from_function(_drawn).run()
    told = [
        [m.proto.help for m in app.markdown if "Time on each" in m.value] for app in (both, one)
    ]
    assert told[0][0].startswith("In part: some of these ops") and told[1] == [""]
    cells = [str(c) for table in both.table for c in table.value.to_numpy().ravel()]
    assert "in part" in cells


def test_types_that_are_not_named_are_counted():
    kinds = ["Conv"] * 3 + ["Add"] * 3 + ["Mul"] * 2 + ["Relu", "Concat"]
    assert inspector.kinds_of(kinds) == "3 Add, 3 Conv, 2 Mul, 1 Concat, 1 Relu"
    more = inspector.kinds_of([*kinds, "Split", "Split"])
    assert more == "3 Add, 3 Conv, 2 Mul, 2 Split, and 2 more of 2 other types"


def test_amounts_of_arithmetic_have_a_space_before_their_unit():
    assert [formatting.flops(n) for n in (24, 134e3)] == ["24 FLOP", "134 kFLOP"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [("Conv", "1 Conv op"), ("op", "1 op"), ("Op", "1 op"), ("<b>", "1 op"), ("", "1 op")],
)
def test_one_op_is_told_with_its_type_where_that_says_something(kind, said):
    assert inspector.one_of(kind) == said


def _now(placed, problem):
    cache = SimpleNamespace(simulated=simulate, violations=lambda *_: ())
    return SimpleNamespace(
        problem=problem, placement=placed, simulated=simulate(problem, placed), cache=cache
    )


def test_why_an_op_is_here_is_what_the_step_would_take_with_it_elsewhere():
    """By the simulation of the placement that is like this one but for the op's own device."""
    problem = problems.diamond()
    placed = problems.everywhere(problem, b="cpu:1")
    before_s = simulate(problem, placed).value
    for op, device in (("b_conv", "cpu:0"), ("c_relu", "cpu:1")):
        ((named, change),) = consequence.elsewhere(_now(placed, problem), [op])
        other = problems.everywhere(problem, **{"b": "cpu:1", op[0]: device})
        assert named == device
        assert change.before_s == before_s
        assert change.after_s == pytest.approx(simulate(problem, other).value)
        assert change.after_s > before_s, "what runs side by side would run one after another"
        told = inspector.instead([(named, change)], "step")
        percent = formatting.percent(change.after_s / before_s - 1)
        assert f"a step would take: on {device} " in told and told.endswith(f"{percent} more.")
    # On two devices at once they are nowhere else, and where no other device runs it neither.
    assert consequence.elsewhere(_now(placed, problem), ["b_conv", "c_conv"]) == ()
    bound = problems.diamond(runs_b=False)
    assert consequence.elsewhere(_now(problems.everywhere(bound), bound), ["b_conv"]) == ()


def _placed_by(method, problem, **pins):
    posed = replace(problem, pins=tuple(pins.items()))
    return SimpleNamespace(
        pinned_problem=posed,
        placement=api.place(posed, method).placement,
        named=SimpleNamespace(made_by=method, by_hand=method == "hand"),
    )


def test_a_method_tells_what_it_compared_for_an_op_though_nobody_has_followed_it():
    problem = problems.diamond()
    now = _placed_by("heft", problem)
    for op in ("a_conv", "b_relu"):
        own = deciding(problem, api.steps(problem, "heft").steps, op)
        assert inspector.reason(now, op) == f"heft: {own.why}" and " finish at " in own.why
    # What the method did not decide so it has no reason for.
    now.placement = problems.everywhere(problem, b="cpu:1", c="cpu:1")
    assert inspector.reason(now, "b_relu") == ""


def test_what_is_pinned_is_where_it_is_for_that():
    now = _placed_by("heft", problems.diamond(), b_conv="cpu:1")
    assert inspector.reason(now, "b_conv") == "It is pinned to cpu:1."
    now.named = SimpleNamespace(made_by="hand", by_hand=True)
    assert inspector.reason(now, "b_conv") == "It is pinned to cpu:1."
    assert inspector.reason(now, "a_conv") == ""


def test_what_takes_long_to_tell_is_told_once_somebody_has_followed_the_method():
    problem = problems.diamond()
    now = _placed_by("local_search", problem)
    assert inspector.reason(now, "b_conv").startswith("What local_search has compared is told")
