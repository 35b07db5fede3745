"""The Timeline page in every state: without a run, beside one, edited since, for training."""

import itertools
import json
import uuid
from dataclasses import replace

import pytest

from pages.ui.compare import board
from pages.ui.panels import side_by_side, timeline_component, yardstick
from pages.ui.session import choices
from pages.ui.session.current import snapshot
from pages.ui.timeline import critical_path, memory, timelines
from placement import simulate
from placement.advice.speedups import Lever
from placement.core.timeline import Span
from placement.drawing import gantt, spans
from placement.simulator.simulate import memory_over_time
from studio import editing, standings
from studio.jobs import caveats
from studio.project.facts import FILE
from tests.pages.going import open_tab
from tests.pages.problems import diamond, everywhere
from tests.pages.test_pages import (
    checked,
    finished_run,
    metric,
    opened,
    own_home,
    placed,
    shown,
    texts,
)
from tests.thorough import either
from tests.workloads import node, random_workload, workload

__all__ = ["own_home"]


def test_without_a_run_the_prediction_stands_alone():
    app, project = opened("timeline")
    now = snapshot(project)
    assert [p.key for p in timelines.panels(now, timelines.chosen(now))] == ["predicted"]
    told = texts(app)
    assert metric(app, "Predicted step time").value
    assert "Measured step time" not in [m.label for m in app.metric]
    assert "What would shorten the step" in told and "shorter**" in told
    assert "Training" not in told
    assert "needs" in texts(checked(open_tab(app, "Memory")))


MACHINES, GOALS = ("laptop-gpu", "nvlink-8gpu", "null-2"), ("latency", "throughput")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("machine", "goal"),
    either(
        [*zip(MACHINES, itertools.cycle(GOALS), strict=False)],
        [*itertools.product(MACHINES, GOALS)],
    ),
)
def test_other_machines_and_goals(machine, goal):
    app, _ = opened("timeline", machine=machine, objective=goal, model="onnx-squeezenet")
    assert ("sets the pace" in texts(app)) == (goal == "throughput")


def test_replicas_share_the_load_of_who_sets_the_pace(tmp_path):
    """12 ms on two accelerators are 6 ms per sample, less than the 7 ms of the third."""
    path = tmp_path / "two.json"
    path.write_text(json.dumps(workload([node(1, 50, 12), node(2, 50, 7)], [], maxFPGAs=3)))
    project = placed(model_kind="path", model=str(path), objective="throughput")
    now = snapshot(project)
    shared = replace(now.problem.placement_of([0, 1]), replicas={"acc:0": 2})
    now.shelf.add("shared", shared, "replicate", {})
    told = texts(shown(project, "timeline"))
    assert "acc:1 has most to do" in told and "acc:0 6 ms" in told
    assert "If acc:1 were twice as fast, the time per sample would be **1 ms shorter**" in told


def test_a_run_stands_beside_the_prediction_with_its_error():
    project = placed()
    finished_run(project)
    app = shown(project, "timeline")
    assert metric(app, "Measured step time").value == "30 ms"
    assert metric(app, "Prediction error").value == "-10%"
    assert "Predicted against measured" in texts(app)
    now = snapshot(project)
    predicted, measured = timelines.panels(now, timelines.chosen(now))
    assert [b.ops for b in measured.bars] == [b.ops for b in predicted.bars]
    assert "edited after this run" not in texts(app)
    # Another model has no such run.
    project.change(model="onnx-squeezenet")
    checked(app.run())
    assert "Measured step time" not in [m.label for m in app.metric]


def test_an_edit_after_the_run_is_told_and_the_run_stays_what_it_was():
    project = placed()
    now = snapshot(project)
    now.shelf.add("mine", now.placement, "hand", {})
    finished_run(project)
    app = shown(project, "timeline")
    assert "edited after this run" not in texts(app)
    now = snapshot(project)
    op = now.model.graph.ops[0].name
    other = next(d.name for d in now.machine.devices if d.name != now.placement.device_of[op])
    editing.edit(now, (op,), other)
    assert "edited after this run" in texts(checked(app.run()))
    assert metric(app, "Measured step time").value == "30 ms"
    now = snapshot(project)
    measured = timelines.panels(now, timelines.chosen(now))[1]
    assert measured.note.endswith("a run of mine before it was edited")


