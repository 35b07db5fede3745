"""networkx graphs in: named attributes, plain edges, and clear errors."""

import json

import networkx as nx
import pytest

from placement.loaders import load
from placement.loaders.networkx import from_networkx


def test_plain_graphs_have_one_tensor_per_edge():
    source = nx.DiGraph([("b", "c"), ("a", "b"), ("a", "c")])
    source.edges["a", "b"]["bytes"] = 8
    graph = from_networkx(source, "plain")
    assert graph.name == "plain"
    assert [op.name for op in graph.ops] == ["a", "b", "c"]
    assert {(t.producer, t.consumers, t.num_bytes) for t in graph.tensors} == {
        ("a", ("b",), 8),
        ("a", ("c",), 0),
        ("b", ("c",), 0),
    }


def test_edges_of_one_tensor_are_sent_once():
    source = nx.DiGraph()
    source.add_node(1, kind="Conv", flops=5.0, param_bytes=12, scope="s")
    source.add_edge(1, 2, tensor="t", bytes=8)
    source.add_edge(1, 3, tensor="t", bytes=8)
    graph = from_networkx(source)
    assert [(t.name, t.consumers, t.num_bytes) for t in graph.tensors] == [("t", ("2", "3"), 8)]
    op = graph.ops[0]
    assert (op.name, op.kind, op.flops, op.param_bytes, op.scope) == ("1", "Conv", 5.0, 12, "s")


def test_cycles_and_undirected_graphs_are_refused():
    with pytest.raises(ValueError, match=r"cycle through '[ab]'"):
        from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]))
    with pytest.raises(ValueError, match="DiGraph"):
        from_networkx(nx.Graph([("a", "b")]))


def test_older_files_call_the_edges_links(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps(nx.node_link_data(nx.DiGraph([("a", "b")]), edges="links")))
    model = load(str(path))
    assert model.graph.name == "old" and len(model.graph.tensors) == 1
    assert model.executable is None


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"nodes": [{"id": "a", "flops": "many"}]}, "flops"),
        ({"nodes": [{"id": "a", "param_bytes": -4}]}, "negative"),
        ({"nodes": [{"id": "a", "state_bytes": "x"}]}, "state_bytes"),
        ({"nodes": [{"id": "a", "state_bytes": True}]}, "state_bytes"),
        ({"nodes": [{"id": "a", "moved_bytes": []}]}, "moved_bytes"),
        ({"nodes": [{"id": "a", "moved_bytes": -1}]}, "moves -1"),
        ({"graph": {"tokens": {"task": "sleep", "sequences": 1, "per_sequence": 1}}}, "sleep"),
        ({"graph": {"tokens": 3}}, "expected an object"),
        ({"nodes": [{"id": {"a": 1}}]}, "g.json"),
        ({"edges": [{"source": "a"}]}, "g.json"),
        ({"edges": [{"source": "a", "target": "a"}]}, "cycle"),
        ({"graph": {"tensors": [{"name": "t", "producer": "nobody"}]}}, "nobody"),
        ({"graph": {"tensors": 3}}, "tensors"),
        ({"directed": False}, "DiGraph"),
    ],
)
def test_wrong_files_are_explained(change, part, tmp_path):
    content = {"directed": True, "multigraph": False, "graph": {}, "nodes": [{"id": "a"}]}
    path = tmp_path / "g.json"
    path.write_text(json.dumps({**content, "edges": [], **change}))
    with pytest.raises(ValueError, match=part):
        load(str(path))


def test_sizes_for_dimensions_are_refused(tmp_path):
    path = tmp_path / "g.json"
    path.write_text(json.dumps(nx.node_link_data(nx.DiGraph([("a", "b")]), edges="edges")))
    with pytest.raises(ValueError, match="batch"):
        load(str(path), {"batch": 4})
