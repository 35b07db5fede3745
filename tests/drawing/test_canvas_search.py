"""Finding ops, and widening a selection, held against their definitions."""

import re
from collections import Counter
from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.ui import canvas
from placement.constraints import regexes
from placement.core.graph import Graph, Op, Tensor
from placement.drawing.layout.scopes import scope_tree
from placement.drawing.searching import related, search
from placement.loaders import load
from tests.pages.graphs import blocks, graph_of
from tests.pages.test_canvas_view import graphs
from tests.thorough import either


def names(graph, found):
    return [graph.ops[i].name for i in found]


def test_names_and_blocks_are_found_in_parts_and_in_any_case():
    graph = blocks()
    assert names(graph, search(graph, "BLOCK3/B1", "name")) == [
        op.name for op in graph.ops if "block3/b1" in op.name
    ]
    assert search(graph, "  ", "name") == search(graph, "nowhere", "name") == ()


def test_a_type_is_taken_whole_or_else_by_its_beginning():
    graph = graph_of([("a", "Conv", ""), ("b", "ConvTranspose", ""), ("c", "Relu", "")], [])
    assert names(graph, search(graph, "conv", "type")) == ["a"]
    assert names(graph, search(graph, "con", "type")) == ["a", "b"]
    assert search(graph, "elu", "type") == ()


def test_regular_expressions_match_anywhere_and_say_what_is_wrong():
    graph = blocks()
    wanted = re.compile(r"block[24]/b\d/conv_0$")
    assert names(graph, search(graph, wanted.pattern, "regex")) == [
        op.name for op in graph.ops if wanted.search(op.name)
    ]
    with pytest.raises(ValueError, match="no regular expression: unterminated character set"):
        search(graph, "block[", "regex")
    with pytest.raises(ValueError, match="at most 200"):
        search(graph, "x" * 201, "regex")


def test_a_regular_expression_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(regexes, "BUDGET_S", 0.2)
    graph = graph_of([("a" * 60, "Conv", "")], [])
    with pytest.raises(ValueError, match="too long"):
        search(graph, "(a+)+$b", "regex")


@pytest.mark.thorough
@settings(max_examples=either(35, 100))
@given(graphs(), st.data())
def test_upstream_and_downstream_are_all_that_a_path_leads_from_and_to(graph, data):
    chosen = data.draw(st.sets(st.sampled_from([o.name for o in graph.ops]))) if graph.ops else ()
    arcs = nx.DiGraph()
    arcs.add_nodes_from(op.name for op in graph.ops)
    arcs.add_edges_from((t.producer, c) for t in graph.tensors for c in t.consumers)
    before = set(chosen).union(*(nx.ancestors(arcs, name) for name in chosen))
    after = set(chosen).union(*(nx.descendants(arcs, name) for name in chosen))
    assert set(related(graph, chosen, "upstream")) == before
    assert set(related(graph, chosen, "downstream")) == after


def test_alike_are_ops_of_one_type_or_blocks_of_one_structure():
    graph = blocks()
    view = canvas.build_view(graph, frozenset())
    convs = related(graph, [graph.ops[1].name], "alike")
    assert convs == tuple(op.name for op in graph.ops if op.kind == graph.ops[1].kind)
    block = canvas.ops_of(view, [view.nodes[2].id])
    assert related(graph, block, "alike") == tuple(op.name for op in graph.ops)
    branch = [op.name for op in graph.ops if op.scope == "net/block2/b1"]
    alike = {op.name for op in graph.ops if op.scope[-3:] in ("/b1", "/b3")}
    assert set(related(graph, branch, "alike")) == alike
    assert related(graph, ["unknown"], "alike") == ()
    with pytest.raises(ValueError, match="no way"):
        related(graph, [], "sideways")


SIDE = (1, 8, 16, 16)


def two_ways(num_blocks: int = 6, *, shape: tuple[int, ...] = SIDE, **of_b: object) -> Graph:
    """Blocks in a row of ways `a` and `b`, alike but for what is said of convolutions in `b`."""
    ops, tensors = [], []
    last, readers = "x", {"x": []}
    for block in range(num_blocks):
        ends = []
        for way in "ab":
            scope = f"bl/{block}/{way}"
            told = of_b if way == "b" else {}
            ops.append(replace(Op(f"{scope}/conv", "Conv", scope, "forward", 4e7, 2304), **told))
            ops.append(Op(f"{scope}/relu", "Relu", scope))
            readers[last].append(ops[-2].name)
            made = shape if way == "b" else SIDE
            tensors.append(Tensor(ops[-2].name, ops[-2].name, (ops[-1].name,), 8192, made))
            ends.append(ops[-1].name)
        ops.append(Op(f"bl/{block}/join", "Add", f"bl/{block}"))
        tensors += [Tensor(name, name, (ops[-1].name,), 8192, SIDE) for name in ends]
        last = ops[-1].name
        readers[last] = []
    tensors += [
        Tensor(name, None if name == "x" else name, tuple(to), 8192, SIDE)
        for name, to in readers.items()
    ]
    return Graph("two ways", tuple(ops), tuple(tensors))


DIFFERENT = [
    {"flops": 9.2e7},
    {"param_bytes": 6400},
    {"state_bytes": 100},
    {"shape": (1, 8, 14, 14)},
    {"attributes": (("kernel_shape", "1, 7"),)},
]


@pytest.mark.parametrize("of_b", DIFFERENT, ids=lambda of_b: next(iter(of_b)))
def test_ops_that_compute_read_or_make_something_else_are_not_alike(of_b):
    graph = two_ways(**of_b)
    for way in "ab":
        ways = {op.name for op in graph.ops if op.scope.endswith(way)}
        convs = {name for name in ways if name.endswith("conv")}
        assert set(related(graph, [f"bl/0/{way}/conv"], "alike")) == convs
        block = [f"bl/0/{way}/conv", f"bl/0/{way}/relu"]
        assert set(related(graph, block, "alike")) == ways
    two_blocks = [op.name for op in graph.ops if op.scope.startswith("bl/0")]
    assert len(related(graph, two_blocks, "alike")) == len(graph.ops)


def test_names_and_who_counts_shared_weights_tell_no_ops_apart():
    graph = two_ways(attributes=(("inputs", "x, w7"),))
    assert len(related(graph, ["bl/0/a/conv"], "alike")) == 12
    ops = [replace(op, param_bytes=op.param_bytes * (i == 0)) for i, op in enumerate(graph.ops)]
    shared = Graph("shared", tuple(ops), graph.tensors)
    assert len(related(shared, ["bl/0/a/conv"], "alike")) == 12


def check_counts(graph):
    """As many blocks as a tooltip says are selected with one of them, in all of the graph."""
    tree = scope_tree(graph)
    for group in tree.groups[1:]:
        block = [graph.ops[i].name for i in tree.ops(group.index)]
        found = related(graph, block, "alike")
        assert len(found) == group.alike * group.num_ops, group.path
    return Counter(group.alike for group in tree.groups[1:])


def test_tooltips_count_what_is_selected_as_alike():
    for graph in (two_ways(flops=9.2e7), two_ways(), blocks()):
        check_counts(graph)
    graph = two_ways(flops=9.2e7)
    view = canvas.build_view(graph, canvas.all_groups(graph))
    title = next(box.title for box in view.boxes if box.title.startswith("bl/0/b"))
    assert "2 ops, one of 6 alike" in title


@pytest.mark.parametrize("model", ["onnx-inception-v2", "onnx-resnet50"])
def test_tooltips_of_known_networks_count_what_is_selected_as_alike(model):
    check_counts(load(model).graph)
