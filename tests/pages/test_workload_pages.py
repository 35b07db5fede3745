"""A workload file on the pages: placed when it is opened, its values in its own unit."""

import dataclasses
import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.canvas import colour_switch
from pages.ui.panels import device_loads
from pages.ui.session.current import snapshot as snapshot_of
from placement.core.objective import CallRules
from studio import snapshot
from studio.project import store
from tests.instances import random_problem
from tests.pages.going import go
from tests.workloads import diamond, edges, node, workload

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def opened(content, page, tmp_path, **settings):
    path = tmp_path / "small.json"
    path.write_text(json.dumps(content))
    project = store.create()
    project.change(model_kind="path", model=str(path), **settings)
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    app.session_state["command-open"] = True
    go(app, page)
    assert not app.exception, app.exception[0].message
    return app


# The test below has the other two pages.
@pytest.mark.parametrize("page", ["devices", "run"])
def test_every_page_draws_a_workload(page, tmp_path):
    app = opened(diamond(), page, tmp_path)
    written = [
        str(e.value) for kind in (app.markdown, app.caption, app.sidebar.caption) for e in kind
    ]
    assert any("small" in text for text in written)


@pytest.mark.parametrize(
    ("objective", "label", "value"),
    [
        ("latency", "Predicted step time", "10 ms"),
        ("throughput", "Predicted time per sample", "5 ms"),
    ],
)
def test_the_place_page_shows_milliseconds(objective, label, value, tmp_path):
    """All four nodes are one call of 1 + 2 + 3 + 4 ms; without edges {1, 4} | {2, 3} balances
    the load at 5 ms."""
    content = diamond() if objective == "latency" else workload(diamond()["nodes"], [])
    app = opened(content, "place", tmp_path, objective=objective)
    metric = next(m for m in app.metric if m.label == label)
    assert (metric.value, metric.delta) == (value, "from the file")
    # The Model page tells the same number by the same name.
    go(app, "model")
    assert any(f"{label}: {value} (" in str(caption.value) for caption in app.caption)


def test_a_first_look_uses_a_method_that_fits_the_problem():
    assert snapshot.first_placer(random_problem(0)) == "heft"


def test_how_throughput_is_charged_is_set_on_the_devices_page(tmp_path):
    """1 and 4 alone, 2 and 3 together: what crosses costs less beside compute, more to far away."""
    app = opened(diamond(), "devices", tmp_path, objective="throughput")
    project = store.recent(limit=None, untouched=True)[0]

    def written():
        assert not app.exception, app.exception[0].message
        return " ".join(str(c.value) for c in app.caption).replace("\\", "")

    assert "compute + transfers" in written()
    factor = next(n for n in app.number_input if n.label.startswith("Slower between"))
    assert factor.disabled
    next(t for t in app.toggle if t.label.startswith("Transfers overlap")).set_value(True).run()
    assert project.settings.rules == CallRules(overlap=True)
    assert "the longer of its compute and its transfers" in written()
    next(n for n in app.number_input if n.label.endswith("in a cluster")).set_value(1).run()
    next(n for n in app.number_input if n.label.startswith("Slower")).set_value(4.0).run()
    asked = CallRules(overlap=True, cluster_size=1, slow_link_factor=4.0)
    assert project.settings.rules == asked
    assert "takes 4 times as long" in written()
    app.switch_page("pages/place.py").run()
    shown = " ".join(str(c.value) for c in app.code)
    assert "--overlap --cluster-size 1 --slow-link-factor 4" in shown
    assert "charged with: transfers overlap compute; clusters of 1 accelerator" in written()
    app.switch_page("pages/devices.py").run()
    next(n for n in app.number_input if n.label.endswith("in a cluster")).set_value(0).run()
    assert project.settings.rules == CallRules(overlap=True)
    project.change(objective="latency")
    app.run()
    assert "For most samples per second" in written()


@pytest.mark.parametrize(
    ("objective", "given", "told"),
    [
        # Two accelerators hold all 40 ms of work and take samples in turn.
        ("throughput", {"replicas": {"acc:0": 2}}, ("4 ops, 2 copies", "20 ms")),
        # It is called before and behind the third op, with 1 ms for each tensor that it reads and
        # sends.
        ("latency", {"calls": {"acc:0": 2}}, ("3 ops, 2 calls", "32 ms")),
    ],
)
def test_copies_and_calls_stand_beside_what_a_device_does(
    objective, given, told, tmp_path, monkeypatch
):
    monkeypatch.setattr("pages.ui.session.choices.may_write", lambda: True)
    path = tmp_path / "chain.json"
    chain = edges((1, 2, 1), (2, 3, 1), (3, 4, 1))
    path.write_text(json.dumps(workload([node(i, 100, 10) for i in (1, 2, 3, 4)], chain)))
    project = store.create()
    project.change(model_kind="path", model=str(path), objective=objective)
    before = snapshot_of(project)
    devices = ["acc:0"] * 4
    if objective == "latency":
        devices[2] = "cpu:0"
    names = [op.name for op in before.model.graph.ops]
    device_of = dict(zip(names, devices, strict=True))
    placement = dataclasses.replace(before.placement, device_of=device_of, **given)
    before.shelf.add("by hand", placement, "manual")
    now = snapshot_of(project)
    loads = device_loads.loads_of(now)
    drawn = device_loads.html(loads, now.problem.unit)
    assert told[0] in drawn and f"{told[1]} busy" in drawn
    assert next(key.busy for key in colour_switch.devices(now)) == told[1]
