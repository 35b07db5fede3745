"""The machine on the Devices page: this computer, all of it or by one runtime alone."""

import json
from dataclasses import replace

import pytest
import streamlit as st

from placement.core.machine import Device, Link, Machine, machine_from_json, machine_to_text
from profiling import backends
from profiling.devices.cores import usable_cores
from profiling.devices.local import presets
from studio.project import store
from tests.pages.test_pages import checked, opened, own_home, shown, snapshot
from tests.thorough import either

assert own_home


def machine_menu(app):
    return next(box for box in app.selectbox if box.label == "Machine")


def test_one_runtime_is_no_choice_and_without_ray_there_is_no_button_for_it(monkeypatch):
    app, _ = opened("devices", model="onnx-squeezenet")
    options = machine_menu(app).options
    assert options[0] == "This computer" and "pcie-4gpu" in options
    assert not any("alone" in option for option in options)
    monkeypatch.setattr(type(backends.get("ray")), "missing", lambda self: "needs: it")
    checked(app.run())
    assert not any("Ray" in button.label for button in app.button)


def test_where_several_runtimes_run_the_model_each_can_be_taken_alone(monkeypatch):
    both = (backends.get("onnxruntime"), backends.get("torch"))
    monkeypatch.setattr(backends, "running", lambda format: both)
    app, project = opened("devices", model="onnx-squeezenet")
    assert machine_menu(app).options[:3] == [
        "This computer",
        "This computer, onnxruntime alone",
        "This computer, torch alone",
    ]
    machine_menu(app).select("local:onnxruntime").run()
    assert project.settings.machine == "local:onnxruntime"
    assert machine_menu(checked(app)).value == "local:onnxruntime"
    rows = app.dataframe[0].value
    assert all("CPU" in by or "onnxruntime" in by for by in rows["Runs by"])


def small_gpu(project):
    """A machine of the project whose accelerator holds part of squeezenet's 5 MB of weights."""
    devices = (
        Device("cpu:0", memory_bytes=10**9, flops_per_s=1e9, memory_bytes_per_s=1e8),
        Device("cuda:0", "gpu", memory_bytes=10**7, flops_per_s=1e12, memory_bytes_per_s=1e11),
    )
    links = (Link("cpu:0", "cuda:0", 1e-5, 1e9), Link("cuda:0", "cpu:0", 1e-5, 1e9))
    machine = Machine("small", devices, links, sources=("https://www.example.org/gpu",))
    folder = project.folder / "machines"
    folder.mkdir(exist_ok=True)
    (folder / "small.json").write_text(machine_to_text(machine))
    project.change(machine="small.json")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "page", either(["devices", "place"], ["devices", "place", "compare", "what_if"])
)
def test_weights_may_stream_on_every_page(page):
    project = store.create()
    small_gpu(project)
    project.change(model="onnx-squeezenet", offload=True)
    app = shown(project, page)
    names = ["cpu:0", "cuda:0", "cuda:0-streamed"]
    if page == "devices":
        rows = app.dataframe[0].value
        assert list(rows["Device"]) == names
        assert list(rows["Memory"])[2] == "that of cuda:0, for weights that of cpu:0"
        said = " ".join(caption.value for caption in app.caption).replace("\\", "")
        assert "stay in the memory of cpu:0" in said
        assert "[www.example.org](https://www.example.org/gpu)" in said
        switch = next(t for t in app.toggle if t.label.startswith("Weights may stream"))
        switch.set_value(False).run()
        assert not project.settings.offload
        assert list(checked(app).dataframe[0].value["Device"]) == names[:2]


def unrated(project):
    """A machine of the project that says how much each device holds and not how fast it is."""
    devices = (Device("cpu:0", memory_bytes=10**9), Device("gpu:0", "gpu", flops_per_s=1e12))
    links = (Link("cpu:0", "gpu:0", 1e-5, 1e9), Link("gpu:0", "cpu:0", 1e-5, 1e9))
    folder = project.folder / "machines"
    folder.mkdir(exist_ok=True)
    text = machine_to_text(Machine("unrated", devices, links))
    (folder / "unrated.json").write_text(text)
    project.change(machine="unrated.json")


def test_a_machine_without_speeds_is_drawn_and_its_speeds_can_be_typed_in():
    project = store.create()
    unrated(project)
    project.change(model="onnx-squeezenet")
    app = shown(project, "devices")
    told = "\n".join(box.value for box in app.warning).replace("\\", "")
    assert "of cpu:0, the arithmetic" in told and "of gpu:0, the bandwidth" in told
    assert list(app.dataframe[0].value["Device"]) == ["cpu:0", "gpu:0"]
    assert not app.main.error and len(app.dataframe[1].value) == 2, "the links"
    for device, figures in {
        "cpu:0": {"TFLOP per second in float32": 0.1, "GB per second from its memory": 20.0},
        "gpu:0": {"GB per second from its memory": 400.0},
    }.items():
        app.session_state["kept"] = {**app.session_state["kept"], "machine-picture": device}
        app.run()
        for label, value in figures.items():
            field = next(box for box in app.number_input if box.label == label)
            assert field.value is None
            checked(field.set_value(value).run())
    assert not app.warning, [box.value for box in app.warning]
    machine = snapshot(project).stated_machine
    assert [d.flops_per_s for d in machine.devices] == [1e11, 1e12]
    assert [d.memory_bytes_per_s for d in machine.devices] == [2e10, 4e11]
    assert snapshot(project).problem.costs.origin == "analytic"


