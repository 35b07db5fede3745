"""Bars against the spans they stand for: nothing lost, nothing invented, ops where they belong."""

import random
from dataclasses import replace

import pytest

from pages.ui.timeline import micro_batches
from placement import simulate
from placement.core.graph import Graph, Op, Tensor
from placement.core.timeline import Span, Timeline
from placement.drawing import gantt, spans
from placement.schedule.microbatches import SCHEDULES, Stage, microbatched
from placement.simulator.critical_path import critical_path
from tests.pages.problems import diamond, everywhere
from tests.thorough import either

COLOURS = {"cpu:0": "#111111", "cpu:1": "#eeeeee"}


def drawn(most=gantt.MOST_BARS, **others):
    problem = diamond()
    predicted = simulate(problem, everywhere(problem, b="cpu:1", **others))
    panel = gantt.panel(
        "predicted",
        "Predicted",
        "",
        predicted.timeline,
        COLOURS,
        sources=spans.Sources(of=spans.ops_of(problem, predicted.schedule)),
        path=gantt.CriticalPath(predicted.critical_path),
        most=most,
    )
    return problem, predicted, panel


def test_every_span_is_a_bar_in_the_row_of_its_device():
    _, predicted, panel = drawn()
    rows = [row.name for row in panel.rows]
    assert rows == ["cpu:0", "cpu:1", "cpu:0->cpu:1", "cpu:1->cpu:0"]
    assert [(rows[b.row], b.start_s, b.end_s) for b in panel.bars] == [
        (s.device, s.start_s, s.end_s) for s in predicted.timeline.spans
    ]
    assert panel.end_s == predicted.timeline.step_s
    assert {(panel.rows[b.row].colour, b.ink) for b in panel.bars if b.row < 2} == {
        ("#111111", gantt.LIGHT),
        ("#eeeeee", gantt.DARK),
    }


def test_a_bar_stands_for_the_ops_of_its_segment_or_at_both_ends_of_its_tensor():
    problem, predicted, panel = drawn()
    for bar, span in zip(panel.bars, predicted.timeline.spans, strict=True):
        if span.kind == "compute":
            kernels = predicted.schedule.segments[span.segment].kernels
        else:
            tensor = next(t for t in problem.kernels.tensors if t.name == span.name)
            there = span.device.split("->")[1]
            on = [s for s in predicted.schedule.segments if s.device == there]
            inside = {kernel for segment in on for kernel in segment.kernels}
            kernels = [tensor.producer, *(c for c in tensor.consumers if c in inside)]
        wanted = {f"{k}_{kind}" for k in kernels if k for kind in ("conv", "relu")}
        assert set(bar.ops) == wanted, span


def test_selected_ops_outline_their_bars_and_the_tensors_they_send_and_receive():
    _, predicted, panel = drawn()
    chosen = [predicted.timeline.spans[i] for i in panel.selected(["b_relu"])]
    assert [(s.kind, s.device) for s in chosen] == [
        ("transfer", "cpu:0->cpu:1"),
        ("compute", "cpu:1"),
        ("transfer", "cpu:1->cpu:0"),
    ]
    assert panel.selected([]) == [] and panel.to_data(["b_relu"])["selected"] == panel.selected(
        ["b_relu"]
    )


def test_the_path_is_marked_and_the_rest_is_not():
    _, predicted, panel = drawn()
    path = {(s.kind, s.name, s.device) for s in predicted.critical_path}
    for bar, span in zip(panel.bars, predicted.timeline.spans, strict=True):
        assert bar.path == ((span.kind, span.name, span.device) in path)
    assert [kind for *_, kind, _ in panel.path] == [s.kind for s in predicted.critical_path]


def test_a_measured_bar_tells_what_was_predicted():
    _, predicted, _ = drawn()
    slow = [replace(s, start_s=2 * s.start_s, end_s=2 * s.end_s) for s in predicted.timeline.spans]
    measured = Timeline(tuple(slow), 2 * predicted.timeline.step_s, "measured")
    panel = gantt.panel(
        "run", "Measured", "", measured, COLOURS, against=predicted.timeline,
        path=gantt.CriticalPath(critical_path(measured)),
    )  # fmt: skip
    told = [line for bar in panel.bars for line in bar.tip if line.startswith("predicted")]
    assert len(told) == len(slow) and all("-50% against measured" in line for line in told)
    emulated = gantt.panel(
        "run", "", "", replace(measured, origin="emulated"), COLOURS, against=predicted.timeline
    )
    tips = [line for bar in emulated.bars for line in bar.tip]
    assert any("-50% against emulated" in line for line in tips)
    assert not any("measured" in line for line in tips)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(1, 5)))
def test_of_too_many_bars_short_neighbours_are_drawn_as_one(seed):
    rng = random.Random(seed)
    bars, at_s = [], 0.0
    for number in range(4000):
        long = rng.random() < 0.01
        end_s = at_s + (rng.random() if long else rng.random() * 1e-3)
        path = number % 1000 < 500
        bars.append(gantt.Bar(0, at_s, end_s, "#111111", "", ("n",), (f"op{number}",), path))
        at_s = end_s + rng.random() * 1e-5
    few = gantt.thinned(bars, 300)
    assert len(few) <= 300 and gantt.thinned(bars, 4000) == bars
    assert [op for bar in few for op in bar.ops] == [op for bar in bars for op in bar.ops]
    for bar in few:
        inside = [b for b in bars if b.ops[0] in bar.ops]
        assert (bar.start_s, bar.end_s) == (inside[0].start_s, inside[-1].end_s)
        assert {b.path for b in inside} == {bar.path}
    longest = max(bars, key=lambda b: b.end_s - b.start_s)
    assert longest in few


