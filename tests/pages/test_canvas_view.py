"""The pure half of the canvas: scope tree, visible set, layout, words, colours."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.ui import canvas
from pages.ui.canvas.network import OPTIONS, store_payload
from placement.core.graph import Graph
from placement.core.machine import MAX_DEVICES
from placement.drawing.colours.painting import MIXED, NONE
from placement.drawing.layout.drafts import MAX_MEMBERS
from tests.pages.graphs import (
    HOSTILE,
    all_groups,
    blocks,
    chain,
    graph_of,
    hashes_of_views,
    hostile,
    stacked,
    wide,
)
from tests.thorough import either

ROOT = Path(__file__).parents[2]
# Of those that are drawn at random.
NUM_GRAPHS = either(35, 100)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to forty ops in nested scopes with forward edges, also between far scopes."""
    count = draw(st.integers(0, 40))
    scopes = draw(
        st.lists(
            st.lists(st.sampled_from("abc"), max_size=3).map("/".join),
            min_size=count,
            max_size=count,
        )
    )
    ops = [(f"op{i}", "Conv", scope) for i, scope in enumerate(scopes)]
    pairs = st.tuples(st.integers(0, max(0, count - 1)), st.integers(0, max(0, count - 1)))
    arcs = draw(st.lists(pairs, max_size=80)) if count else []
    return graph_of(ops, [(a, b) for a, b in arcs if a < b])


@pytest.mark.thorough
@settings(max_examples=NUM_GRAPHS)
@given(graphs(), st.randoms(use_true_random=False))
def test_every_op_is_in_exactly_one_visible_node(graph, random):
    groups = sorted(all_groups(graph))
    view = canvas.build_view(graph, frozenset(g for g in groups if random.random() < 0.5))
    shown = [name for node in view.nodes for name in canvas.ops_of(view, [node.id])]
    assert sorted(shown) == sorted(op.name for op in graph.ops)
    assert [node.num_ops for node in view.nodes] == [
        len(canvas.ops_of(view, [node.id])) for node in view.nodes
    ]


@pytest.mark.thorough
@settings(max_examples=NUM_GRAPHS)
@given(graphs(), st.randoms(use_true_random=False))
def test_nothing_overlaps_and_boxes_hold_their_members(graph, random):
    groups = sorted(all_groups(graph))
    view = canvas.build_view(graph, frozenset(g for g in groups if random.random() < 0.7))
    check_layout(view)


