"""Charts show the spans they are given, and nothing that a file says is taken for markup."""

import pytest

from pages.ui import charts
from placement.core.timeline import Span

COLOURS = {"cpu:0": "#111111", "cpu:1": "#222222"}
SPANS = (
    Span("compute", "a", "cpu:0", 0.000, 0.002, 0),
    Span("transfer", "t", "cpu:0->cpu:1", 0.002, 0.003, 0, 4096, (0,)),
    Span("compute", "b", "cpu:1", 0.003, 0.007, 1, 0, (1,)),
    Span("compute", "c", "cpu:0", 0.002, 0.004, 2, 0, (0,)),
)


def bars(figure):
    """(row, start, length) in ms of every bar, in order of start."""
    found = [
        (row, round(start, 6), round(length, 6))
        for trace in figure.data
        for row, start, length in zip(trace.y, trace.base, trace.x, strict=True)
    ]
    return sorted(found, key=lambda bar: (bar[1], bar[0]))


def test_bars_match_spans():
    figure = charts.gantt(SPANS, COLOURS)
    expected = [
        (s.device, round(s.start_s * 1e3, 6), round(s.duration_s * 1e3, 6))
        for s in sorted(SPANS, key=lambda s: (s.start_s, s.device))
    ]
    assert bars(figure) == expected


def test_devices_come_first_in_their_order_and_idle_ones_too():
    rows = charts.rows_of(SPANS[1:2], COLOURS)
    assert rows == ["cpu:0", "cpu:1", "cpu:0->cpu:1"]
    assert [trace.name for trace in charts.gantt((), COLOURS).data] == ["cpu:0", "cpu:1"]


def test_devices_keep_their_colours():
    figure = charts.gantt(SPANS, COLOURS)
    assert [t.marker.color for t in figure.data] == ["#111111", "#222222", charts.LINK_COLOUR]


def test_the_critical_path_is_outlined():
    figure = charts.gantt(SPANS, COLOURS, critical=SPANS[:3])
    outlined = {
        data[-1]: width == 2
        for trace in figure.data
        for data, width in zip(trace.customdata, trace.marker.line.width, strict=True)
    }
    assert outlined == {"a": True, "t": True, "b": True, "c": False}


def test_names_are_shown_letter_by_letter():
    evil = Span("compute", "<a href='x'>&b</a>", "cpu:0", 0, 1)
    hover = charts.gantt([evil], COLOURS).data[0].customdata[0][0]
    assert hover == "&lt;a href=&#x27;x&#x27;&gt;&amp;b&lt;/a&gt;"


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
