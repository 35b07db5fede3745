"""Split models compute what the whole one does: every sample, odd graphs, and the script itself."""

import dataclasses
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from placement.core.model import Model
from placement.exporters import exporter, write
from placement.exporters._onnx import save
from placement.exporters._sources import source_schedule
from placement.loaders import load, samples
from tests.exporters.bundles import script, unpacked, whole_outputs
from tests.exporters.exports import dealt, export_of, written
from tests.loaders.models import BOOL, INT64, model_of, value
from tests.thorough import either

WEIGHT = numpy_helper.from_array(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4), "w")


def outputs_of(folder, inputs=None):
    """Outputs of the bundle in a folder, and the inputs it was given."""
    made = script(folder / "run.py").PlacedModel(folder)
    try:
        inputs = made.random_inputs() if inputs is None else inputs
        return made.run(inputs), inputs
    finally:
        made.close()


def check_same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        size = float(np.abs(array).max(initial=0)) if array.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5 * size, err_msg=name)


@pytest.fixture
def scratch(tmp_path):
    """A folder in memory where there is one with room, because weights fill gigabytes."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < 2**31:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@dataclass(frozen=True)
class Made:
    """An executable whose weights are made once for several exports."""

    proto: onnx.ModelProto
    base_dir: Path
    format: str = "onnx"
    content_hash: str = "made"

    def model_proto(self, most_bytes=None):
        return self.proto


LIGHT = "onnx-squeezenet"
# In `make test` with all kinds of ops that the others have, but for Add, Mul and Unsqueeze.
FEW = [LIGHT, "onnx-inception-v1", "onnx-shufflenet"]
SAMPLES = either(FEW, [s.name for s in samples() if s.name.startswith("onnx-")])
# In halves or dealt at random; in all three placements if it is light.
NUMBERS = [
    (name, either([1 + i % 2] if name != LIGHT else [0, 1, 2], [0, 1, 2]))
    for i, name in enumerate(SAMPLES)
]


@pytest.mark.thorough
@pytest.mark.parametrize(("sample", "numbers"), NUMBERS, ids=SAMPLES)
def test_placements_of_every_sample(sample, numbers, scratch):
    found = load(sample)
    proto = found.executable.model_proto()
    model = dataclasses.replace(found, executable=Made(proto, scratch))
    inputs = expected = None
    for number in numbers:
        folder = scratch / str(number)
        write(exporter("split-onnx"), export_of(model, dealt(model.graph, number)), folder)
        outputs, inputs = outputs_of(folder, inputs)
        if expected is None:
            expected = whole_outputs(proto, inputs)
        assert any(float(np.ptp(array)) > 0 for array in expected.values())
        check_same(outputs, expected)
        shutil.rmtree(folder)


def by_hand(folder, nodes, inputs, outputs, initializers=(), **settings):
    """A model in a file, every op on the other device than the one before it."""
    proto = model_of(nodes, inputs, outputs, initializers, ir_version=9, **settings)
    path = folder / "model.onnx"
    onnx.save(proto, path)
    model = load(str(path))
    placement = dealt(model.graph, 1)
    names = {op.name: f"cpu:{i % 2}" for i, op in enumerate(model.graph.ops)}
    return export_of(model, type(placement)(placement.graph, "two-lanes", names)), proto


def test_bodies_take_values_of_other_parts(tmp_path):
    """The branches of an If read a value from outside that another part makes."""
    then = helper.make_graph(
        [helper.make_node("Add", ["a", "w"], ["t"])], "then", [], [value("t", [4, 4])]
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["a"], ["e"])], "else", [], [value("e", [4, 4])]
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        helper.make_node("Exp", ["y"], ["z"]),
    ]
    inputs = [value("x", [4, 4]), value("c", [], BOOL)]
    export, proto = by_hand(tmp_path, nodes, inputs, [value("z", [4, 4])], [WEIGHT])
    folder = unpacked("split-onnx", export, tmp_path)
    for chosen in (True, False):
        given = {"x": np.eye(4, dtype=np.float32), "c": np.array(chosen)}
        check_same(outputs_of(folder, given)[0], whole_outputs(proto, given))


def test_weights_and_constants_that_several_parts_read_and_outputs_of_all_kinds(tmp_path):
    """A weight, a made constant, an input and an inner value are outputs; nodes have no names."""
    shape = numpy_helper.from_array(np.array([2, 8], dtype=np.int64), "shape")
    nodes = [
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.float32(2))),
        helper.make_node("Mul", ["w", "k"], ["wk"]),
        helper.make_node("MatMul", ["x", "wk"], ["a"]),
        helper.make_node("MatMul", ["a", "wk"], ["b"]),
        helper.make_node("Add", ["b", "a"], ["s"]),
        helper.make_node("Reshape", ["s", "shape"], ["y"]),
    ]
    results = [value("y", [2, 8]), value("a", [4, 4]), value("w", [4, 4])]
    inputs = [value("x", [4, 4])]
    export, proto = by_hand(tmp_path, nodes, inputs, results, [WEIGHT, shape])
    folder = unpacked("split-onnx", export, tmp_path)
    found, given = outputs_of(folder)
    check_same(found, whole_outputs(proto, given))
    assert len(list(folder.glob("part*.onnx"))) > 1
    np.testing.assert_array_equal(found["w"], numpy_helper.to_array(WEIGHT))


def test_types_that_only_the_runtime_knows(tmp_path):
    """A fused op of onnxruntime's own domain stands between the parts."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("BiasGelu", ["a", "row"], ["b"], domain="com.microsoft"),
        helper.make_node("Exp", ["b"], ["y"]),
    ]
    row = numpy_helper.from_array(np.arange(4, dtype=np.float32), "row")
    proto = model_of(nodes, [value("x", [4, 4])], [value("y", [4, 4])], [row], ir_version=9)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    path = tmp_path / "fused.onnx"
    onnx.save(proto, path)
    model = load(str(path))
    names = {op.name: f"cpu:{i % 2}" for i, op in enumerate(model.graph.ops)}
    placement = dealt(model.graph, 0)
    export = export_of(model, type(placement)(placement.graph, "two-lanes", names))
    found, given = outputs_of(unpacked("split-onnx", export, tmp_path))
    check_same(found, whole_outputs(proto, given))