@pytest.mark.parametrize("aspect", [1.7, 2.6, 4.8])
@pytest.mark.parametrize("length", [10, 17, 40])
def test_columns_of_a_long_chain_are_about_as_long_as_each_other(length, aspect):
    """What the first ones lack would stand in the last, which the others' place is as high as."""
    view = canvas.build_view(chain(length), frozenset(), aspect=aspect)
    columns = Counter(round(node.x) for node in view.nodes)
    assert max(columns.values()) <= -(-len(view.nodes) // len(columns)) + 1


SHAPES = (blocks(), chain(1000), wide(), hostile(), stacked())


@pytest.mark.parametrize("graph", SHAPES, ids=lambda g: "")
def test_layouts_of_typical_shapes(graph):
    for expanded in (frozenset(), canvas.default_expanded(graph), all_groups(graph)):
        check_layout(canvas.build_view(graph, expanded))


def check_layout(view: canvas.View) -> None:
    frames = {b.id: (b.left, b.top, b.left + b.width, b.top + b.height) for b in view.boxes}
    rows = [
        (n.x - n.width / 2, n.y - n.height / 2, n.x + n.width / 2, n.y + n.height / 2)
        for n in view.nodes
    ]
    for i, a in enumerate(rows):
        for b in rows[i + 1 :]:
            assert not _overlap(a, b), "two nodes overlap"
    tree = view.tree
    for node, row in zip(view.nodes, rows, strict=True):
        first = tree.groups[node.group].parent if node.group >= 0 else None
        parent = tree.group_of[int(node.id[1:])] if first is None else first
        around = {tree.groups[g].id for g in tree.ancestors(parent)}
        for name, frame in frames.items():
            if name in around:
                assert _within(row, frame), f"{node.id} sticks out of {name}"
            else:
                assert not _overlap(row, frame), f"{node.id} lies on {name}"


def _overlap(a, b) -> bool:
    return a[0] < b[2] - 0.2 and b[0] < a[2] - 0.2 and a[1] < b[3] - 0.2 and b[1] < a[3] - 0.2


def _within(a, b) -> bool:
    return a[0] >= b[0] - 0.2 and a[1] >= b[1] - 0.2 and a[2] <= b[2] + 0.2 and a[3] <= b[3] + 0.2


@pytest.mark.thorough
@settings(max_examples=NUM_GRAPHS)
@given(graphs())
def test_bytes_between_nodes_add_up(graph):
    """A tensor counts once for every visible node that reads it, other than its producer's."""
    view = canvas.build_view(graph, frozenset())
    expected = 0
    for tensor in graph.tensors:
        here = view.node_of_op[graph.index[tensor.producer]]
        there = {view.node_of_op[graph.index[c]] for c in tensor.consumers} - {here}
        expected += tensor.num_bytes * len(there)
    assert sum(edge.num_bytes for edge in view.edges) == expected


def test_a_view_knows_no_devices():
    graph = blocks()
    view = canvas.build_view(graph, canvas.default_expanded(graph))
    one = canvas.paint(view, [0] * len(graph.ops), 2)
    two = canvas.paint(view, [1] * len(graph.ops), 2)
    assert one.view == two.view == view.hash
    assert set(one.colours) == {"0"} and set(two.colours) == {"1"}


def test_views_are_the_same_under_every_hash_seed():
    """This process has drawn a seed of its own."""
    code = "from tests.pages.graphs import hashes_of_views; print(*hashes_of_views())"
    there = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert there == hashes_of_views() and len(there) == 4


@pytest.mark.thorough
@pytest.mark.parametrize("scoped", [True, False])
def test_ops_by_the_thousand_stay_within_the_budget(scoped):
    count = either(6_000, 30_000)
    ops = [
        (f"op{i}", "Conv", f"layer{i // 100}/block{i // 10 % 10}" if scoped else "")
        for i in range(count)
    ]
    graph = graph_of(ops, [(i, i + 1) for i in range(count - 1)])
    tree = canvas.scope_tree(graph)
    assert max(len(group.members) for group in tree.groups) <= MAX_MEMBERS
    assert len(canvas.build_view(graph, canvas.default_expanded(graph)).nodes) <= MAX_MEMBERS
    view = canvas.build_view(graph, all_groups(graph))
    assert len(view.nodes) <= 1500
    assert view.refused > 0
    assert sum(node.num_ops for node in view.nodes) == count


def test_chains_of_scopes_are_one_group_and_lone_ops_none():
    graph = graph_of(
        [("a", "Conv", "x/y/z"), ("b", "Relu", "x/y/z"), ("c", "Add", "x/w"), ("d", "Add", "")],
        [(0, 1), (1, 2), (2, 3)],
    )
    tree = canvas.scope_tree(graph)
    assert [group.label for group in tree.groups[1:]] == ["x", "y/z"]
    assert tree.groups[1].members == (~2, 2)


def test_blocks_of_the_same_structure_are_counted():
    tree = canvas.scope_tree(blocks(num_blocks=12))
    assert {g.alike for g in tree.groups if g.label.startswith("block")} == {12}


def test_equal_blocks_in_a_chain_are_a_stack():
    graph = stacked()
    tree = canvas.scope_tree(graph)
    [stack] = [g for g in tree.groups if g.stack]
    assert (stack.label, stack.stack, stack.num_ops) == ("layer0–11", 12, 36)
    assert [tree.groups[~m].label for m in stack.members] == [f"layer{i}" for i in range(12)]
    assert len({tree.groups[~m].shape for m in stack.members}) == 1
    only = canvas.scope_tree(blocks(num_blocks=12))
    assert [g.stack for g in only.groups[1:]].count(12) == 0, "nothing beside them to tell apart"


def test_parallel_branches_are_no_stack():
    ops = [("a", "Split", ""), *((f"b{i}/{k}", k, f"b{i}") for i in range(4) for k in "XY")]
    firsts = range(1, 9, 2)
    graph = graph_of(ops, [*((0, i) for i in firsts), *((i, i + 1) for i in firsts)])
    assert not any(g.stack for g in canvas.scope_tree(graph).groups)


def test_constants_are_tucked_away_until_they_are_opened():
    graph = stacked()
    tree = canvas.scope_tree(graph)
    [constants] = [g for g in tree.groups if g.tucked]
    assert [graph.ops[m].name for m in constants.members] == [f"c{i}" for i in range(5)]
    expanded = canvas.all_groups(graph)
    assert constants.id not in canvas.default_expanded(graph) | expanded
    view = canvas.build_view(graph, expanded)
    node = next(n for n in view.nodes if n.id == constants.id)
    assert node.tucked == 13
    assert all(e.way is None for e in view.edges if view.nodes[e.start] == node)
    opened = canvas.toggled(graph, expanded, constants.id)
    check_layout(canvas.build_view(graph, opened))


class Cancelled(Exception):
    pass


def test_a_layout_can_be_stopped_and_leaves_nothing_behind():
    calls = []

    def stop():
        calls.append(1)
        if len(calls) > 3:
            raise Cancelled

    graph = blocks(9)
    with pytest.raises(Cancelled):
        canvas.build_view(graph, all_groups(graph), check=stop)
    assert canvas.build_view(graph, all_groups(graph)).hash
    assert len(calls) == 4, "what is known needs no work and asks nobody"


def test_first_sight_shows_a_handful_of_nodes():
    assert len(canvas.build_view(hostile(), canvas.default_expanded(hostile())).nodes) == 4
    for graph in (blocks(), blocks(40), chain(1000)):
        view = canvas.build_view(graph, canvas.default_expanded(graph))
        assert 10 <= len(view.nodes) <= 60


def test_toggle_opens_closes_and_ignores_the_unknown():
    graph = blocks()
    first = canvas.scope_tree(graph).groups[1].id
    opened = canvas.toggled(graph, frozenset(), first)
    assert opened == {first}
    assert canvas.toggled(graph, opened, first) == frozenset()
    assert canvas.toggled(graph, opened, "s999") == opened
    everything = canvas.all_groups(graph)
    assert everything == all_groups(graph)


def test_reveal_opens_all_groups_around_an_op():
    graph = blocks()
    name = graph.ops[1].name
    view = canvas.build_view(graph, canvas.reveal(graph, frozenset(), [name]))
    node = view.nodes[view.node_of_op[1]]
    assert node.id == "o1"
    assert canvas.ops_of(view, [node.id]) == [name]


def test_ids_of_another_view_are_still_understood():
    graph = blocks()
    closed, opened = (canvas.build_view(graph, frozenset(ids)) for ids in ((), ("s1",)))
    assert canvas.ops_of(opened, ["s1"]) == canvas.ops_of(closed, ["s1"])
    assert canvas.ops_of(closed, ["o3", "nonsense", "o99999", "s-1", ""]) == [graph.ops[3].name]


def test_hostile_names_are_text():
    graph = hostile()
    view = canvas.build_view(graph, canvas.default_expanded(graph))
    net = canvas.network(view)
    assert {n["id"] for n in net.nodes} <= {f"o{i}" for i in range(4)}
    for item in (*net.nodes, *net.edges):
        assert "<" not in item["title"] and ">" not in item["title"]
    assert any(HOSTILE[:8] in node["label"] for node in net.nodes)
    for node in net.nodes:
        assert "\u202e" not in node["sub"] and "\x00" not in node["label"]


def test_the_network_is_made_once_for_page_and_export():
    view = canvas.build_view(blocks(), frozenset())
    net, payload = canvas.network(view), store_payload(view)
    assert [n["id"] for n in payload["nodes"]] == [n["id"] for n in net.nodes]
    assert payload["edges"] == net.edges
    assert payload["options"] == OPTIONS
    assert all("color" not in edge for edge in net.edges)
    json.dumps(payload, allow_nan=False)


def test_what_everything_reads_is_tucked_away():
    view = canvas.build_view(wide(), frozenset())
    assert view.edges and all(edge.way is None for edge in view.edges)


def test_cycles_between_closed_groups_are_drawn():
    graph = graph_of(
        [("a", "A", "x"), ("b", "B", "y"), ("c", "A", "x"), ("d", "B", "y")],
        [(0, 1), (1, 2), (2, 3)],
    )
    view = canvas.build_view(graph, frozenset())
    assert {(view.nodes[e.start].label, view.nodes[e.end].label) for e in view.edges} == {
        ("x", "y"),
        ("y", "x"),
    }
    check_layout(view)


def test_an_empty_graph_has_an_empty_view():
    view = canvas.build_view(graph_of([], []), frozenset())
    assert not view.nodes
    assert canvas.paint(view, [], 2).colours == ""


def test_as_many_devices_as_a_machine_may_have_are_told_apart():
    graph = blocks(num_blocks=3)
    view = canvas.build_view(graph, frozenset())
    node = next(i for i, n in enumerate(view.nodes) if n.num_ops > 1)
    seen = {
        canvas.paint(view, [d] * len(graph.ops), MAX_DEVICES).colours[node]
        for d in range(MAX_DEVICES)
    }
    assert len(seen) == MAX_DEVICES
    assert not seen & {MIXED, NONE}
    with pytest.raises(ValueError, match="at most"):
        canvas.paint(view, [0] * len(graph.ops), MAX_DEVICES + 1)


def test_paint_of_mixed_and_unplaced_groups():
    graph = blocks(num_blocks=3)
    view = canvas.build_view(graph, frozenset())
    size = view.nodes[0].num_ops
    devices = [0] * size + [1] * (size - 3) + [0] * 3 + [-1] * size
    paint = canvas.paint(view, devices, 2)
    assert paint.colours == "0*."
    assert paint.mixes == {1: ((1, size - 3), (0, 3))}
    assert paint.counts == (size + 3, size - 3)
    with pytest.raises(ValueError, match="lies outside"):
        canvas.paint(view, [2] * len(devices), 2)
    with pytest.raises(ValueError, match="one per op"):
        canvas.paint(view, [0], 2)


def test_selection_marks_tell_parts_from_wholes():
    graph = blocks(num_blocks=3)
    view = canvas.build_view(graph, frozenset())
    whole = canvas.ops_of(view, [view.nodes[0].id])
    assert canvas.selection_marks(view, [*whole, graph.ops[-1].name]) == "201"
    assert canvas.selection_marks(view, []) == "000"


def test_colours_of_devices_are_distinct():
    keys = canvas.device_keys([f"d{i}" for i in range(16)])
    assert len({key.colour for key in keys}) == 16
    assert canvas.device_colour(16) == canvas.device_colour(0)


def test_pure_parts_load_neither_streamlit_nor_pyvis():
    code = (
        "import sys\nfrom placement.drawing.views import build_view\nbuild_view\n"
        "print({'streamlit', 'pyvis'} & set(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "set()"


def numbered():
    """Blocks with numbers for names, as sequences in PyTorch have them."""
    scopes = ["features/0", "features/1", "head/0/a", "head/0/b", "head/1"]
    ops = [(f"{s}/{i}", ("Conv", "Relu", "Add")[i], s) for s in scopes for i in range(3)]
    ops[4:5] = [("extra", "Gemm", "features/1"), *ops[4:5]]
    return graph_of(ops, [(i, i + 1) for i in range(len(ops) - 1)])


def test_blocks_called_by_a_number_carry_the_name_around():
    groups = canvas.scope_tree(numbered()).groups
    labels = {group.path: group.label for group in groups[1:]}
    assert labels["features"] == "features"
    assert [labels[f"features/{i}"] for i in (0, 1)] == ["features/0", "features/1"]
    assert (labels["head/0"], labels["head/0/a"], labels["head/1"]) == ("head/0", "a", "head/1")


def test_blocks_with_numbers_inside_a_stack_carry_the_name_of_the_scope_around_it():
    scopes = [f"h/{i}" for i in range(4)]
    ops = [(f"{s}/{i}", ("Conv", "Relu")[i], s) for s in scopes for i in range(2)]
    ops += [("other0", "Gemm", "h/end"), ("other1", "Add", "h/end"), ("last", "Add", "")]
    tree = canvas.scope_tree(graph_of(ops, [(i, i + 1) for i in range(len(ops) - 1)]))
    [stack] = [g for g in tree.groups if g.stack]
    assert stack.label == "h/0–3"
    assert [tree.groups[~m].label for m in stack.members] == [f"h/{i}" for i in range(4)]


@pytest.mark.parametrize(
    ("first", "last", "label"),
    [
        ("inception_4a", "inception_4d", "inception_4a … 4d"),
        ("double3x3_reduce", "double3x3b", "double3x3_reduce … double3x3b"),
        ("layer0", "layer11", "layer0–11"),
        ("0", "3", "0–3"),
        ("encoder.first.x", "encoder.last.x", "encoder.first.x … last.x"),
        ("a_b_c", "a_b", "a_b_c … b"),
        ("a__", "a_", "a__ … a_"),
    ],
)
def test_a_stack_says_once_what_its_first_and_last_name_begin_with(first, last, label):
    scopes = (first, "between", last)
    ops = [("head", "Gather", ""), *((f"{s}/{k}", k, s) for s in scopes for k in ("MatMul", "Add"))]
    graph = graph_of(ops, [(i, i + 1) for i in range(len(ops) - 1)])
    assert [g.label for g in canvas.scope_tree(graph).groups if g.stack] == [label]
