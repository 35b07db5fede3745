"""The inspector's answers against a diamond small enough to work out by hand."""

import pytest

from placement import simulate
from placement.drawing.op_reasons import critical_ops, why
from tests.pages.problems import diamond, everywhere


def answer(placed, ops, problem=None):
    problem = problem or diamond()
    return why(problem, placed, simulate(problem, placed), ops)


def test_an_op_answers_with_all_that_is_fused_with_it():
    found = answer(everywhere(diamond()), ["b_relu"])
    assert found.along == ("b_conv",)
    assert found.time_s == {"cpu:0": pytest.approx(0.010), "cpu:1": pytest.approx(0.010)}
    assert found.devices == ("cpu:0",)
    assert found.incoming == found.outgoing == ()


def test_crossings_have_bytes_and_seconds():
    found = answer(everywhere(diamond(), b="cpu:1"), ["b_conv", "b_relu"])
    assert [(m.tensor, m.src, m.dst, m.num_bytes) for m in found.incoming] == [
        ("ra", "cpu:0", "cpu:1", 1_000_000)
    ]
    assert [(m.tensor, m.src, m.dst) for m in found.outgoing] == [("rb", "cpu:1", "cpu:0")]
    assert found.incoming[0].duration_s == pytest.approx(0.002)


def test_a_tensor_crosses_once_per_device():
    found = answer(everywhere(diamond(), b="cpu:1", c="cpu:1"), ["a_conv"])
    assert [m.tensor for m in found.outgoing] == ["ra"]


def test_slack_is_zero_on_the_critical_path_and_positive_off_it():
    placed = everywhere(diamond(), b="cpu:1")
    assert answer(placed, ["b_conv"]).is_critical
    assert answer(placed, ["b_conv"]).slack_s == pytest.approx(0.0)
    off = answer(placed, ["c_conv"])
    assert not off.is_critical and off.slack_s > 0.003


def test_an_op_that_a_device_cannot_run_has_no_time_there():
    problem = diamond(runs_b=False)
    assert answer(everywhere(problem), ["b_conv"], problem).time_s["cpu:1"] is None


def test_critical_ops_are_source_ops():
    problem = diamond()
    placed = everywhere(problem, b="cpu:1")
    found = critical_ops(problem, simulate(problem, placed))
    assert "b_relu" in found and "c_conv" not in found
