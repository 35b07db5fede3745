"""What ops are called: each by a name of its own, the same always, and good names as they are."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.core.graph import Graph, Op, Tensor
from placement.drawing import spans
from placement.drawing.names import Names, in_words, names_of
from placement.drawing.searching import search
from placement.drawing.views import build_view
from placement.drawing.wording import op_subtitle, op_title
from placement.loaders import load
from tests.thorough import either

SAMPLES = ("onnx-inception-v2", "onnx-resnet50", "onnx-shufflenet", "onnx-alexnet")


def graph_of(ops, edges, name="graph"):
    """A graph of ops as (name, type, scope), and which reads which."""
    readers = {a: tuple(c for b, c in edges if b == a) for a, _, _ in ops}
    made = tuple(Op(*op) for op in ops)
    tensors = (Tensor(f"{op.name}:0", op.name, readers[op.name], 4) for op in made)
    return Graph(name, made, tuple(t for t in tensors if t.consumers))


def called(graph):
    return dict(zip((op.name for op in graph.ops), names_of(graph).shown, strict=True))


def chain(ops):
    return list(pairwise(op[0] for op in ops))


@st.composite
def graphs(draw):
    """Graphs whose names are counters, paths and words, in modules or in none."""
    num = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(["Conv", "Relu", "aten.add.Tensor"]), min_size=num))
    scopes = ["", "m/layers/0", "m/layers/1/attn", "m/head", "a b/<i>"]
    names = draw(
        st.lists(
            st.one_of(
                st.integers(0, 99).map("n{}".format),
                st.integers(0, 99).map("node_Conv_{}".format),
                st.sampled_from(["conv 1", "layer 0 / conv", "head", "fc6", "x/y", " "]),
                st.text(min_size=1, max_size=3),
            ),
            min_size=num,
            max_size=num,
            unique=True,
        )
    )
    ops = [(n, kinds[i], draw(st.sampled_from(scopes))) for i, n in enumerate(names)]
    edges = [
        (names[a], names[b])
        for b in range(num)
        for a in sorted(draw(st.sets(st.integers(0, num - 1), max_size=2)))
        if a < b
    ]
    return graph_of(ops, edges)


@pytest.mark.thorough
@settings(max_examples=either(35, 100))
@given(graphs())
def test_every_op_has_a_name_of_its_own(graph):
    names = names_of(graph)
    assert len(names.shown) == len(names.blocks) == len(graph.ops)
    assert len(set(names.shown)) == len(graph.ops)
    assert all(names.shown)
    assert [names.of(op.name) for op in graph.ops] == list(names.shown)
    assert names.of("an op of another graph") == "an op of another graph"


@pytest.mark.thorough
@settings(max_examples=either(35, 100))
@given(graphs())
def test_names_follow_from_the_graph_alone(graph):
    again = names_of.__wrapped__(replace(graph, name="another"))
    assert again.shown == names_of(graph).shown
    assert again.blocks == names_of(graph).blocks


@pytest.mark.parametrize(
    "name",
    [
        "conv1",
        "fc6",
        "pool2",
        "encoder/layer_3/dense",
        "res2a_branch1",
        "classifier",
        "InceptionV3",
    ],
)
def test_names_that_say_something_are_kept(name):
    ops = [(name, "Conv", "m/layers/0"), ("n1", "Relu", "m/layers/0"), ("n2", "Conv", "m/layers/1")]
    assert called(graph_of(ops, chain(ops)))[name] == name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("n255", "Conv"),
        ("node_conv2d_21", "Conv"),
        ("Conv_7", "Conv"),
        ("17", "Conv"),
        ("conv2d_3", "aten.conv2d.default"),
        ("batch_norm_1", "BatchNorm"),
    ],
)
def test_counters_say_nothing(name, kind):
    ops = [(name, kind, "m/layers/0/mlp"), ("other", "Relu", "m/layers/1")]
    assert called(graph_of(ops, chain(ops)))[name] == "layer 0 / mlp / " + {
        "Conv": "conv",
        "BatchNorm": "batch norm",
    }.get(kind, "conv2d")


def test_modules_are_told_with_type_and_place():
    scope = "model/layers/{}/self_attn{}"
    ops = [
        *(("n1", "add", scope.format(3, "")), ("n2", "add", scope.format(3, ""))),
        ("n3", "mul", scope.format(4, "")),
        ("n4", "linear", "model/norm"),
    ]
    assert list(called(graph_of(ops, chain(ops))).values()) == [
        "layer 3 / self_attn / add 1",
        "layer 3 / self_attn / add 2",
        "layer 4 / self_attn / mul",
        "norm / linear",
    ]


def test_a_module_is_called_by_the_op_that_has_its_weights():
    ops = (
        Op("n1", "linear", "layers/0/q_proj", param_bytes=8),
        Op("n2", "view", "layers/0/q_proj"),
        Op("n3", "add", "layers/1"),
    )
    assert names_of(Graph("g", ops, ())).shown == (
        "layer 0 / q_proj",
        "layer 0 / q_proj / view",
        "layer 1 / add",
    )


def residual(blocks_by_stage):
    """Two ways that meet, over and over: each stage has values of another size."""
    ops, edges, shapes, last = [], [], {}, None
    for stage, blocks in enumerate(blocks_by_stage):
        for _ in range(blocks):
            n = len(ops)
            kinds = ("Relu", "Conv", "Conv", "Add")
            names = [f"n{n + i}" for i in range(4)]
            ops += zip(names, kinds, [""] * 4, strict=True)
            edges += [*pairwise(names), (names[0], names[3])]
            edges += [(last, names[0])] if last else []
            shapes |= dict.fromkeys(names, (1, 2**stage))
            last = names[-1]
    graph = graph_of(ops, edges)
    shaped = (replace(t, shape=shapes[t.producer]) for t in graph.tensors)
    end = Tensor("end", last, (), 4, shapes[last], is_output=True)
    return Graph("residual", graph.ops, (*shaped, end))


def test_without_modules_blocks_are_found_between_points_that_all_data_passes():
    graph = residual((1, 2))
    assert names_of(graph).shown == (
        "relu 1",
        *(f"stage 1 / block 1 / {op}" for op in ("conv 1", "conv 2", "add")),
        "relu 2",
        *(f"stage 2 / block 1 / {op}" for op in ("conv 1", "conv 2", "add")),
        "relu 3",
        *(f"stage 2 / block 2 / {op}" for op in ("conv 1", "conv 2", "add")),
    )
    assert names_of(residual((1, 1))).shown[1] == "block 1 / conv 1"


def test_a_graph_of_one_type_keeps_its_names():
    ops = [(f"n{i}", "task", "") for i in range(4)]
    assert list(called(graph_of(ops, chain(ops)))) == [f"n{i}" for i in range(4)]
    assert set(names_of(graph_of(ops, chain(ops))).shown) == {f"n{i}" for i in range(4)}


def test_numbers_stand_beside_the_words_they_belong_to():
    assert in_words(("layers", "4", "mlp")) == ("layer 4", "mlp")
    assert in_words(("features", "0", "conv", "1")) == ("features 0", "conv 1")
    assert in_words(("stage1", "0", "conv1")) == ("stage1.0", "conv1")
    assert in_words(("layers", "0–11")) == ("layers 0–11",)
    assert in_words(("0", "mlp")) == ("0", "mlp")


@pytest.mark.parametrize("sample", SAMPLES)
def test_networks_are_told_in_words_everywhere(sample):
    """No counter is left, and picture, timeline and search say the same."""
    graph = load(sample).graph
    names = names_of(graph)
    assert len(set(names.shown)) == len(graph.ops)
    made = [op.name for op in graph.ops if names.is_made(op.name)]
    view = build_view(graph, frozenset(f"s{i}" for i in range(10_000)), budget=10_000)
    titles = {node.id: node.title.split("\n")[0] for node in view.nodes}
    rng = random.Random(0)
    for op in rng.sample(made, min(len(made), 20)):
        index = graph.index[op]
        assert not any(
            part.startswith("n") and part[1:].isdecimal() for part in names.of(op).split()
        )
        assert titles[f"o{index}"] == names.of(op)
        assert spans.block_of(graph, [op]) == names.of(op)
        assert index in search(graph, names.of(op), "name")


def test_a_card_tells_its_type_once():
    shape = Tensor("t", "n1", (), 4, (1, 64), is_output=True)
    for kind, called, told in (
        ("BatchNormalization", "a / batch normalization", "1×64"),
        ("Conv", "a / conv 2", "conv 2, 1×64"),
        ("Conv", "n1", "n1"),
        ("Conv", f"a / {'q' * 30}", f"{'q' * 15}…{'q' * 8}"),
    ):
        assert op_subtitle(Op("n1", kind), called, shape) == told
    assert op_subtitle(Op("n1", "Conv"), "a / conv 2", None) == "conv 2"
    assert op_title(Op("n1", "Conv"), "a / conv 2", None).split("\n")[2] == "n1 in the file"


def test_the_blocks_of_several_ops_are_told_by_what_they_share():
    scope = "m/layers/{}"
    ops = [(f"n{i}", ("add", "mul")[i % 2], scope.format(i // 2)) for i in range(4)]
    graph = graph_of(ops, chain(ops))
    assert isinstance(names_of(graph), Names)
    assert spans.block_of(graph, ["n0", "n1"]) == "layer 0"
    assert spans.block_of(graph, ["n0", "n3"]) == "layer 0 … layer 1"
    assert spans.block_of(graph, ["n0"]) == "layer 0 / add"
    assert spans.block_of(graph, []) == spans.block_of(graph, ["elsewhere"]) == ""
