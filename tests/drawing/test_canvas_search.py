"""Finding ops, and widening a selection, held against their definitions."""

import re

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui import canvas
from placement.constraints import regexes
from placement.drawing.searching import related, search
from tests.pages.graphs import blocks, graph_of
from tests.pages.test_canvas_view import graphs


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
    monkeypatch.setattr(regexes, "BUDGET_S", 0.5)
    graph = graph_of([("a" * 60, "Conv", "")], [])
    with pytest.raises(ValueError, match="too long"):
        search(graph, "(a+)+$b", "regex")


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