def test_whole_numbers_cross_the_border(tmp_path):
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Cast", ["s"], ["f"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Greater", ["f", "f"], ["y"]),
    ]
    results = [value("y", [2], BOOL), value("s", [2], INT64)]
    export, proto = by_hand(tmp_path, nodes, [value("x", [3, 5])], results)
    found, given = outputs_of(unpacked("split-onnx", export, tmp_path))
    check_same(found, whole_outputs(proto, given))


def test_weights_in_files_of_their_own_go_into_the_parts(tmp_path):
    large = np.random.default_rng(0).random((64, 64), dtype=np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "big"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    ends = [value("x", [1, 64])], [value("y", [1, 64])]
    proto = model_of(nodes, *ends, [numpy_helper.from_array(large, "big")], ir_version=9)
    expected = whole_outputs(proto, {"x": np.ones((1, 64), np.float32)})
    source = tmp_path / "source"
    source.mkdir()
    onnx.save(proto, source / "m.onnx", save_as_external_data=True, location="w.bin")
    export = export_of(load(str(source / "m.onnx")))
    folder = unpacked("split-onnx", export, tmp_path)
    (source / "w.bin").unlink()
    check_same(outputs_of(folder, {"x": np.ones((1, 64), np.float32)})[0], expected)


def test_the_parts_are_the_predicted_calls_of_the_source_ops(tmp_path):
    export = export_of(load("onnx-squeezenet"))
    folder = unpacked("split-onnx", export, tmp_path)
    about = json.loads((folder / "parts.json").read_text())
    schedule = export.simulated.schedule
    assert schedule == source_schedule(export.problem, export.placement)
    assert [p["device"] for p in about["parts"]] == [s.device for s in schedule.segments]
    for row, segment in zip(about["parts"], schedule.segments, strict=True):
        part = onnx.load(folder / row["file"])
        onnx.checker.check_model(part)
        assert set(segment.kernels) <= {node.name for node in part.graph.node}


def test_the_script_runs_by_itself_on_given_inputs(tmp_path):
    export = export_of(load("onnx-squeezenet"))
    folder = unpacked("split-onnx", export, tmp_path)
    found, inputs = outputs_of(folder)
    np.savez(tmp_path / "in.npz", **inputs)
    command = [sys.executable, folder / "run.py", "--inputs", tmp_path / "in.npz", "--steps", "2"]
    command += ["--outputs", tmp_path / "out.npz"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "median of 2 steps" in done.stdout and not done.stderr
    with np.load(tmp_path / "out.npz") as stored:
        check_same({name: stored[name] for name in stored.files}, found)


def test_a_failing_part_ends_the_step_with_its_reason(tmp_path):
    export = export_of(load("onnx-squeezenet"))
    folder = unpacked("split-onnx", export, tmp_path)
    made = script(folder / "run.py").PlacedModel(folder)
    try:
        name = made.about["inputs"][0]["name"]
        with pytest.raises(Exception, match="INVALID_ARGUMENT"):
            made.run({name: np.zeros((1, 1), np.float32)})
        with pytest.raises(ValueError, match=name):
            made.run({})
    finally:
        made.close()


def test_a_folder_is_filled_and_other_files_in_it_stay(tmp_path):
    export = export_of(load("onnx-squeezenet"))
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    write(exporter("split-onnx"), export, folder)
    assert (folder / "mine.txt").read_text() == "mine" and (folder / "run.py").is_file()
    with pytest.raises(ValueError, match="is a file"):
        write(exporter("split-onnx"), export, folder / "mine.txt")


def test_a_graph_without_an_executable_side_is_refused(tmp_path):
    model = Model(load("onnx-squeezenet").graph)
    with pytest.raises(ValueError, match="no executable side"):
        written("split-onnx", export_of(model), tmp_path)


def test_large_external_data_goes_from_file_to_file(tmp_path, monkeypatch):
    """Each part has its own of it beside it; types that inference lacks need none of it."""
    array = np.random.default_rng(0).normal(size=(160, 160)).astype(np.float32)
    weights = [numpy_helper.from_array(array * i, f"w{i}") for i in (1, 2)]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], "first"),
        helper.make_node("Gelu", ["a"], ["g"], "odd", domain="com.microsoft"),
        helper.make_node("MatMul", ["g", "w2"], ["y"], "last"),
    ]
    source = model_of(nodes, [value("x", (1, 160))], [value("y", (1, 160))], weights)
    source.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    path = tmp_path / "large.onnx"
    onnx.save(source, path, save_as_external_data=True, location="large.bin", size_threshold=0)
    monkeypatch.setattr(save, "INSIDE_BYTES", 0)
    model = load(str(path))
    folder = tmp_path / "parts"
    export = export_of(model, dealt(model.graph, 1))
    write(exporter("split-onnx"), export, folder)
    sizes = sorted(file.stat().st_size for file in folder.glob("*.bin"))
    assert sizes == [array.nbytes, array.nbytes]
    outputs, inputs = outputs_of(folder)
    check_same(outputs, whole_outputs(model.executable.model_proto(), inputs))
