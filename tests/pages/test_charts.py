"""Charts show the times that they are given."""

import pytest

from pages.ui.panels import charts


@pytest.mark.parametrize("predicted_s", [None, 0.004])
def test_step_times_are_in_ms_and_in_order(predicted_s):
    figure = charts.step_times([0.001, 0.003], predicted_s)
    assert list(figure.data[0].y) == [1.0, 3.0]
    assert len(figure.layout.shapes) == (predicted_s is not None)


def test_of_a_long_run_the_last_steps_are_drawn():
    trace = charts.step_times([0.001] * 5000).data[0]
    assert len(trace.y) == charts.MOST_STEPS and trace.x[-1] == 5000


def test_step_times_side_by_side():
    figure = charts.bars_s(["this", "cpu:0 alone"], [0.001, 0.002])
    assert list(figure.data[0].x) == [1.0, 2.0] and list(figure.data[0].y) == [
        "this",
        "cpu:0 alone",
    ]


def test_a_histogram_counts_equal_values_and_holds_them_against_others():
    figure = charts.histogram([76.0, 80.0, 76.0 + 1e-12], {"HEFT": 80.0, "star": 73.0}, "s", "s")
    assert (list(figure.data[0].x), list(figure.data[0].y)) == ([76.0, 80.0], [2, 1])
    assert sorted(line.x0 for line in figure.layout.shapes) == [73.0, 80.0]
    assert {said.text for said in figure.layout.annotations} == {"HEFT 80", "star 73"}
    assert figure.layout.yaxis.dtick == 1, "nobody handed in half an answer"
