"""Operation counts, worked out by hand."""

import pytest
from onnx import TensorProto, helper

from placement.loaders import load
from tests.loaders.models import model_of, sample, value

# kind, inputs, output shape, attributes, operations
CASES = [
    # 1x8x10x10 outputs, each 3x3x3 multiply-adds
    ("Conv", [(1, 3, 12, 12), (8, 3, 3, 3)], (1, 8, 10, 10), {}, 2 * 800 * 27),
    ("Conv", [(1, 3, 12, 12), (8, 3, 3, 3), (8,)], (1, 8, 10, 10), {}, 2 * 800 * 27 + 800),
    ("Conv", [(1, 8, 12, 12), (8, 1, 3, 3)], (1, 8, 10, 10), {"group": 8}, 2 * 800 * 9),
    # each of 1x4x5x5 inputs is multiplied into 6x2x2 places
    ("ConvTranspose", [(1, 4, 5, 5), (4, 6, 2, 2)], (1, 6, 6, 6), {}, 2 * 100 * 24),
    ("MatMul", [(7, 3, 5), (7, 5, 4)], (7, 3, 4), {}, 2 * 84 * 5),
    ("MatMul", [(3, 5), (5,)], (3,), {}, 2 * 3 * 5),
    ("Gemm", [(3, 5), (4, 5), (4,)], (3, 4), {"transB": 1}, 2 * 12 * 5 + 12),
    ("Gemm", [(5, 3), (5, 4)], (3, 4), {"transA": 1}, 2 * 12 * 5),
    ("Einsum", [(3, 5), (5, 4)], (3, 4), {"equation": "ij,jk->ik"}, 2 * 3 * 5 * 4),
    ("MaxPool", [(1, 2, 8, 8)], (1, 2, 4, 4), {"kernel_shape": [2, 2], "strides": [2, 2]}, 32 * 4),
    ("GlobalAveragePool", [(1, 2, 8, 8)], (1, 2, 1, 1), {}, 128),
    ("ReduceMax", [(4, 6)], (1, 1), {}, 24),
    ("BatchNormalization", [(1, 3, 4, 4), (3,), (3,), (3,), (3,)], (1, 3, 4, 4), {}, 2 * 48),
    ("Softmax", [(2, 10)], (2, 10), {}, 100),
    ("LRN", [(1, 6, 2, 2)], (1, 6, 2, 2), {"size": 5}, 24 * 13),
    ("Relu", [(2, 3)], (2, 3), {}, 6),
    ("Add", [(2, 3), (3,)], (2, 3), {}, 6),
    ("Sum", [(2, 3), (2, 3), (2, 3)], (2, 3), {}, 12),
    ("Transpose", [(2, 3)], (3, 2), {}, 0),
    ("Concat", [(2, 3), (2, 3)], (4, 3), {"axis": 0}, 0),
]


@pytest.mark.parametrize(("kind", "inputs", "output", "attributes", "expected"), CASES)
def test_one_op(kind, inputs, output, attributes, expected, save):
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(kind, names, ["y"], **attributes)
    values = [value(n, s) for n, s in zip(names, inputs, strict=True)]
    graph = load(save(model_of([node], values, [value("y", None)]))).graph
    assert graph.tensors[-1].shape == output
    assert graph.flops == expected


def test_lstm(save):
    # 5 steps of a batch of 2; 4 gates, 3 hidden, 7 inputs
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3)
    inputs = [value("x", (5, 2, 7)), value("w", (1, 12, 7)), value("r", (1, 12, 3))]
    graph = load(save(model_of([node], inputs, [value("y", None)]))).graph
    assert graph.flops == 2 * 5 * 2 * (12 * 7 + 12 * 3)


def test_attention(save):
    # 2 sequences, 4 heads of 8, 6 queries on 10 keys
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"])
    inputs = [value("q", (2, 4, 6, 8)), value("k", (2, 4, 10, 8)), value("v", (2, 4, 10, 8))]
    graph = load(save(model_of([node], inputs, [value("y", None)], opset=23))).graph
    assert graph.flops == 2 * 4 * 6 * 10 * (2 * (8 + 8) + 5)


@pytest.mark.parametrize(
    ("name", "gflops", "params"),
    [
        # published multiply-adds, twice: 4.1 G, 19.6 G, 0.66 G (grouped), 1.4 G
        ("onnx-resnet50", 8.2, 25.6e6),
        ("onnx-vgg19", 39.3, 143.7e6),
        ("onnx-alexnet", 1.32, 61.0e6),
        ("onnx-squeezenet", 0.70, 1.24e6),
        ("onnx-densenet121", 5.75, 8.1e6),
    ],
)
def test_known_networks(name, gflops, params):
    graph = sample(name).graph
    assert graph.flops / 1e9 == pytest.approx(gflops, rel=0.02)
    assert graph.param_bytes / 4 == pytest.approx(params, rel=0.02)


def test_loops_count_their_iterations(save):
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["a", "w"], ["b"]),
            helper.make_node("Identity", ["going"], ["go"]),
        ],
        "body",
        [
            value("i", (), TensorProto.INT64),
            value("going", (), TensorProto.BOOL),
            value("a", (2, 2)),
        ],
        [value("go", (), TensorProto.BOOL), value("b", (2, 2))],
        initializer=[helper.make_tensor("w", TensorProto.FLOAT, (2, 2), [1.0] * 4)],
    )
    trips = helper.make_tensor("trips", TensorProto.INT64, (), [5])
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    graph = load(save(model_of([node], [value("x", (2, 2))], [value("y", None)], [trips]))).graph
    assert graph.flops == 5 * 2 * 4 * 2
    assert graph.param_bytes == 16 + 8
    assert ("body nodes", "2") in graph.ops[0].attributes


def test_branches_count_the_dearer_one(save):
    cheap = helper.make_graph([helper.make_node("Relu", ["x"], ["a"])], "c", [], [value("a", None)])
    dear = helper.make_graph([helper.make_node("MatMul", ["x", "v"], ["b"])], "d", [], [value("b")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=cheap, else_branch=dear)
    inputs = [value("c", (), TensorProto.BOOL), value("x", (3, 3)), value("v", (3, 3))]
    graph = load(save(model_of([node], inputs, [value("y", None)]))).graph
    assert graph.flops == 2 * 9 * 3
    # values that bodies take from outside are read by the op that holds them
    assert {t.name: len(t.consumers) for t in graph.inputs} == {"c": 1, "x": 1, "v": 1}
