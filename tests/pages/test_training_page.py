"""The Run page where a training step is open: train, watch, and what moved in plain words."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from subprocess import PIPE
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.run import train_form, training_charts
from pages.ui.session.current import snapshot
from placement.core.machine import machine_to_text
from studio.jobs import jobs, kinds, process, runs
from studio.jobs.event_log import Step
from studio.project import store
from studio.project.files import write_json
from studio.snapshot import Studio
from tests.command import call_here
from tests.pages.going import go
from tests.pages.test_pages import APP, checked, own_home, texts

__all__ = ["own_home"]
GO_ON = "Go on without hosts that leave"
NET, SIZES = "rnnlm:training", {"batch": 1, "length": 2, "depth": 1}


def project_with(**settings):
    made = store.create()
    made.change(**{"model": NET, "dims": SIZES, "machine": "null-2", **settings})
    return made


def run_page(project):
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    return checked(go(app, "run"))


def trained(**changes):
    """What a training run with one move has printed at last."""
    move = {
        "step": 56,
        "reason": "cpu:0 takes 2.0 times as long as before; predicted 30 ms per step",
        "ops_moved": 2,
        "bytes_moved": 3 * 2**20,
        "predicted_before_s": 0.04,
        "predicted_after_s": 0.03,
        "solve_s": 0.2,
        "switch_s": 0.01,
        "ops": [["conv[1](x)", "cpu:0", "cpu:1"], ["relu", "cpu:0", "cpu:1"]],
    }
    stay = {"step": 90, "reason": "cpu:1 is 1.5 times as fast as before; no other is faster"}
    return {
        "event": "result",
        "step_s": {"median": 0.03, "p5": 0.02, "p95": 0.05},
        "steps": 100,
        "losses": {"first": 6.9, "last": 4.2},
        "predicted_s": 0.02,
        "predicted_final_s": 0.03,
        "adjusted": True,
        "moves": [move],
        "stays": [stay],
        "between_steps_s": {"probes": 0.1, "searching": 0.2, "switching": 0.01},
        "emulated": False,
        "steps_s": [0.02] * 50 + [0.04] * 6 + [0.03] * 44,
        "all_losses": [6.9 - 0.027 * i for i in range(100)],
        "predicted_steps_s": [0.02] * 56 + [0.03] * 44,
        **changes,
    }


def finished(project, **changes):
    """Put a training run that has ended into the project, as its files would tell it."""
    now = snapshot(project)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pages.ui.session.choices.may_write", lambda: True)
        assert now.named.name
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    about = {
        "placement": now.named.name,
        "shelf": now.shelf.folder.name,
        "model": now.model.graph.name,
        "machine": now.machine.name,
        "steps": 100,
    }
    record = {"verb": "train", "argv": [], "pid": -1, "born_at": 0, "started_at": 0}
    write_json(folder / "job.json", {**record, "about": about})
    (folder / "events.jsonl").write_text(json.dumps(trained(**changes)) + "\n")


def wanting_to_train(project):
    project.change(form={"run-what": train_form.TRAIN})
    return project


def test_training_is_offered_for_a_training_step_only():
    app = run_page(project_with())
    assert [r.options for r in app.radio] == [[train_form.MEASURE, train_form.TRAIN]]
    assert "Run (emulated)" in [b.label for b in app.button]
    app = run_page(project_with(model="onnx-squeezenet", dims={}))
    assert not app.radio


@pytest.fixture
def elsewhere():
    """A process that does nothing, in the place of one that trains."""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=PIPE) as idle:
        yield idle
        idle.kill()


def test_a_run_is_trained_from_the_page_and_survives_a_reload(monkeypatch, elsewhere):
    """By the command that the page starts, given to this process, which has PyTorch. Jobs that are
    started are in test_pages.py, of other verbs."""
    started = []

    def noted(command, events, errors, folder):
        started.append((command, events))
        return elsewhere.pid

    monkeypatch.setattr(process, "start", noted)
    project = project_with()
    app = run_page(project)
    app.radio[0].set_value(train_form.TRAIN).run()
    next(n for n in checked(app).number_input if n.label == "Training steps").set_value(3).run()
    command = next(c.value for c in app.code if " train " in c.value)
    assert "train rnnlm:training --dim batch=1" in command and "--steps 3" in command
    next(b for b in app.button if b.label == "Train (emulated)").click().run()
    checked(app)
    assert jobs.latest(project.folder, "train").is_live
    ((command, events),) = started
    assert command[:4] == [sys.executable, "-m", "placement", "train"]
    done = call_here(*command[3:])
    assert (done.returncode, done.stderr) == (0, "")
    events.write_text(done.stdout)
    elsewhere.kill()
    elsewhere.wait()
    job = jobs.latest(project.folder, "train")
    assert job.status == "done", job.message
    assert job.result.steps == 3 and job.result.emulated
    again = run_page(project)
    said = texts(again)
    assert "Emulated: the steps followed a virtual clock" in said
    assert "Nothing: the ops stayed where the placement has them." in said
    assert {m.label: m.value for m in again.metric}["Loss"] == "not computed"


def over_hosts():
    """A project whose devices are on two hosts."""
    project = wanting_to_train(project_with())
    alone = snapshot(project).machine
    named = {d.name: f"host{i}/{d.name}" for i, d in enumerate(alone.devices)}
    apart = replace(
        alone,
        devices=tuple(replace(d, name=named[d.name]) for d in alone.devices),
        links=tuple(replace(k, src=named[k.src], dst=named[k.dst]) for k in alone.links),
    )
    (project.folder / "machines").mkdir(exist_ok=True)
    (project.folder / "machines" / "apart.json").write_text(machine_to_text(apart))
    project.change(machine="apart.json")
    return project


def test_where_hosts_may_leave_it_is_asked_whether_to_go_on(monkeypatch):
    assert not any(t.label == GO_ON for t in run_page(over_hosts()).toggle), "emulated ones stay"
    monkeypatch.setattr(Studio, "emulated", False)
    assert not any(t.label == GO_ON for t in run_page(wanting_to_train(project_with())).toggle)
    app = run_page(over_hosts())
    next(t for t in app.toggle if t.label == GO_ON).set_value(True).run()
    command = next(c.value for c in checked(app).code if " train " in c.value)
    assert command.endswith("--resume"), command


def test_what_moved_is_told_in_plain_words():
    project = wanting_to_train(project_with())
    finished(project)
    app = run_page(project)
    said = texts(app)
    assert "Move 1, before step 57:" in said and "cpu:0 takes 2.0 times as long as before" in said
    assert "2 ops changed device, with 3 MiB of weights and optimiser state" in said
    assert "Before step 91 a change was seen, but nothing moved: cpu:1 is 1.5 times" in said
    shown = {m.label: (m.value, m.delta) for m in app.metric}
    assert shown["Measured step time"] == ("30 ms", "p5 20 ms, p95 50 ms")
    assert shown["Loss"] == ("4.2", "6.9 at the start")
    assert shown["Moves"] == ("1", "310 ms between steps")
    moved = app.dataframe[0].value
    assert moved["Op"].tolist() == ["conv[1](x)", "relu"]


def test_a_run_without_adjusting_says_nothing_of_moves():
    project = wanting_to_train(project_with())
    finished(project, adjusted=False, moves=[], stays=[])
    app = run_page(project)
    assert "What moved" not in texts(app)
    assert {m.label: m.value for m in app.metric}["Moves"] == "off"


def test_the_end_of_training_is_told(monkeypatch):
    monkeypatch.setattr("pages.ui.session.choices.may_write", lambda: True)
    project = project_with()
    finished(project)
    now = snapshot(project)
    told = "Training finished: 100 steps of 30 ms, loss 6.9 to 4.2, 1 move."
    assert kinds.collect(now) == [told]


def test_what_training_ended_with_is_kept_beside_what_it_began_with(monkeypatch):
    monkeypatch.setattr("pages.ui.session.choices.may_write", lambda: True)
    project = project_with()
    now = snapshot(project)
    began = now.placement
    first = now.model.graph.ops[0].name
    other = next(d.name for d in now.machine.devices if d.name != began.device_of[first])
    ended = replace(began, device_of={**began.device_of, first: other})
    finished(project, final_placement=ended.to_json())
    name = f"{now.named.name} after training"
    assert f"among the placements: {name}." in kinds.collect(now)[0]
    later = snapshot(project)
    assert dict(later.shelf.read(name).device_of) == dict(ended.device_of)
    assert later.named.name == now.named.name and later.shelf.read(now.named.name) == began
    finished(project, final_placement=began.to_json(), moves=[])
    assert "among the placements" not in kinds.collect(later)[0]


def test_a_loss_that_is_no_number_any_more_is_told():
    project = wanting_to_train(project_with())
    finished(project, losses={"first": 6.9, "last": None}, all_losses=[6.9, None])
    app = run_page(project)
    shown = {m.label: (m.value, m.delta) for m in app.metric}
    assert shown["Loss"] == ("no number", "6.9 at the start")
    (job,) = runs.finished(project, "train")
    assert "loss 6.9 to no number" in kinds.trained_in_short(job.result)


def test_throughput_is_no_goal_for_training():
    app = run_page(wanting_to_train(project_with(objective="throughput")))
    assert "choose the goal" in texts(app)
    assert next(b for b in app.button if b.label.startswith("Train")).disabled


def test_moves_stand_in_the_curve_where_they_happened():
    moves = [SimpleNamespace(step=3), SimpleNamespace(step=2_500)]
    short = training_charts.step_curve([0.1] * 10, [0.1] * 10, moves[:1])
    assert [line.x0 for line in short.layout.shapes] == [3.5]
    long = training_charts.step_curve([0.1] * 3_000, [0.1] * 3_000, moves)
    assert [line.x0 for line in long.layout.shapes] == [2_500.5]
    assert [a.text for a in long.layout.annotations] == ["move 2"]
    assert next(iter(long.data[0].x)) == 1_001 and long.data[0].y[0] == pytest.approx(100.0)


def test_a_step_without_a_loss_is_a_gap_in_its_curve_and_a_step_like_any_other(monkeypatch):
    drawn = []
    monkeypatch.setattr(train_form.st, "plotly_chart", lambda curve, **_: drawn.append(curve))
    steps = [Step(seconds=0.1, predicted_s=0.1, loss=loss) for loss in (3.0, None, 1.0)]
    job = SimpleNamespace(id="one", all=lambda kind: steps if kind is Step else [])
    train_form.live_curves(job)
    times, losses = (curve.data[0] for curve in drawn)
    assert tuple(times.x) == tuple(losses.x) == (1, 2, 3)
    assert tuple(losses.y) == (3.0, None, 1.0)
    steps[:] = [Step(seconds=0.1, predicted_s=0.1)] * 3
    train_form.live_curves(job)
    assert len(drawn) == 3, "nothing computed a loss, so there is no curve of it"
