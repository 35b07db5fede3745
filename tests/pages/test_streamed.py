"""The Run page for the goal "Most samples per second": asked for, run, told; latency as ever."""

import json
import shlex
import time
from types import SimpleNamespace

import pytest

from pages.ui.forms import run_form
from pages.ui.panels import charts, timeline_component
from pages.ui.run import stream_results
from pages.ui.session.current import snapshot
from placement.core import formatting
from placement.core.verb_options import RunOptions
from studio.jobs import command_line, jobs, kinds
from studio.project import placements, store
from studio.project.files import write_json
from tests.pages.test_pages import checked, metric, own_home, placed, shown, texts

__all__ = ["own_home"]
SMALL = "onnx-squeezenet"


def made(**settings):
    """A new project with these settings, which no page has drawn yet."""
    return placed(**{"model": SMALL, "objective": "throughput", "machine": "null-2", **settings})


def opened(**settings):
    """The Run page of a new project with these settings."""
    project = made(**settings)
    return shown(project, "run"), project


def stepwise(now):
    """What a run of steps has measured, as its result event tells it."""
    timeline = now.simulated.timeline.to_json()
    return {
        "event": "result",
        "step_s": {"median": 0.0036, "p5": 0.0034, "p95": 0.0041},
        "steps_s": [0.0034, 0.0036, 0.0041],
        "predicted_s": 0.00345,
        "error": 0.00345 / 0.0036 - 1.0,
        "costs": "measured",
        "baseline_s": {"cpu:0": 0.005, "cpu:1": 0.008},
        "all_cores_s": 0.0025,
        "outputs_match": True,
        "max_abs_diff": 0.0,
        "skipped_outputs_reason": "",
        "requested_devices": {"cpu:0": "CPUExecutionProvider", "cpu:1": "CPUExecutionProvider"},
        "actual_devices": {"cpu:0": "CPUExecutionProvider", "cpu:1": "CPUExecutionProvider"},
        "fallbacks": [],
        "critical_path": [],
        "busy_s": {"cpu:0": 0.0018, "cpu:1": 0.0035},
        "num_segments": 2,
        "transfer_bytes": 4096,
        "peak_bytes": {"cpu:0": 2**20},
        "emulated": False,
        "ops_per_device": {"cpu:0": 30, "cpu:1": 36},
        "timeline": {**timeline, "origin": "measured"},
        "predicted_timeline": timeline,
    }


def pipelined(now):
    """What a pipeline has measured, as its result event tells it."""
    return stepwise(now) | {
        "samples_per_s": 276.0,
        "predicted_samples_per_s": 289.8,
        "bottleneck": "cpu:1",
        "predicted_bottleneck": "cpu:1",
        "latency_s": {"median": 0.0182, "p5": 0.017, "p95": 0.021},
        "predicted_latency_s": 0.0055,
        "loads_s": {"cpu:0": 0.0017, "cpu:1": 0.00345, "cpu:0->cpu:1": 0.0001},
        "samples": 200,
        "outputs_compared": 210,
        "depth": 5,
        "stages": 2,
        "bit_equal": True,
        "distinct_inputs": 3,
        "distinct_outputs": 3,
        "cancelled": False,
    }


def finished(project, told=pipelined, **changes):
    """Put a run that has ended into the project, as its files would tell it."""
    now = snapshot(project)
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    about = {
        "placement": now.named.name,
        "devices_key": placements.devices_key(now.placement),
        "shelf": now.shelf.folder.name,
        "model": now.model.graph.name,
        "machine": now.machine.name,
        "warmup": 3,
        "collected": True,
    }
    record = {"verb": "run", "argv": [], "pid": -1, "born_at": 0, "started_at": 0, "about": about}
    write_json(folder / "job.json", record)
    (folder / "events.jsonl").write_text(json.dumps({**told(now), **changes}) + "\n")
    return jobs.read(project.folder, folder.name)


