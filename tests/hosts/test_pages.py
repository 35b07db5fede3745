"""The pages over a cluster: its hosts are taken, a run goes on without one, and the head goes."""

import time

import numpy as np
from streamlit.testing.v1 import AppTest

from pages.ui.session.current import snapshot
from studio.cluster import silent_head
from studio.jobs import jobs
from studio.jobs.event_log import Lost
from studio.project import placements, store
from tests.hosts.kills import LIMIT_S
from tests.hosts.two_nodes import kill, nodes
from tests.pages.going import go
from tests.pages.test_pages import APP, checked, own_home, texts
from tests.profiling.live import diamond

assert own_home
STEPS = 3000
TAKE, AGAIN = "Take the hosts of a Ray cluster", "Run again without hosts that leave"


def until(holds):
    """Look until something is there, and give it."""
    end_s = time.monotonic() + LIMIT_S
    while not (found := holds()):
        assert time.monotonic() < end_s, "it did not come"
        time.sleep(0.05)
    return found


def over_both(project):
    """Ops on both hosts in turn, as the placement on the screen."""
    now = snapshot(project)
    turns = now.problem.placement_of(np.arange(now.problem.num_units) % 2)
    placements.keep(project, now.shelf, "in turn", turns, "you", {})


def latest(project):
    return jobs.latest(project.folder, "run")


def button(app, label):
    return next(b for b in app.button if b.label == label)


def test_a_run_goes_on_without_a_host_and_a_head_that_is_gone_is_told(copying, tmp_path):
    diamond(tmp_path)
    with nodes(("gamma", "delta"), copying) as cluster:
        project = store.create()
        project.change(model_kind="path", model=str(tmp_path / "small.onnx"))
        app = AppTest.from_file(str(APP), default_timeout=120)
        app.query_params["project"] = project.id
        button(checked(go(app, "devices")), TAKE).click().run()
        assert [d.host for d in snapshot(project).machine.devices] == ["gamma", "delta"]
        over_both(project)
        app = go(checked(app), "run")
        next(n for n in app.number_input if n.label == "Steps").set_value(STEPS).run()
        next(t for t in app.toggle if t.label == AGAIN).set_value(True).run()
        assert any("--resume" in shown.value for shown in checked(app).code)
        button(app, "Run").click().run()
        until(lambda: latest(project).steps or not latest(project).is_live)
        for process in (*cluster.workers("delta"), cluster.raylet("delta")):
            kill(process)
        assert latest(project).is_live, "it was over before that"
        until(lambda: not latest(project).is_live)
        job = latest(project)
        assert job.status == "done", job.message
        (lost,) = job.all(Lost)
        assert lost.devices == ("delta/cpu:0",) and "'delta' left" in lost.message
        assert set(job.ran.placement.device_of.values()) == {"gamma/cpu:0"}
        assert len(job.ran.steps_s) == STEPS
        app = go(checked(app), "run")
        assert "In the middle of this run delta/cpu:0 left." in texts(checked(app))
        for process in cluster.processes("gamma"):
            kill(process)
        until(lambda: silent_head() != "")
        app = go(app, "devices")
        assert "The head of the Ray cluster does not answer" in texts(checked(app))
        button(app, "Use this computer instead").click().run()
        assert not any(d.host for d in snapshot(project).machine.devices)
        checked(app)