def test_what_a_file_gave_is_nowhere_called_the_work_of_a_method():
    project = placed()
    now = snapshot(project)
    ops, devices = [op.name for op in now.model.graph.ops], [d.name for d in now.machine.devices]

    def on(device):
        return replace(now.placement, device_of=dict.fromkeys(ops, device), order=())

    name = now.shelf.add("mine", on(devices[0]), FILE)
    finished_run(project)
    seen = yardstick.Value(on(devices[1]), 1e9)
    # Another file of that name, after the first one was deleted.
    now.shelf.replace(name, on(devices[1]))
    now = snapshot(project)
    run = timelines.chosen(now)
    [row] = [row for row in standings.standings(now) if row.name == name]
    before = yardstick.Shown("measured", "", {name: replace(seen, placement=on(devices[0]))})
    said = (
        caveats.not_of_screen(now, run.job),
        timelines.panels(now, run)[1].note,
        yardstick.sentence(before, now),
        side_by_side.measured_in_words(row),
        "; ".join(board.notes_of(row)),
    )
    for sentence in said:
        assert "opened from another file" in sentence and "method" not in sentence, sentence
    best = board.verdict([row, replace(row, name="heft", made_by="heft", value_s=2e9)], "s")
    assert best.startswith("Best of 2: **mine**, from a file, predicted")
    assert "its method" not in texts(shown(project, "timeline"))


def test_of_an_even_number_of_steps_the_one_that_is_drawn_is_not_called_the_median():
    project = placed()
    for steps_s, drawn in (
        ([0.030, 0.029, 0.033], "a typical step"),
        ([0.030, 0.029, 0.033, 0.034], "a typical step (of two the shorter)"),
    ):
        finished_run(project, steps_s=steps_s)
        now = snapshot(project)
        assert timelines.panels(now, timelines.chosen(now))[1].title == f"Measured, {drawn}"


def test_a_run_of_another_placement_is_told_apart():
    project = placed()
    finished_run(project)
    now = snapshot(project)
    name = now.shelf.add("other", now.placement, "hand", {})
    assert f"of the placement heft; on the screen is {name}." in texts(shown(project, "timeline"))


def test_training_graphs_show_both_schedules(tmp_path):
    path = tmp_path / "training.json"
    path.write_text(json.dumps(random_workload(4, num_nodes=12, training=True)))
    app, _ = opened("timeline", model_kind="path", model=str(path), objective="throughput")
    told = texts(app)
    assert "Training over micro-batches" in told and "Simulated" in told
    before = metric(app, "GPipe step").value
    field = next(n for n in app.number_input if n.label == "Micro-batches per step")
    assert field.value == 8
    checked(field.set_value(16).run())
    assert metric(app, "GPipe step").value != before
    assert metric(app, "1F1B bubble").value.endswith("%")


def test_a_lever_reads_as_a_sentence():
    problem = diamond()
    of = spans.ops_of(problem, predicted(problem).schedule)
    told = [
        critical_path.sentence(lever, of, "step", 0.010, problem)
        for lever in (
            Lever("segment", "a", "cpu:0", 0.001),
            Lever("tensor", "ra", "cpu:0->cpu:1", 0.002),
            Lever("link", "cpu:0->cpu:1", "", 0.003),
            Lever("device", "cpu:0", "", 0.004),
        )
    ]
    assert [t.replace("\\", "") for t in told] == [
        "If the segment of 2 ops that begins with a_conv on cpu:0 computed in half the time, the"
        " step would be **1 ms shorter** (10%).",
        "If the tensor ra from cpu:0 to cpu:1 were half as large, the step would be"
        " **2 ms shorter** (20%).",
        "If the link cpu:0 to cpu:1 were twice as fast, the step would be **3 ms shorter** (30%).",
        "If cpu:0 were twice as fast, the step would be **4 ms shorter** (40%).",
    ]


def predicted(problem):
    return simulate(problem, everywhere(problem, b="cpu:1"))


def test_a_path_reads_as_its_shares():
    path = (Span("compute", "a", "cpu:0", 0.0, 0.003), Span("wait", "b", "cpu:1", 0.003, 0.004))
    assert (
        critical_path.in_words(path) == "4 ms, of which 75% computing (3 ms), 25% waiting (1 ms)."
    )
    assert critical_path.in_words(()) == "nothing takes any time."


def limits(figure):
    return [shape for shape in figure.layout.shapes if shape.line.dash == "dash"]