def test_a_throughput_placement_can_be_run_and_asks_for_samples():
    app, project = opened()
    now = snapshot(project)
    assert run_form.why_not(now) == ""
    assert "per sample" in texts(app) and "No run yet" in texts(app)
    counts = {n.label: n.value for n in app.number_input}
    assert counts["Samples"] == 200 and "Steps" not in counts
    button = next(b for b in app.button if b.label == "Run (emulated)")
    assert not button.disabled
    assert "--objective throughput --steps 200 --warmup 3" in app.code[-1].value


def test_the_depth_is_chosen_by_the_run_unless_it_is_typed():
    app, project = opened()
    field = next(n for n in app.number_input if n.label == "Most samples in flight")
    assert field.value is None and "--depth" not in app.code[-1].value
    app = checked(field.set_value(2).run())
    assert app.code[-1].value.endswith("--seed 0 --depth 2")
    next(b for b in app.button if b.label == "Run (emulated)").click().run()
    job = jobs.latest(project.folder, "run")
    assert job.argv[-3:] == ("--depth", "2", "--jsonl")
    jobs.stop(project.folder, job.id)
    assert project.settings.form["depth"] == 2


def test_a_stopped_pipeline_tells_what_came_out_and_compares_with_nothing():
    project = made()
    finished(project, cancelled=True, baseline_s={}, all_cores_s=None)
    app = shown(project, "run")
    said = texts(app)
    assert "Stopped before all samples were through" in said
    assert metric(app, "Measured throughput").value == "276 samples/s"
    assert "Against one device alone" not in said


def test_the_goal_alone_never_stands_in_the_way_of_a_run():
    """Whether a placement can be run depends on the model and the machine, as for a step."""
    for machine in ("local", "null-2", "pcie-4gpu"):
        reasons = set()
        for goal in ("latency", "throughput"):
            project = store.create()
            project.change(model=SMALL, machine=machine, objective=goal)
            reasons.add(run_form.why_not(snapshot(project)))
        assert len(reasons) == 1
        assert (machine == "pcie-4gpu") == any("not on this computer" in r for r in reasons)


@pytest.mark.parametrize("goal", ["latency", "throughput"])
def test_the_command_names_the_goal_and_is_understood(goal):
    from placement.cli.options import make_parser

    project = store.create()
    project.change(objective=goal)
    argv = command_line.run(
        snapshot(project), project.folder / "x.json", RunOptions(steps=7, warmup=2, seed=1)
    )
    found = make_parser().parse_args(shlex.split(command_line.text(argv))[3:])
    assert (found.objective, found.steps, found.warmup, found.seed) == (goal, 7, 2, 1)


def test_a_finished_pipeline_is_told_in_full():
    project = made()
    finished(project)
    app = shown(project, "run")
    said = texts(app)
    assert metric(app, "Measured throughput").value == "276 samples/s"
    assert metric(app, "Predicted throughput").value == "290 samples/s"
    assert metric(app, "Predicted throughput").delta == "+5% against measured"
    assert metric(app, "Latency of one sample").value == "18.2 ms"
    assert metric(app, "Latency of one sample").delta == "17 ms to 21 ms"
    assert metric(app, "Outputs").value == "match"
    assert metric(app, "Outputs").delta == "210 outputs compared, no bit differs"
    assert "200 samples through 2 stages, at most 5 in flight, 2 segments" in said
    assert "cpu:1 sets the pace: it is busy 96.6% of the time" in said
    assert "That is the one that was predicted" in said
    assert "Measured: 3.6 ms (median), mostly 3.4 ms to 4.1 ms. Predicted: 3.45 ms (-4.2%" in said
    assert "38% more samples than the best device alone (cpu:0)" in said
    assert "One device with all cores delivers more: 400 samples/s** against 276" in said
    assert "Sent between devices: 4 KiB per sample" in said
    assert "Critical path" not in said and "Measured step time" not in [m.label for m in app.metric]


