"""The networks of the zoo: parameters as published, ops as listed, sizes that can be set."""

import functools
import socket

import pytest
import torch

import placement as pl
from placement import loaders
from placement.constraints.rules import blocks_of
from placement.formats.torch import zoo
from tests.thorough import either

# Parameters with 1 000 classes. AlexNet, VGG-16, ResNet-50: the model pages of torchvision;
# Inception-V3: its 27 161 264 there less the auxiliary classifier's 3 326 696. BERT-base and GPT-2
# small: the weights that were published with them, as transformers counts them.
PUBLISHED = {
    "alexnet": 61_100_840,
    "vgg16": 138_357_544,
    "resnet50": 25_557_032,
    "inception_v3": 27_161_264 - 3_326_696,
    # The network, and its heads: a layer before the words (whose table is shared) with their
    # biases, and whether a sentence follows.
    "bert_base": 109_482_240 + 768 * 769 + 2 * 768 + 30_522 + 2 * 769,
    "gpt2": 124_439_808,
    # Two LSTM layers of 650 with two biases each, words in and out: Zaremba et al., medium.
    "rnnlm": 10_000 * 650 + 2 * (2 * 4 * 650 * 650 + 2 * 4 * 650) + 650 * 10_000 + 10_000,
}
# What they say of their inputs: of every image, or of every word, so many numbers.
MADE = {
    **dict.fromkeys(("alexnet", "vgg16", "resnet50", "inception_v3"), (1, 1000)),
    "bert_base": (1, 128, 30_522),
    "gpt2": (1, 128, 50_257),
    "rnnlm": (20, 35, 10_000),
}
# Two heads: with one, the framework leaves out a copy.
TINY = {"batch": 1, "length": 4, "depth": 1, "width": 128}
# Of a ResNet, for blocks and sizes.
SMALL = {"batch": 2, "size": 32}
NETWORKS = {s.name.partition(":")[0] for s in loaders.samples() if s.name.endswith(":training")}


def graph_of(name, **sizes):
    """The graph of a network, which is captured once for all that look at it."""
    return model_of(name, **sizes).graph


@functools.cache
def model_of(name, **sizes):
    return pl.load(name, sizes)


def test_every_network_with_a_published_number_is_there():
    assert set(PUBLISHED) <= NETWORKS


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_number(name):
    network = zoo.network_of(name)
    # Nothing is computed there, but every module is called, and its shapes have to fit.
    with torch.device("meta"):
        module, inputs, targets, loss = network.build(network.SIZES)
        made = module(*inputs)
        assert loss(made, *targets).shape == ()
    assert sum(p.numel() for p in module.parameters()) == PUBLISHED[name]
    said = made if isinstance(made, torch.Tensor) else made[0]
    assert said.shape == MADE[name]


