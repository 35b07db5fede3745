"""Scopes from names of nodes, names of weights, and structure."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from onnx import helper

from placement.core.graph import topological_order
from placement.formats.onnx.graph import build_graph
from placement.formats.onnx.prepare import prepare
from placement.formats.onnx.read import read_onnx
from placement.formats.onnx.samples import light_folder
from placement.formats.scopes.naming import structural_scopes
from placement.formats.scopes.paths import module_path, node_path, tidy, tidy_paths, weight_path
from placement.formats.scopes.structure import ScopeNode
from placement.loaders import load, samples
from placement.loaders.onnx import _LIGHT
from tests.loaders.models import model_of, sample, value
from tests.loaders.test_onnx_features import weight


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("inception_3a/1x1_b_0", ("inception_3a", "1x1")),
        ("conv1/7x7_s2_w_0", ("conv1", "7x7_s2")),
        ("conv1/7x7_s2/bn/sc_w_0", ("conv1", "7x7_s2")),
        ("conv2_1/x2/bn_scale_0", ("conv2_1", "x2")),
        ("gpu_0/res2_0_branch2a_bn_riv_0", ("gpu_0", "res2_0_branch2a")),
        ("fire2/squeeze1x1_w_0", ("fire2", "squeeze1x1")),
        ("layer1.0.conv1.weight", ("layer1", "0", "conv1")),
        ("layer1.0.bn1.running_mean", ("layer1", "0", "bn1")),
        ("block_1_expand/kernel:0", ("block_1_expand",)),
        ("onnx::Conv_497", None),
        ("497", None),
        ("v12", None),
        ("weight", None),
        ("", None),
    ],
)
def test_weight_names(name, path):
    assert weight_path(name) == path


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("/layer1/0/conv/Conv", ("layer1", "0", "conv")),
        ("/layer1/layer1.0/conv1/Conv", ("layer1", "0", "conv1")),
        ("/encoder/layer.3/attention/MatMul_1", ("encoder", "layer", "3", "attention")),
        ("model/dense/MatMul", ("model", "dense")),
        ("/l3/s7/Add", ("l3", "s7")),
        ("/0/Conv", None),
        ("/Flatten", None),
        ("Conv_12", None),
        ("", None),
        ("///", None),
    ],
)
def test_node_names(name, path):
    assert node_path(name) == path


def test_module_lists():
    scopes = ("", "layer1", "layer1.0", "layer1.0.conv1", "conv2d_3")
    assert module_path(scopes) == ("layer1", "0", "conv1")
    assert module_path(("", "relu")) is None


def test_shared_fronts_go_and_numbers_become_levels():
    labels = [("gpu_0", "conv1"), ("gpu_0", "res2_0_branch2a"), None, ("gpu_0", "inception_3a")]
    assert tidy(labels) == [("conv1",), ("res2", "0", "branch2a"), None, ("inception_3a",)]


def scopes_of(nodes, inputs, outputs, stored, save):
    graph = load(save(model_of(nodes, inputs, outputs, stored))).graph
    return {op.name: op.scope for op in graph.ops}


def test_node_paths_become_scopes(save):
    names = [f"/net/stage{s}/block{b}/act/Relu" for s in (1, 2) for b in (1, 2)]
    nodes = [
        helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=name)
        for i, name in enumerate(names)
    ]
    scopes = scopes_of(nodes, [value("v0", (1,))], [value("v4")], [], save)
    assert scopes[names[0]] == "stage1/block1" and scopes[names[3]] == "stage2/block2"


def residual_net(blocks):
    """Nameless convolutions with identities around them."""
    nodes, stored, current = [helper.make_node("Conv", ["x", "0"], ["stem"])], [], "stem"
    for b in range(blocks):
        stored.append(weight(f"{b}", (4, 4, 1, 1)))
        nodes += [
            helper.make_node("Conv", [current, f"{b}"], [f"c{b}"]),
            helper.make_node("Add", [f"c{b}", current], [f"s{b}"]),
            helper.make_node("Relu", [f"s{b}"], [f"r{b}"]),
        ]
        current = f"r{b}"
    return nodes, stored, current


def test_residual_units_without_names_are_blocks(save):
    nodes, stored, last = residual_net(6)
    scopes = scopes_of(nodes, [value("x", (1, 4, 8, 8))], [value(last)], stored, save)
    for b in range(6):
        unit = {scopes[f"Conv_c{b}"], scopes[f"Add_s{b}"], scopes[f"Relu_r{b}"]}
        assert len(unit) == 1, scopes
    assert len(set(scopes.values())) == 6
    assert scopes["Conv_stem"] == scopes["Conv_c0"]


def test_many_blocks_are_gathered(save):
    nodes, stored, last = residual_net(100)
    scopes = scopes_of(nodes, [value("x", (1, 4, 8, 8))], [value(last)], stored, save)
    tops = {scope.split("/")[0] for scope in scopes.values()}
    assert 2 <= len(tops) <= 40 and all("/" in scope for scope in scopes.values())


def test_a_module_that_is_used_twice_is_the_block_that_it_says_it_is(save):
    """`norm` feeds `gate` and reads from it, which hundreds of exports have."""
    names = ["/left/0/Relu", "/left/1/Relu", "/norm/Exp", "/gate/Relu", "/norm/Exp_1", "/head/Relu"]
    nodes = [
        helper.make_node(name.split("/")[-1].split("_")[0], [f"v{i}"], [f"v{i + 1}"], name=name)
        for i, name in enumerate(names)
    ]
    nodes.append(helper.make_node("Neg", ["v6"], ["v7"], name="/Neg"))
    scopes = scopes_of(nodes, [value("v0", (1,))], [value("v7")], [], save)
    assert [scopes[name] for name in names] == ["left/0", "left/1", "norm", "gate", "norm", "head"]
    assert scopes["/Neg"] == ""


def test_a_weight_shared_by_first_and_last_op_makes_no_circle(save):
    nodes = [
        helper.make_node("MatMul", ["x", "embed.weight"], ["h0"]),
        *(
            helper.make_node("MatMul", [f"h{i}", f"layer{i}.fc.weight"], [f"h{i + 1}"])
            for i in range(12)
        ),
        helper.make_node("MatMul", ["h12", "embed.weight"], ["y"]),
    ]
    stored = [weight("embed.weight", (4, 4))]
    stored += [weight(f"layer{i}.fc.weight", (4, 4)) for i in range(12)]
    scopes = scopes_of(nodes, [value("x", (1, 4))], [value("y")], stored, save)
    assert scopes["MatMul_h0"] == "embed"
    assert scopes["MatMul_y"] == scopes["MatMul_h12"] == "layer11"


def without_names(name):
    """The graph of a bundled network whose nodes, values and weights are numbers."""
    file = light_folder() / {row[0]: row[1] for row in _LIGHT}[name]
    model = read_onnx(file)
    numbers: dict[str, str] = {"": ""}
    for node in model.graph.node:
        node.name = ""
        node.input[:] = [numbers.setdefault(v, f"v{len(numbers)}") for v in node.input]
        node.output[:] = [numbers.setdefault(v, f"v{len(numbers)}") for v in node.output]
    graph = model.graph
    for entry in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        entry.name = numbers.setdefault(entry.name, f"v{len(numbers)}")
    return build_graph(prepare(model, {}, name, file)[0], name)[0]


@pytest.mark.parametrize("name", [row[0] for row in _LIGHT])
def test_networks_without_any_names_still_have_blocks(name):
    built = without_names(name)
    tops = [op.scope.split("/")[0] for op in built.ops]
    assert 4 <= len(set(tops)) <= 40
    # blocks are runs of ops: none is entered again once it is left
    runs = [top for i, top in enumerate(tops) if i == 0 or tops[i - 1] != top]
    assert len(runs) == len(set(runs))
    # branches meet inside the block they started in: what a join reads is in its block or one back
    order = {top: i for i, top in enumerate(dict.fromkeys(tops))}
    for i, before in enumerate(built.predecessors):
        assert all(order[tops[i]] - order[tops[j]] <= 1 for j in before), built.ops[i]


@pytest.mark.parametrize(
    ("name", "block", "number"),
    [
        ("onnx-inception-v1", "inception", 9),
        ("onnx-inception-v2", "inception", 10),
        ("onnx-resnet50", "residual", 16),
        ("onnx-squeezenet", "concat", 8),
        ("onnx-densenet121", "concat", 6 + 12 + 24 + 16),
    ],
)
def test_blocks_are_called_and_counted_as_the_papers_do(name, block, number):
    """Of two ways side by side, as in SqueezeNet, or new channels beside old ones, as in DenseNet,
    nothing more is said than that they are put together."""
    called = {op.scope for op in without_names(name).ops}
    assert sum(scope.split("/")[-1].rstrip("0123456789") == block for scope in called) == number


def test_every_onnx_sample_has_scopes():
    for name in (s.name for s in samples() if s.name.startswith("onnx-")):
        assert all(op.scope for op in sample(name).graph.ops), name


def test_lists_of_modules_in_numbered_stages_stay_apart():
    paths = [
        (stage, "blocks", block, part)
        for stage in ("0", "1", "2")
        for block in ("0", "1")
        for part in ("conv1", "conv2")
    ]
    tidy = tidy_paths(paths)
    assert tidy[0] == ("0.blocks", "0", "conv1")
    assert len(set(tidy)) == len(paths)


def test_a_part_that_names_its_only_parent_replaces_it():
    assert tidy_paths([("0", "encoder", "a"), ("0", "encoder", "b"), ("head",)]) == [
        ("encoder", "a"),
        ("encoder", "b"),
        ("head",),
    ]


def test_a_replaced_name_never_joins_a_block_of_the_same_name():
    paths = [("0", "blocks", "a"), ("0", "blocks", "b"), ("blocks", "a"), ("blocks", "c")]
    assert len(set(tidy_paths(paths))) == len(paths)


class Drawn:
    """A network in the making, as what scopes are made of."""

    def __init__(self):
        self.nodes = []

    def op(self, kind, *before, product=False, size=8, takes=(), gives=()):
        spatial = (size, size)
        self.nodes.append(ScopeNode(kind, None, product, spatial, before, takes, gives))
        return len(self.nodes) - 1

    def conv(self, *before, **about):
        return self.op("Relu", self.op("Conv", *before, product=True, **about))

    def convs(self, number, *before, takes=(), size=8):
        for i in range(number):
            before = (self.conv(*before, takes=takes if i == 0 else (), size=size),)
        return before[0]

    def scopes(self):
        return structural_scopes(self.nodes)


def two_towers():
    net = Drawn()
    left = net.convs(6, takes=("photo",))
    right = net.convs(4, takes=("speech",))
    joined = net.op("Concat", left, right)
    net.op("Gemm", net.op("Relu", net.op("Gemm", joined, product=True)), product=True)
    return net, range(left + 1), range(left + 1, right + 1), joined


def test_two_towers_are_two_blocks_and_what_joins_them_is_a_third():
    net, left, right, joined = two_towers()
    scopes = net.scopes()
    assert {scopes[i] for i in left} == {("photo",)} and {scopes[i] for i in right} == {("speech",)}
    behind = {path[0] for path in scopes[joined:]}
    assert behind.isdisjoint({"photo", "speech"}) and len(behind) == 1


def interleaved(nodes, rng):
    """The same network, its ops in another topological order; and where each op was."""
    readers = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        for j in node.before:
            readers[j].append(i)
    waiting, ready, order = [len(node.before) for node in nodes], [], []
    ready = [i for i, number in enumerate(waiting) if not number]
    while ready:
        order.append(ready.pop(rng.randrange(len(ready))))
        for j in readers[order[-1]]:
            waiting[j] -= 1
            if not waiting[j]:
                ready.append(j)
    number = {i: n for n, i in enumerate(order)}
    moved = [
        replace(nodes[i], before=tuple(sorted(number[j] for j in nodes[i].before))) for i in order
    ]
    return moved, order


def test_towers_are_found_in_whatever_order_a_file_lists_them():
    net, left, right, _ = two_towers()
    for seed in range(20):
        nodes, order = interleaved(net.nodes, random.Random(seed))
        scopes = dict(zip(order, structural_scopes(nodes), strict=True))
        assert len({scopes[i] for i in left}) == len({scopes[i] for i in right}) == 1
        assert scopes[left[0]] != scopes[right[0]]


def test_branches_have_the_names_of_what_goes_in_and_comes_out():
    net = Drawn()
    ends = []
    for name in ("photo", "speech"):
        last = net.convs(2, takes=(name,))
        for _ in range(2):
            last = net.op("Add", net.convs(2, last), last)
        ends.append(last)
    trunk = net.convs(1, net.op("Concat", *ends))
    for name in ("boxes", "kinds"):
        last = net.convs(2, trunk)
        for _ in range(2):
            last = net.op("Add", net.convs(2, last), last)
        net.op("Softmax", last, gives=(name,))
    tops = {path[0] for path in net.scopes() if path}
    assert {"photo", "speech", "boxes", "kinds"} <= tops


def test_branches_without_names_are_called_for_what_they_are_made_of():
    net = Drawn()
    seen = net.convs(2)
    for _ in range(3):
        seen = net.op("Add", net.convs(2, seen), seen)
    read = net.op("Gather", product=True)
    for _ in range(3):
        query, key, value = (net.op("MatMul", read, product=True) for _ in range(3))
        weights = net.op("Softmax", net.op("MatMul", query, key))
        mixed = net.op("MatMul", net.op("MatMul", weights, value), product=True)
        read = net.op("Add", mixed, read)
    joined = net.op("Concat", seen, read)
    last = net.convs(3, joined)
    scopes = net.scopes()
    assert {scopes[seen][0], scopes[read][0]} == {"residual branch", "attention branch"}
    # What takes over from branches is what it does with them, and puts nothing of its own together.
    assert {path[0] for path in scopes[joined : last + 1]} == {"conv"}


def test_ways_side_by_side_are_an_inception_block_and_channels_kept_are_none():
    wide, kept = Drawn(), Drawn()
    for net in (wide, kept):
        last = net.convs(2)
        for _ in range(4):
            if net is wide:
                pooled = net.op("MaxPool", last)
                last = net.op("Concat", net.convs(1, last), net.convs(2, last), pooled)
            else:
                first = net.convs(2, last)
                last = net.op("Concat", last, first, net.convs(2, net.op("Concat", last, first)))
    assert {path[0].rstrip("0123456789") for path in wide.scopes()} == {"inception"}
    assert {path[0].rstrip("0123456789") for path in kept.scopes()} == {"concat"}


def test_a_network_whose_skips_reach_far_is_no_single_block():
    """Encoder, bottleneck and decoder of a U-Net, each of whose levels is a block of its own."""
    net, skips, last = Drawn(), [], ()
    levels = {}
    for level in range(4):
        last = (net.convs(2, *last, size=64 >> level),)
        levels["down", level] = last[0]
        skips.append(last[0])
        last = (net.op("MaxPool", *last, size=32 >> level),)
    last = net.convs(2, *last, size=4)
    levels["bottom", 4] = last
    for level in reversed(range(4)):
        up = net.op("ConvTranspose", last, product=True, size=64 >> level)
        last = net.convs(2, net.op("Concat", skips[level], up), size=64 >> level)
        levels["up", level] = last
    scopes = net.scopes()
    assert len({scopes[i] for i in levels.values()}) == len(levels), scopes
    assert max(Counter(scopes).values()) <= len(scopes) // 3


@pytest.mark.parametrize("seed", range(40))
def test_blocks_of_whatever_network_wait_for_each_other_in_no_circle(seed):
    rng, net = random.Random(seed), Drawn()
    for i in range(rng.randrange(9, 80)):
        near = range(max(0, i - rng.choice((3, 12, 80))), i)
        before = rng.sample(near, min(len(near), rng.choice((0, 1, 1, 1, 2, 3))))
        kind = rng.choice(("Conv", "MatMul", "Relu", "Add", "Concat", "Gather"))
        net.op(kind, *sorted(before), product=rng.random() < 0.5)
    scopes = net.scopes()
    assert len(scopes) == len(net.nodes)
    # Ops outside of blocks are each by itself.
    blocks = [path[0] if path else i for i, path in enumerate(scopes)]
    number = {block: n for n, block in enumerate(dict.fromkeys(blocks))}
    after = [[] for _ in number]
    for i, node in enumerate(net.nodes):
        for j in node.before:
            if blocks[i] != blocks[j]:
                after[number[blocks[j]]].append(number[blocks[i]])
    assert topological_order(len(after), after) is not None, scopes


def test_skips_within_skips_end_somewhere():
    """As many outputs as layers: what is behind each is within what is behind the one before."""
    net, last = Drawn(), ()
    for i in range(400):
        last = (net.conv(*last),)
        net.op("Sigmoid", net.op("Relu", *last), gives=(f"out{i}",))
    assert len(net.scopes()) == len(net.nodes)
