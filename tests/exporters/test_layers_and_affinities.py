"""What ONNX Runtime and OpenVINO are told: every op by its name, on a device of theirs."""

import dataclasses
import json

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from placement.core.machine import Device, Machine
from placement.exporters import exporter
from placement.exporters.openvino_hetero import device_names
from placement.exporters.ort_layers import KEY, OPTION
from placement.loaders import load
from profiling.devices.local import load_machine
from tests.exporters.bundles import script, unpacked, whole_outputs
from tests.exporters.exports import dealt, export_of, written


@pytest.fixture(scope="module")
def squeezenet():
    model = load("onnx-squeezenet")
    return export_of(model, dealt(model.graph, 2))


def on_machine(export, machine, names):
    """The same model on another machine, ops dealt to these devices."""
    import placement as pl

    problem = pl.make_problem(export.model, machine)
    placement = dealt(export.model.graph, 2, names)
    return dataclasses.replace(export, problem=problem, placement=placement)


def test_every_op_carries_the_word_of_its_device(squeezenet, tmp_path):
    folder = unpacked("ort-layers", squeezenet, tmp_path)
    settings = json.loads((folder / "layers.json").read_text())
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model)
    word_of = {entry.name: {p.key: p.value for p in entry.metadata_props} for entry in
               model.graph.node}  # fmt: skip
    for op, device in squeezenet.placement.device_of.items():
        assert settings["devices"][word_of[op][KEY]] == device, op
    assert settings["providers"] == ["CPUExecutionProvider"]
    assert settings["session_options"][OPTION] == "cpu(=device0); cpu(=device1)"


@pytest.mark.parametrize(
    ("name", "word"), [("ort-layers", "CPUExecutionProvider"), ("openvino-hetero", "CPU")]
)
def test_what_the_runtime_does_not_tell_apart_is_said(squeezenet, name, word):
    assert f"cpu:0 and cpu:1 are one device, {word}" in exporter(name).note(squeezenet)
    one = dataclasses.replace(squeezenet, placement=dealt(squeezenet.model.graph, 0))
    assert exporter(name).note(one) == ""
    both = on_machine(squeezenet, load_machine("laptop-gpu"), ("cpu:0", "cuda:0"))
    assert exporter(name).note(both) == ""


def test_the_installed_onnxruntime_takes_the_options_and_computes_the_same(squeezenet, tmp_path):
    folder = unpacked("ort-layers", squeezenet, tmp_path)
    session = script(folder / "load.py").session()
    given = {session.get_inputs()[0].name: np.ones(session.get_inputs()[0].shape, np.float32)}
    expected = whole_outputs(squeezenet.model.executable.model_proto(), given)
    found = dict(zip(expected, session.run(list(expected), given), strict=True))
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-6)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry(OPTION, "cpu=device0")
    with pytest.raises(Exception, match="layering config"):
        ort.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )


def test_providers_are_asked_for_in_order_and_by_their_words(squeezenet, tmp_path):
    machine = load_machine("laptop-gpu")
    names = tuple(d.name for d in machine.devices)
    export = on_machine(squeezenet, machine, names)
    folder = unpacked("ort-layers", export, tmp_path)
    settings = json.loads((folder / "layers.json").read_text())
    assert settings["providers"] == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    rules = settings["session_options"][OPTION].split("; ")
    assert sorted(rule.partition("(")[0] for rule in rules) == ["cpu", "cuda"]


def test_two_gpus_of_one_provider_cannot_share_a_session(squeezenet, tmp_path):
    machine = load_machine("pcie-4gpu")
    gpus = tuple(d.name for d in machine.devices if d.kind == "gpu")
    with pytest.raises(ValueError, match="split ONNX models instead"):
        written("ort-layers", on_machine(squeezenet, machine, gpus), tmp_path)
    one = on_machine(squeezenet, machine, gpus[:1])
    assert written("ort-layers", one, tmp_path).is_file()


def test_affinities_name_every_op_of_the_model_beside_them(squeezenet, tmp_path):
    folder = unpacked("openvino-hetero", squeezenet, tmp_path)
    content = json.loads((folder / "affinities.json").read_text())
    model = onnx.load(folder / "model.onnx")
    ops = [op.name for op in squeezenet.model.graph.ops]
    assert list(content["affinities"]) == ops
    assert set(content["affinities"].values()) == {"CPU"} and content["devices"] == ["CPU"]
    assert set(ops) <= {node.name for node in model.graph.node}
    written_by = {value: node.name for node in model.graph.node for value in node.output}
    assert all(written_by[value] == op for value, op in content["value_of"].items())
    assert content["placed_on"] == dict(squeezenet.placement.device_of)
    compile((folder / "run_openvino.py").read_text(), "run_openvino.py", "exec")


def test_devices_by_openvinos_names():
    devices = [Device("cpu:0"), Device("cpu:1"), Device("a", "gpu"), Device("n", "npu")]
    assert device_names(tuple(devices)) == {"cpu:0": "CPU", "cpu:1": "CPU", "a": "GPU", "n": "NPU"}
    two = Machine("two", (*devices, Device("b", "gpu")))
    assert device_names(two.devices) == {
        "cpu:0": "CPU",
        "cpu:1": "CPU",
        "a": "GPU.0",
        "n": "NPU",
        "b": "GPU.1",
    }
