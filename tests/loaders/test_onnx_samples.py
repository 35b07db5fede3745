"""The bundled networks: their list, their blocks, and outputs that mean something."""

import hashlib

import numpy as np
import onnxruntime
import pytest

from placement.loaders import load, samples
from placement.loaders.onnx import SAMPLES
from tests.loaders import models
from tests.thorough import either

LIGHT = SAMPLES.samples()
# The smallest, and two with the kinds of layers that it lacks: normalised, and with a dense one.
FEW = ("onnx-squeezenet", "onnx-shufflenet", "onnx-inception-v1")


def test_the_nine_are_there():
    assert {s.name for s in samples()} >= {
        "onnx-alexnet", "onnx-vgg19", "onnx-inception-v1", "onnx-inception-v2", "onnx-resnet50",
        "onnx-densenet121", "onnx-squeezenet", "onnx-shufflenet", "onnx-zfnet512",
    }  # fmt: skip


@pytest.mark.parametrize("sample", LIGHT, ids=lambda s: s.name)
def test_the_listed_number_of_ops_is_right(sample):
    graph = models.sample(sample.name).graph
    assert len(graph.ops) == sample.num_ops
    assert graph.name == sample.name
    assert len(graph.inputs) == 1 and graph.inputs[0].shape == (1, 3, 224, 224)
    assert all(t.shape is not None for t in graph.tensors if t.consumers or t.is_output)


@pytest.mark.thorough
@pytest.mark.parametrize("sample", either(FEW, [s.name for s in LIGHT]))
def test_outputs_mean_something(sample):
    """Finite, not all alike, not one class for all, and different for different images."""
    model = models.sample(sample)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.executable.model_proto().SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )
    image = model.graph.inputs[0]
    results = []
    for seed in (1, 2):
        pixels = np.random.default_rng(seed).random(image.shape, dtype=np.float32)
        results.append(session.run(None, {image.name: pixels})[0].ravel())
    for result in results:
        assert np.isfinite(result).all()
        assert result.std() > 0.02 * np.abs(result).mean()
        assert len(np.unique(result)) > 500
    if any(op.kind == "Softmax" for op in model.graph.ops):
        assert max(result.max() for result in results) < 0.5
        assert min(result.sum() for result in results) == pytest.approx(1.0, rel=1e-3)
    else:
        assert max(np.abs(result).max() for result in results) < 100
    assert np.abs(results[0] - results[1]).max() > 1e-3 * np.abs(results[0]).max()


def weights(proto):
    return {t.name: t.raw_data for t in proto.graph.initializer}


def test_weights_follow_from_the_seed():
    again, other = (SAMPLES.load_sample("onnx-squeezenet", {}, seed) for seed in (0, 1))
    same = [model.executable for model in (models.sample("onnx-squeezenet"), again, other)]
    one, two, other = (weights(executable.model_proto()) for executable in same)
    assert one == two
    assert one.keys() == other.keys() and one["conv1_w_0"] != other["conv1_w_0"]
    assert same[0].content_hash == same[1].content_hash != same[2].content_hash


def test_weights_are_the_same_everywhere():
    """These bits were made once; another platform or numpy must make the same ones."""
    proto = models.sample("onnx-squeezenet").executable.model_proto()
    digest = hashlib.sha256(weights(proto)["conv1_w_0"]).hexdigest()
    assert digest == "964913f555da5ffb6602d2e1b997c85e504d73d1afee914a3bcfd23a17cfde1c"


def test_shapes_keep_their_values():
    """Reshape targets are not weights."""
    proto = models.sample("onnx-inception-v1").executable.model_proto()
    targets = [t for t in proto.graph.initializer if t.data_type != 1]
    values = [np.frombuffer(t.raw_data, np.int64) if t.raw_data else t.int64_data for t in targets]
    assert [list(numbers) for numbers in values] == [[1, 1024], [1000, 1024]]


def test_opening_makes_no_weights(monkeypatch):
    def never(*arguments):
        raise AssertionError("weights were made")

    monkeypatch.setattr("placement.formats.onnx.samples.fill_weights", never)
    assert load("onnx-vgg19").graph.param_bytes > 5e8


INCEPTION = {
    f"inception_{block}" for block in ["3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b"]
}


@pytest.mark.parametrize(
    ("name", "tops"),
    [
        ("onnx-inception-v1", {"conv1", "conv2", "classifier"} | INCEPTION),
        ("onnx-inception-v2", {"conv1", "conv2", "classifier", "inception_3c"} | INCEPTION),
        ("onnx-resnet50", {"conv1", "res2", "res3", "res4", "res5", "pred"}),
        ("onnx-vgg19", {"conv1", "conv2", "conv3", "conv4", "conv5", "fc6", "fc7", "fc8"}),
        ("onnx-densenet121", {"conv1", "conv2", "conv3", "conv4", "conv5", "fc6"}),
        ("onnx-squeezenet", {"conv1", "conv10"} | {f"fire{i}" for i in range(2, 10)}),
        # its weights are named across blocks (gconv1_0 ... gconv1_31), so structure decides
        (
            "onnx-shufflenet",
            {f"concat{i}" for i in range(1, 4)}
            | {f"residual{i}" for i in range(1, 14)}
            | {"dense"},
        ),
    ],
)
def test_the_blocks_are_recognisable(name, tops):
    assert {op.scope.split("/")[0] for op in models.sample(name).graph.ops} == tops


@pytest.mark.parametrize("sample", LIGHT, ids=lambda s: s.name)
def test_top_groups_do_not_wait_for_each_other(sample):
    graph = models.sample(sample.name).graph
    tops = [op.scope.split("/")[0] for op in graph.ops]
    order = {top: i for i, top in enumerate(dict.fromkeys(tops))}
    for i, after in enumerate(graph.successors):
        assert all(order[tops[i]] <= order[tops[j]] for j in after)
    assert 4 <= len(order) <= 40


@pytest.mark.parametrize("name", ["onnx-inception-v1", "onnx-inception-v2"])
def test_a_branch_and_its_join_are_in_the_block(name):
    graph = models.sample(name).graph
    for op in graph.ops:
        if op.kind == "Concat":
            assert op.scope in INCEPTION | {"inception_3c"}
    inside = {op.scope for op in graph.ops if op.kind in ("MaxPool", "AveragePool")}
    assert {f"inception_{b}/pool_proj" for b in ("3a", "3b", "4a", "5b")} <= inside