def in_tab(app, label):
    """The last metric of a name: that of the tab, below those of the score."""
    return [m for m in app.metric if m.label == label][-1]


def test_a_steps_result_looks_as_ever_also_while_the_goal_is_throughput():
    project = made()
    finished(project, stepwise)
    app = shown(project, "run")
    said = texts(app)
    assert metric(app, "Measured step time").value == "3.6 ms"
    assert metric(app, "Predicted").delta == "-4.2% against measured"
    assert metric(app, "Outputs").delta == "largest difference 0"
    assert in_tab(app, "Segments").value == "2"
    assert in_tab(app, "Segments").proto.help.startswith("A segment is")
    assert "3 steps after 3 to warm up" in said and "Critical path" in said
    assert "28% faster than the best device alone (cpu:0)" in said
    assert "Sent between devices: 4 KiB per step" in said
    assert "sets the pace" not in said and "samples/s" not in said


def test_bad_news_stands_out():
    project = made()
    finished(project, outputs_match=False, bit_equal=False, max_abs_diff=0.5, cancelled=True)
    app = shown(project, "run")
    said = texts(app)
    assert metric(app, "Outputs").value == "differ"
    assert metric(app, "Outputs").delta == "210 outputs compared, largest difference 0.5"
    assert "do not trust this run" in said and "Stopped before all samples" in said


@pytest.mark.parametrize("told", [pipelined, stepwise])
def test_what_a_virtual_clock_said_is_nowhere_called_measured(told, monkeypatch):
    project = made()
    drawn = []
    monkeypatch.setattr(timeline_component, "draw", lambda panels, **how: drawn.extend(panels))
    finished(project, told, emulated=True)
    app = shown(project, "run")
    parts = [texts(app), *(f"{m.label} {m.delta} {m.help}" for m in app.metric)]
    parts += [chart.proto.spec for chart in app.get("plotly_chart")]
    parts += [line for panel in drawn for bar in panel.bars for line in (*bar.tip, panel.title)]
    said = "\n".join(parts).lower()
    for right in ("nothing was measured on hardware", "estimated by formula, not measured"):
        said = said.replace(right, "")
    assert "against emulated" in said and "measured" not in said
    assert ("% emulated" in said) == (told is pipelined)


def test_numbers_that_are_not_known_are_left_out():
    project = made()
    unknown = {"predicted_samples_per_s": None, "error": None, "all_cores_s": None}
    alone = {"cpu:0": None, "cpu:1": None}
    finished(project, **unknown, baseline_s=alone, outputs_match=None, bit_equal=None)
    app = shown(project, "run")
    assert metric(app, "Predicted throughput").value == "unknown"
    assert metric(app, "Outputs").value == "not checked"
    assert "Does not fit alone on: cpu:0, cpu:1" in texts(app)


def test_older_runs_of_both_kinds_are_labelled_by_what_they_measured():
    project = made()
    first = finished(project, stepwise)
    finished(project)
    app = shown(project, "run")
    chooser = next(s for s in app.selectbox if s.label == "Run")
    newest, oldest = chooser.options
    assert ": 276 samples/s, onnx-squeezenet" in newest
    assert ": 3.6 ms per step, onnx-squeezenet" in oldest
    checked(chooser.set_value(first.id).run())
    assert metric(app, "Measured step time").value == "3.6 ms"


def test_the_end_of_each_kind_of_run_is_told():
    project = made()
    for run in (pipelined, stepwise):
        jobs.note(project.folder, finished(project, run).id, collected=False)
    assert kinds.collect(snapshot(project)) == [
        "Run finished: median 3.6 ms per step.",
        "Run finished: 276 samples/s, cpu:1 sets the pace.",
    ]