# One that is quickly captured, and every one that nothing is published of.
COUNTED = ["alexnet:training", *sorted(NETWORKS - set(PUBLISHED))]
LATER = ["alexnet", "rnnlm", "rnnlm:training", "resnet50", "inception_v3"]
# Ops do not depend on the width, weights that take long to make do.
NARROW = {"nmt": {"width": 16}}
# Both networks, and both phases of one.
DEEP = ["bert_base:training", "gpt2"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", either(COUNTED, COUNTED + LATER))
def test_the_list_tells_the_number_of_ops(name):
    listed = {sample.name: sample.num_ops for sample in loaders.samples()}
    model = pl.load(name, either(NARROW.get(name, {}), {}))
    assert len(model.graph.ops) == listed[name]
    weights = {v for k, v in model.executable.labels.items() if k in model.executable.state}
    assert len(weights) == len(model.executable.state)


@pytest.mark.thorough
@pytest.mark.parametrize("name", either(DEEP, [*DEEP, "bert_base", "gpt2:training"]))
@pytest.mark.only_thorough
def test_each_layer_adds_the_same_ops(name):
    """So that the listed number can be checked without the large network."""
    one, two = (len(graph_of(name, **{**TINY, "depth": n}).ops) for n in (1, 2))
    listed = {sample.name: sample.num_ops for sample in loaders.samples()}
    assert listed[name] == one + 11 * (two - one)


@pytest.mark.parametrize(
    "name", ["bert_base", pytest.param("gpt2", marks=pytest.mark.only_thorough)]
)
def test_nothing_is_asked_of_the_network(name, monkeypatch):
    def refused(*arguments):
        raise AssertionError(f"asked for {arguments}")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    graph = pl.load(name, TINY).graph
    assert [t.name for t in graph.inputs] == ["input_ids"]
    assert {op.kind for op in graph.ops} >= {"softmax", "matmul"}
    assert not any("attention" in op.kind for op in graph.ops)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"length": 2000}, "Size 'length' is 2000; use 1 to"),
        ({"width": 100}, "Size 'width' is 100; use a multiple of 64"),
    ],
)
@pytest.mark.parametrize("name", ["bert_base", "gpt2:training"])
def test_sizes_that_the_tables_do_not_have(name, sizes, said):
    with pytest.raises(ValueError, match=said):
        pl.load(name, sizes)


def test_a_layer_of_bert_is_scopes_in_both_phases():
    graph = graph_of("bert_base:training", **{**TINY, "depth": 2})
    for phase in ("forward", "backward", "update"):
        scopes = {op.scope for op in graph.ops if op.phase == phase}
        assert {
            "bert/encoder/layer/1/attention/self/query",
            "bert/encoder/layer/1/attention/output/LayerNorm",
            "bert/encoder/layer/1/intermediate/dense",
            "bert/embeddings/word_embeddings",
            "cls/seq_relationship",
        } <= scopes, phase


def test_sizes_can_be_set_and_wrong_ones_are_refused():
    assert graph_of("resnet50", **SMALL).inputs[0].shape == (2, 3, 32, 32)
    assert [d.name for d in loaders.symbolic_dims("resnet50")] == ["batch", "size"]
    with pytest.raises(ValueError, match="has no size 'length'; it has batch, size"):
        pl.load("resnet50", {"length": 3})
    with pytest.raises(ValueError, match="Size 'batch' is 0; use 1 to"):
        pl.load("resnet50", {"batch": 0})
    with pytest.raises(ValueError, match="Output size is too small"):
        pl.load("alexnet", {"size": 20})
    with pytest.raises(ValueError, match="Size 'depth' is 1; use 2 or more"):
        pl.load("nmt:training", {"depth": 1})


def test_the_same_seed_gives_the_same_weights_and_leaves_the_generator_alone():
    first = model_of("gpt2", **TINY).executable
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    again = pl.load("gpt2", TINY).executable
    other = zoo.open_sample("gpt2", TINY, 1).executable
    assert first.content_hash == again.content_hash != other.content_hash
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_residual_block_is_a_scope():
    scopes = {op.scope for op in graph_of("resnet50", **SMALL).ops}
    assert {"stage1/0/conv2", "stage4/2/norm3", "head"} <= scopes


def test_ops_between_modules_stand_in_blocks_where_there_are_many():
    """Sums of gradients and joins of time steps, which have no module of their own."""
    dims = {"batch": 2, "length": 2, "depth": 2, "width": 16}
    graph = graph_of("nmt:training", **dims)
    tops = {op.scope.split("/")[0] for op in graph.ops}
    assert sum(not op.scope for op in graph.ops) < 12 and {"encoder", "decoder", "head"} <= tops
    few = graph_of("bert_base:training", **{**TINY, "depth": 2})
    assert any(op.scope == "" and op.phase == "backward" for op in few.ops), "a few stay outside"
    own = {module for op in graph_of("nmt", **dims).ops for module in blocks_of(op)}
    assert {block for op in graph.ops for block in blocks_of(op)} == own, "no block is made up"
