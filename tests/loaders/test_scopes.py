"""Scopes from names of nodes, names of weights, and structure."""

import pytest
from onnx import helper

from placement.formats.onnx.graph import build_graph
from placement.formats.onnx.prepare import prepare
from placement.formats.onnx.read import read_onnx
from placement.formats.onnx.samples import light_folder
from placement.formats.scopes.paths import module_path, node_path, tidy, tidy_paths, weight_path
from placement.loaders import load, samples
from placement.loaders.onnx import _LIGHT
from tests.loaders.models import model_of, value
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


@pytest.mark.parametrize(("name", "file"), [row[:2] for row in _LIGHT])
def test_networks_without_any_names_still_have_blocks(name, file):
    model = read_onnx(light_folder() / file)
    numbers: dict[str, str] = {"": ""}
    for node in model.graph.node:
        node.name = ""
        node.input[:] = [numbers.setdefault(v, f"v{len(numbers)}") for v in node.input]
        node.output[:] = [numbers.setdefault(v, f"v{len(numbers)}") for v in node.output]
    graph = model.graph
    for entry in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        entry.name = numbers.setdefault(entry.name, f"v{len(numbers)}")
    built, _ = build_graph(prepare(model, {}, name, light_folder() / file)[0], name)
    tops = [op.scope.split("/")[0] for op in built.ops]
    assert 4 <= len(set(tops)) <= 40
    # blocks are runs of ops: none is entered again once it is left
    runs = [top for i, top in enumerate(tops) if i == 0 or tops[i - 1] != top]
    assert len(runs) == len(set(runs))
    # branches meet inside the block they started in: what a join reads is in its block or one back
    order = {top: i for i, top in enumerate(dict.fromkeys(tops))}
    for i, before in enumerate(built.predecessors):
        assert all(order[tops[i]] - order[tops[j]] <= 1 for j in before), built.ops[i]


def test_every_onnx_sample_has_scopes():
    for sample in (s for s in samples() if s.name.startswith("onnx-")):
        assert all(op.scope for op in load(sample.name).graph.ops), sample.name


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