def told(**changes):
    """A pipeline of 100 samples a second, as far as its sentences are about it."""
    given = {
        "samples_per_s": 100.0,
        "busy_s": {"cpu:0": 0.004, "cpu:1": 0.006},
        "bottleneck": "cpu:1",
        "predicted_bottleneck": "cpu:0->cpu:1",
    }
    return SimpleNamespace(**given | changes)


def test_a_bottleneck_that_was_not_predicted_or_waits_is_said_to():
    said = stream_results.pace(told()).replace("\\", "")
    assert "cpu:1 sets the pace: it is busy 60% of the time" in said
    assert "even this device waits" in said
    assert "Predicted was the link cpu:0->cpu:1" in said
    said = stream_results.pace(told(predicted_bottleneck="cpu:0")).replace("\\", "")
    assert "Predicted was cpu:0" in said and "link" not in said


def test_busy_shares_are_work_over_the_time_between_samples():
    assert stream_results.busy_share(told(), "cpu:0") == pytest.approx(0.4)
    assert stream_results.busy_share(told(), "cpu:0->cpu:1") is None
    # Medians and means differ by noise; no device is busy for more than all of the time.
    assert stream_results.busy_share(told(samples_per_s=200.0), "cpu:1") == 1.0


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (100.0, "50% fewer samples than the best device alone (cpu:1)"),
        (200.5, "as many samples as the best device alone (cpu:1)"),
        (400.0, "One device with all cores delivers less (250 samples/s)"),
    ],
)
def test_a_pipeline_that_does_not_pay_is_said_to(rate, said):
    alone_s = {"cpu:0": 0.010, "cpu:1": 0.005}
    result = told(samples_per_s=rate, baseline_s=alone_s, all_cores_s=0.004)
    assert said in stream_results.verdict(result).replace("\\", "")


def test_rates_have_three_digits():
    rates = [formatting.rate(r) for r in (276.4, 0.0512, 31.26, 12345.0, None)]
    assert rates[:3] == ["276 samples/s", "0.0512 samples/s", "31.3 samples/s"]
    assert rates[3:] == ["12345 samples/s", "unknown"]


def test_shares_are_drawn_in_percent_and_gaps_stay_gaps():
    names = ["cpu:0", "cpu:1", "cpu:0->cpu:1"]
    figure = charts.busy_shares(names, [0.5, 0.97, None], [0.4, 1.0, 0.25], 1)
    assert [list(t.x) for t in figure.data] == [[50.0, 97.0, None], [40.0, 100.0, 25.0]]
    assert figure.data[0].marker.color[1] == charts.BEST_COLOUR
    assert figure.data[0].text[2] == "" and figure.data[1].text[2] == "25% predicted"


def test_rates_side_by_side_and_times_between_outputs_name_what_they_are():
    assert list(charts.bars_per_s(["this", "cpu:0 alone"], [276.0, 200.0]).data[0].x) == [276, 200]
    assert charts.step_times([0.001], None, "output").layout.xaxis.title.text == "output"
    assert charts.step_times([0.001]).layout.xaxis.title.text == "step"


def test_running_a_pipeline_from_the_page_on_a_virtual_clock():
    app, project = opened()
    next(n for n in app.number_input if n.label == "Samples").set_value(5).run()
    checked(next(b for b in app.button if b.label == "Run (emulated)").click().run())
    job_id = jobs.listed(project.folder, "run")[0]
    while (job := jobs.read(project.folder, job_id)).is_live:
        time.sleep(0.05)
    assert job.status == "done", job.message
    assert job.about.objective == "throughput"
    assert job.progress[1] == "Sample 5 of 5"
    said = texts(checked(app.run()))
    predicted = 1.0 / snapshot(project).simulated.value
    assert metric(app, "Emulated throughput").value == formatting.rate(predicted)
    assert metric(app, "Outputs").value == "not checked"
    assert "sets the pace" in said and "Run finished" in said
    assert "Emulated: this run followed a virtual clock" in said
