"""The side panel about selected ops shows the names of a file letter by letter."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.panels import inspector
from placement.core import formatting
from placement.core.machine import Device, Link, Machine
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
        placement=placed,
        simulated=simulate(problem, placed),
        is_estimate=True,
        costs="given",
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