def two_hosts(path):
    """What the process that asks a cluster writes."""
    devices = tuple(
        Device(f"{host}/cpu:0", "cpu", "ray", "cpu", 10**9, flops_per_s=1e9, memory_bytes_per_s=1e8)
        for host in ("alpha", "beta")
    )
    a, b = (d.name for d in devices)
    links = (Link(a, b, 5e-4, 1e9), Link(b, a, 5e-4, 1e9))
    path.write_text(machine_to_text(Machine("ray", devices, links)))


def test_the_hosts_of_a_cluster_are_taken_as_one_machine(monkeypatch):
    monkeypatch.setattr(type(backends.get("ray")), "missing", lambda self: "")
    monkeypatch.setattr("pages.ui.devices.machine_choice.save_hosts", two_hosts)
    app, project = opened("devices", model="onnx-squeezenet")
    next(b for b in app.button if "Ray cluster" in b.label).click().run()
    assert project.settings.machine == "ray.json"
    rows = checked(app).dataframe[0].value
    assert list(rows["Device"]) == ["alpha/cpu:0", "beta/cpu:0"]


def test_a_cluster_that_is_not_there_is_named_and_nothing_changes(monkeypatch):
    def refused(path):
        raise ValueError("No Ray cluster runs here; start one, or use --machine local.")

    monkeypatch.setattr(type(backends.get("ray")), "missing", lambda self: "")
    monkeypatch.setattr("pages.ui.devices.machine_choice.save_hosts", refused)
    app, project = opened("devices", model="onnx-squeezenet")
    next(b for b in app.button if "Ray cluster" in b.label).click().run()
    assert project.settings.machine == "local"
    assert any("No Ray cluster" in str(said.value) for said in (*app.error, *app.toast))


def test_where_the_head_is_gone_this_computer_is_offered(monkeypatch):
    monkeypatch.setattr(type(backends.get("ray")), "missing", lambda self: "")
    monkeypatch.setattr("pages.ui.devices.machine_choice.save_hosts", two_hosts)
    answers = {"head": ""}
    monkeypatch.setattr("pages.ui.devices.machine_choice.silent_head", lambda: answers["head"])
    st.cache_data.clear()
    app, project = opened("devices", model="onnx-squeezenet")
    next(b for b in app.button if "Ray cluster" in b.label).click().run()
    assert not any("instead" in b.label for b in app.button)
    answers["head"] = "127.0.0.1:6379"
    st.cache_data.clear()
    app.run()
    told = [str(said.value).replace("\\", "") for said in app.warning]
    assert any("does not answer at 127.0.0.1:6379" in words for words in told), told
    next(b for b in app.button if "instead" in b.label).click().run()
    assert project.settings.machine == "local"
    assert not any("does not answer" in str(said.value) for said in app.warning)


def test_of_very_many_links_those_of_one_device_are_listed(monkeypatch):
    def many(path):
        devices = tuple(
            Device(f"h{i // 8}/cpu:{i % 8}", flops_per_s=1e9, memory_bytes_per_s=1e8)
            for i in range(40)
        )
        links = tuple(Link(a.name, b.name, 1e-5, 1e9) for a in devices for b in devices if a != b)
        path.write_text(machine_to_text(Machine("many", devices, links)))

    monkeypatch.setattr(type(backends.get("ray")), "missing", lambda self: "")
    monkeypatch.setattr("pages.ui.devices.machine_choice.save_hosts", many)
    app, _ = opened("devices", model="onnx-squeezenet")
    next(b for b in app.button if "Ray cluster" in b.label).click().run()
    for name in ("h0/cpu:0", "h3/cpu:5"):
        if name != "h0/cpu:0":
            app.session_state["kept"] = {**app.session_state["kept"], "machine-picture": name}
            app.run()
        rows = checked(app).dataframe[1].value
        assert len(rows) == 2 * 39
        assert all(name in pair for pair in zip(rows["From"], rows["To"], strict=True))
        assert any(f"those of {name}" in str(said.value).replace("\\", "") for said in app.caption)


@pytest.mark.thorough
@pytest.mark.parametrize("name", either([*presets()][::3], presets()))
def test_what_a_preset_is_stands_there_to_its_end(name):
    if name == "two-lanes" and len(usable_cores()) < 2:
        pytest.skip("This computer has one core.")
    app, _ = opened("devices", machine=name)
    note = presets()[name]
    assert any(str(c.value).replace("\\", "").endswith(note[-60:]) for c in app.caption), note


def test_links_tell_who_is_held_up_where_anybody_is():
    project = store.create()
    small_gpu(project)
    app = shown(project, "devices")
    rows = links_of(app)
    assert not {"Sender busy", "Receiver busy"} & set(rows.columns)
    path = project.folder / "machines" / "small.json"
    machine = machine_from_json(json.loads(path.read_text()))
    first, second = machine.links
    links = (replace(first, send_overhead=0.625, receive_overhead=0.25), second)
    path.write_text(machine_to_text(replace(machine, links=links)))
    rows = links_of(checked(app.run()))
    assert rows["Sender busy"].tolist() == ["62.5%", "0%"]
    assert rows["Receiver busy"].tolist() == ["25%", "0%"]
    assert any("can do nothing else" in each.value for each in app.caption)


def links_of(app):
    """The table of links on the Devices page."""
    return next(t.value for t in app.dataframe if {"From", "To"} <= set(t.value.columns))