def test_a_bar_of_several_ops_is_never_called_by_one_of_them():
    """Who reads the name of one conv takes the time of all for its own."""
    ops = tuple(
        Op(f"/{tower}/{tower}.{n}/Conv", "Conv", scope=f"{tower}/{tower}.{n}")
        for tower in "ab"
        for n in range(8)
    )
    graph, names = Graph("two towers", ops, ()), [op.name for op in ops]
    span = Span("compute", names[8], "cpu:0", 0.0, 1.0, 0)
    called = {spans.name_of(span, part, graph) for part in (names[8:], tuple(names[8:]))}
    assert called == {"8 ops: b.0 … b.7"}
    assert spans.name_of(span, names, graph) == "16 ops: a … b"
    assert spans.name_of(span, names[8:9], graph) == names[8]
    # Without blocks, or without the graph, by the first and the last one.
    assert spans.name_of(span, ["x", "y", "z"], Graph("flat", (), ())) == "3 ops: x … z"
    assert spans.name_of(span, ["x", "y", "z"]) == "3 ops: x … z"


def test_names_from_files_are_one_short_line():
    span = Span("compute", "a\n\u202e" + "x" * 500, "cpu:0", 0.0, 1.0, 0)
    panel = gantt.panel("p", "t", "", Timeline((span,), 1.0, "predicted"), COLOURS)
    assert "\n" not in panel.bars[0].text and "\u202e" not in panel.bars[0].text
    assert all(len(line) <= 120 for line in panel.bars[0].tip)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_micro_batches_are_numbered_bars_in_the_colours_of_their_direction(schedule):
    stages = [Stage("acc:0", 1.0, 2.0, 0.5), Stage("acc:1", 1.0, 2.0, 0.5)]
    found = microbatched(stages, 3, schedule)
    panel = micro_batches.panel(schedule, found)
    seen = sorted((b.row, b.colour, b.text) for b in panel.bars)
    forward, backward, update = micro_batches.COLOURS.values()
    wanted = [(row, c, str(n)) for row in (0, 1) for c in (forward, backward) for n in (1, 2, 3)]
    assert seen == sorted([*wanted, (0, update, ""), (1, update, "")])
    assert panel.end_s == found.step_s


def counted():
    """Ops with only numbers for names, in blocks, as small models are often exported."""
    scopes = ("conv1", "conv1", "mixed/1x1", "mixed/3x3", "")
    ops = [Op(f"n{i}", "Conv", scope) for i, scope in enumerate(scopes)]
    read = Tensor("image", None, ("n0",), 8)
    made = [Tensor(f"r{i}", f"n{i}", (f"n{i + 1}",), 8) for i in range(4)]
    return Graph("counted", (*ops, Op("conv_of_stem", "Conv", "stem")), (read, *made))


@pytest.mark.parametrize(
    ("kind", "name", "ops", "told"),
    [
        ("compute", "r0_nchwc", ["n0"], "conv1 / conv 1"),
        ("compute", "r0_nchwc", ["n0", "n1"], "conv1"),
        ("compute", "r2_nchwc", ["n2", "n3"], "mixed"),
        ("compute", "r0_nchwc", ["n0", "n1", "n2", "n3"], "conv1 … mixed"),
        ("compute", "r4_nchwc", ["n4"], "conv"),
        ("compute", "r5_nchwc", ["conv_of_stem"], "conv_of_stem"),
        ("compute", "r5_nchwc", [], "r5_nchwc"),
        ("transfer", "r0_nchwc", ["n0", "n1"], "output of conv1 / conv 1"),
        ("transfer", "image", ["n0"], "image"),
        ("transfer", "conv_of_stem:7", ["conv_of_stem"], "output of conv_of_stem"),
        ("transfer", "of_another:7", ["conv_of_stem"], "of_another:7"),
    ],
)
def test_where_ops_have_only_numbers_for_names_their_block_is_told(kind, name, ops, told):
    span = Span(kind, name, "cpu:0", 0.0, 1.0, 0)
    assert spans.name_of(span, ops, counted()) == told
    sources = spans.Sources(counted(), lambda _: ops)
    timeline = Timeline((span,), 1.0, "predicted")
    panel = gantt.panel("p", "", "", timeline, COLOURS, sources=sources)
    assert panel.bars[0].text == panel.bars[0].tip[0] == told


def test_bars_of_blocks_that_repeat_are_told_apart():
    ops = tuple(
        Op(f"/bl.{number}/b/b.{n}/Conv", "Conv", scope=f"bl.{number}/b.{n}")
        for number in range(2)
        for n in range(4)
    )
    graph, names = Graph("blocks", ops, ()), [op.name for op in ops]
    span = Span("compute", names[0], "cpu:0", 0.0, 1.0, 0)
    called = [spans.name_of(span, part, graph) for part in (names[:4], names[4:])]
    assert called == ["4 ops: bl.0 / b.0 … b.3", "4 ops: bl.1 / b.0 … b.3"]
