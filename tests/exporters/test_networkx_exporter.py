"""Every exporter is found by its file; what the networkx exporter writes, the loader reads."""

import json

import networkx as nx
import pytest

from placement.core.placement import Placement
from placement.exporters import exporter, exporters
from placement.exporters.networkx import to_networkx
from placement.loaders import load, samples
from placement.loaders.networkx import from_networkx


def test_registry():
    names = [found.name for found in exporters()]
    assert len(set(names)) == len(names) and "networkx" in names
    for found in exporters():
        assert found.suffix.startswith(".") and found.summary, found.name
    with pytest.raises(ValueError, match="networkx"):
        exporter("network")


@pytest.mark.parametrize("sample", samples(), ids=lambda s: s.name)
def test_round_trips(sample, tmp_path):
    graph = load(sample.name).graph
    assert from_networkx(to_networkx(graph)) == graph
    path = tmp_path / "graph.json"
    exporter("networkx").export(graph, None, path)
    assert load(str(path)).graph == graph


def test_what_networkx_sees():
    graph = load("onnx-squeezenet").graph
    seen = to_networkx(graph)
    assert list(seen) == [op.name for op in graph.ops]
    assert nx.is_directed_acyclic_graph(seen)
    assert sum(data["flops"] for _, data in seen.nodes(data=True)) == graph.flops
    assert set(seen.edges) == {
        (graph.ops[i].name, graph.ops[j].name)
        for i, after in enumerate(graph.successors)
        for j in after
    }


def test_devices_are_node_attributes(tmp_path):
    graph = load("onnx-squeezenet").graph
    placement = Placement(graph.fingerprint, "m", {op.name: "cpu:1" for op in graph.ops})
    path = tmp_path / "placed.json"
    exporter("networkx").export(graph, placement, path)
    content = json.loads(path.read_text())
    assert {node["device"] for node in content["nodes"]} == {"cpu:1"}
    assert load(str(path)).graph == graph
