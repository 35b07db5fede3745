"""Large external data: nothing of it is read when a model opens, and it is copied by pieces."""

import os
import shutil
import tracemalloc

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from placement.formats.onnx import saving
from placement.formats.onnx.saving import write_model
from placement.loaders import load
from tests.loaders.models import model_of, value

GIB = 2**30


def outside(name, dims, offset):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    length = 4 * int(np.prod(dims))
    for key, text in (("location", "w.bin"), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(text))
    return tensor


def chain(sizes):
    """x times one matrix after the other, and at last a bias, all in one file; its bytes."""
    nodes, weights, read, end = [], [], "x", 0
    for i, (rows, columns) in enumerate(sizes):
        weights.append(outside(f"w{i}", (rows, columns), end))
        end += 4 * rows * columns
        nodes.append(helper.make_node("MatMul", [read, f"w{i}"], [f"y{i}"]))
        read = f"y{i}"
    weights.append(outside("b", (sizes[-1][1],), end))
    nodes.append(helper.make_node("Add", [read, "b"], ["y"]))
    inputs = [value("x", (1, sizes[0][0]))]
    return model_of(nodes, inputs, [value("y")], weights, ir_version=8), end + 4 * sizes[-1][1]


@pytest.fixture
def small(save, tmp_path):
    """A model of half a megabyte of weights, what it is fed and what it makes of that."""
    model, num_bytes = chain([(128, 256), (256, 256), (256, 8)])
    rng = np.random.default_rng(0)
    weights = rng.normal(size=num_bytes // 4).astype(np.float32)
    (tmp_path / "w.bin").write_bytes(weights.tobytes())
    path, x = save(model), rng.normal(size=(1, 128)).astype(np.float32)
    return path, x, run(path, x)


def run(path, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    made = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return made.run(None, {"x": x})[0]


def test_a_model_of_12_gigabytes_opens_without_a_look_at_them(save, tmp_path):
    model, num_bytes = chain([(2**15, 2**15)] * 3)
    data = tmp_path / "w.bin"
    with data.open("wb") as file:
        file.truncate(num_bytes)
    blocks = data.stat().st_blocks
    path = save(model)
    tracemalloc.start()
    try:
        opened = load(path)
        assert opened.graph.param_bytes == num_bytes > 11 * GIB
        assert opened.executable.content_hash
        assert opened.executable.model_proto(2**20).graph.initializer[0].dims[0] == 2**15
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert data.stat().st_blocks == blocks
    os.truncate(data, num_bytes - 1)
    with pytest.raises(ValueError, match=f"the file has {num_bytes - 1}"):
        load(path)


def test_large_weights_stay_outside_and_are_copied_as_they_are(small, tmp_path):
    path, x, expected = small
    model = load(path).executable.model_proto(0)
    kinds = {t.name: t.data_location for t in model.graph.initializer}
    far, near = TensorProto.EXTERNAL, TensorProto.DEFAULT
    assert kinds == {"w0": far, "w1": far, "w2": near, "b": near}, "small ones may be looked at"
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    write_model(model, folder / "copy.onnx")
    assert sorted(p.name for p in folder.iterdir()) == ["copy.bin", "copy.onnx"]
    (tmp_path / "w.bin").unlink()
    np.testing.assert_array_equal(run(folder / "copy.onnx", x), expected)
    again = load(str(folder / "copy.onnx"))
    assert again.graph.param_bytes == (tmp_path / "elsewhere" / "copy.bin").stat().st_size + 8224


def test_what_is_not_large_is_inside(small):
    path, *_ = small
    model = load(path).executable.model_proto(2**20)
    assert all(t.data_location == TensorProto.DEFAULT for t in model.graph.initializer)


def test_weights_that_no_message_holds_lie_beside_the_model(small, tmp_path, monkeypatch):
    path, x, expected = small
    model = load(path).executable.model_proto()
    write_model(model, tmp_path / "one.onnx")
    assert not (tmp_path / "one.bin").exists()
    monkeypatch.setattr(saving, "MESSAGE_BYTES", 100_000)
    write_model(model, tmp_path / "two.onnx")
    assert (tmp_path / "two.bin").exists()
    for name in ("one", "two"):
        np.testing.assert_array_equal(run(tmp_path / f"{name}.onnx", x), expected)


def test_data_that_has_become_shorter_is_refused(small, tmp_path):
    path, *_ = small
    model = load(path).executable.model_proto(0)
    os.truncate(tmp_path / "w.bin", 200_000)
    with pytest.raises(ValueError, match=r"'w\.bin' became shorter"):
        write_model(model, tmp_path / "copy.onnx")


def test_a_disk_without_room_is_named_with_both_sizes(small, tmp_path, monkeypatch):
    path, *_ = small
    model = load(path).executable.model_proto(0)
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(saving.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ValueError, match=r"need 802880 bytes in .*, 1000 are free"):
        write_model(model, tmp_path / "copy.onnx", copies=2)
    assert not (tmp_path / "copy.bin").exists()


def test_a_file_may_not_name_a_place_as_noted_ones_are(save, tmp_path):
    model, _ = chain([(128, 256)])
    (tmp_path / "w.bin").write_bytes(bytes(200_000))
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = str(tmp_path / "w.bin")
    with pytest.raises(ValueError, match="outside the model's folder"):
        load(save(model))
    assert onnx.load(tmp_path / "model.onnx", load_external_data=False).graph.node
