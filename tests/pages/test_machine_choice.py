"""The machine on the Devices page: this computer, all of it or by one runtime alone."""

from profiling import backends
from tests.pages.test_pages import checked, opened, own_home

assert own_home


def machine_menu(app):
    return next(box for box in app.selectbox if box.label == "Machine")


def test_one_runtime_is_no_choice():
    app, _ = opened("devices", model="onnx-squeezenet")
    options = machine_menu(app).options
    assert options[0] == "This computer" and "pcie-4gpu" in options
    assert not any("alone" in option for option in options)


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
