"""What the networkx exporter writes, the loader of the same name reads."""

import json

import networkx as nx
import pytest

from placement.core.graph import Graph, Op, Tokens
from placement.core.model import Model
from placement.core.placement import Placement
from placement.exporters.networkx import to_networkx
from placement.loaders import load, samples
from placement.loaders.networkx import from_networkx
from tests.exporters.exports import export_of, written
from tests.exporters.torch_models import inference, training

SAMPLES = [s.name for s in samples() if s.name.startswith("onnx-")]


@pytest.mark.parametrize("sample", SAMPLES)
def test_round_trips(sample):
    graph = load(sample).graph
    assert from_networkx(to_networkx(graph)) == graph


@pytest.mark.parametrize("model", [inference, lambda: training("attending")])
def test_round_trips_of_pytorch(model):
    graph = model().graph
    assert from_networkx(to_networkx(graph)) == graph


def test_state_moved_bytes_and_tokens_come_back(tmp_path):
    op = Op("attend", "Attention", param_bytes=4, state_bytes=64, moved_bytes=9.5)
    graph = Graph("step", (op,), (), Tokens("decode", sequences=2, per_sequence=1))
    model = Model(graph)
    placement = Placement(graph.fingerprint, "m", {"attend": "cpu:0"})
    assert load(str(written("networkx", export_of(model, placement), tmp_path))).graph == graph


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
    model = load("onnx-squeezenet")
    graph = model.graph
    placement = Placement(graph.fingerprint, "m", {op.name: "cpu:1" for op in graph.ops})
    path = written("networkx", export_of(model, placement), tmp_path)
    content = json.loads(path.read_text())
    assert {node["device"] for node in content["nodes"]} == {"cpu:1"}
    assert load(str(path)).graph == graph