def test_the_memory_chart_draws_the_curve_and_the_limit_where_it_is_near():
    problem = diamond()
    curves = memory_over_time(problem, predicted(problem).schedule)
    near, far = (
        [replace(curve, limit_bytes=factor * curve.needed_bytes) for curve in curves]
        for factor in (2.0, 100.0)
    )
    colours = {"cpu:0": "#111111", "cpu:1": "#222222"}
    for drawn_curves, whole, num in ((near, False, 2), (far, False, 0), (far, True, 2)):
        figure = memory.figure(drawn_curves, colours, {}, whole=whole)
        assert len(limits(figure)) == num
        for curve, trace in zip(drawn_curves, figure.data, strict=True):
            assert list(trace.x) == [at_s * 1e3 for at_s in curve.at_s]
            assert trace.line.shape == "hv"
    assert "2" in memory.told(near[0]) and "50% of its" in memory.told(near[0])


def test_of_memory_the_fullest_device_comes_first():
    """One that overflows above all, one without a limit last, and equals as they are declared."""
    problem = diamond()
    curve = memory_over_time(problem, predicted(problem).schedule)[0]
    limits = {"a": None, "b": 4.0, "c": 0.5, "d": 1.0, "e": 4.0}
    curves = [
        replace(curve, device=name, limit_bytes=share and share * curve.needed_bytes)
        for name, share in limits.items()
    ]
    assert [found.device for found in memory.fullest_first(curves)] == ["c", "d", "b", "e", "a"]
    without_room = replace(curve, device="f", limit_bytes=0)
    assert memory.fullest_first([*curves, without_room])[0] is without_room


@pytest.fixture
def clicks(monkeypatch):
    """A session whose browser tells of clicks: its queue, and the ops that are selected."""
    queue, chosen, kept = [], [], {}
    session = uuid.uuid4().hex
    box = {"picks": {"session": session, "queue": queue}}
    monkeypatch.setattr(choices, "typed", lambda key, default: box)
    monkeypatch.setattr(choices, "nonce", lambda: session)
    monkeypatch.setattr(choices, "kept", kept.get)
    monkeypatch.setattr(choices, "keep", kept.__setitem__)
    monkeypatch.setattr(choices, "selection", lambda: tuple(chosen))
    monkeypatch.setattr(choices, "select", lambda ops: chosen.__setitem__(slice(None), ops))
    return queue, chosen


def drawn_panel(problem, **devices):
    simulated = simulate(problem, everywhere(problem, **devices))
    of = spans.ops_of(problem, simulated.schedule)
    colours = {"cpu:0": "#111111", "cpu:1": "#222222"}
    sources = spans.Sources(of=of)
    return gantt.panel("predicted", "", "", simulated.timeline, colours, sources=sources)


def test_every_bar_can_be_picked_and_nonsense_cannot(clicks):
    queue, chosen = clicks
    panel = drawn_panel(diamond(), b="cpu:1")
    right = {"kind": "pick", "panel": "predicted", "version": panel.version, "bar": 0, "add": False}
    assert not timeline_component.select_picked("x", [panel])
    for n, wrong in enumerate(
        (
            {"panel": "other"},
            {"version": ""},
            {"version": None},
            {"bar": len(panel.bars)},
            {"bar": -1},
            {"bar": True},
            {"bar": "0"},
            {"panel": ["predicted"]},
            {"kind": "poke"},
            {"n": "5"},
            {"n": True},
        ),
        1,
    ):
        queue[:] = [{"n": n, **right, **wrong}, 7]
        assert not timeline_component.select_picked("x", [panel]), wrong
    for n, bar in enumerate(panel.bars, 100):
        queue[:] = [{"n": n, **right, "bar": n - 100}]
        assert timeline_component.select_picked("x", [panel]) and chosen == list(bar.ops)
        assert not timeline_component.select_picked("x", [panel])


def test_quick_clicks_all_count_and_those_on_an_earlier_drawing_do_not(clicks):
    queue, chosen = clicks
    panel, later = drawn_panel(diamond(), b="cpu:1"), drawn_panel(diamond(), c="cpu:1")
    told = {"kind": "pick", "panel": "predicted", "version": panel.version, "add": True}
    queue[:] = [{"n": 10 + i, "bar": i, **told} for i in range(len(panel.bars))]
    assert not timeline_component.select_picked("later", [later]) and chosen == []
    assert timeline_component.select_picked("x", [panel])
    assert set(chosen) == {op for bar in panel.bars for op in bar.ops}
