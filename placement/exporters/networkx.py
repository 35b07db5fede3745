"""networkx: a graph as a DiGraph, and as node-link JSON that networkx reads.

Nodes are ops, named like them, with the attributes `kind`, `scope`, `phase`, `flops`,
`param_bytes`, `colocation_group`, `attributes` (list of [key, text]), `state_bytes`, `moved_bytes`
and, where there is a placement, `device`. A step of a language model has the graph attribute
`tokens` (`task`, `sequences`, `per_sequence`). An edge joins producer and consumer; its `tensors`
lists the names of what flows, its `bytes` their sum. The graph attribute `tensors` describes every
tensor (`name`, `producer`, `consumers`, `num_bytes`, `shape`, `dtype`, `is_output`), because a
tensor is sent once however many ops read it, and because model inputs and outputs have no edge.
"""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.core.graph import Graph, Op, Tensor
from placement.core.placement import Placement
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(graph: Graph, placement: Placement | None = None) -> "nx.DiGraph[str]":
    """The graph as described above; nodes are in topological order."""
    import networkx as nx

    result: nx.DiGraph[str] = nx.DiGraph()
    result.graph["name"] = graph.name
    result.graph["tensors"] = [
        {
            **{field.name: getattr(t, field.name) for field in fields(Tensor)},
            "consumers": list(t.consumers),
            "shape": None if t.shape is None else list(t.shape),
        }
        for t in graph.tensors
    ]
    if graph.tokens is not None:
        result.graph["tokens"] = asdict(graph.tokens)
    for op in graph.ops:
        device = {} if placement is None else {"device": placement.device_of.get(op.name)}
        about = {field.name: getattr(op, field.name) for field in fields(Op)[1:]}
        about["attributes"] = [list(pair) for pair in op.attributes]
        result.add_node(op.name, **about, **device)
    for tensor in graph.tensors:
        for consumer in tensor.consumers if tensor.producer is not None else ():
            if not result.has_edge(tensor.producer, consumer):
                result.add_edge(tensor.producer, consumer, tensors=[], bytes=0)
            edge = result.edges[tensor.producer, consumer]
            edge["tensors"].append(tensor.name)
            edge["bytes"] += tensor.num_bytes
    return result


class NetworkxExporter(Exporter):
    """Writes node-link JSON; the loader of the same name reads it back."""

    name = "networkx"
    title = "networkx graph"
    summary = "node-link JSON: ops as nodes, traffic as edges"
    suffix = ".json"

    def export(self, export: Export, path: Path) -> None:
        import networkx as nx

        found = to_networkx(export.model.graph, export.placement)
        content: dict[str, Any] = nx.node_link_data(found, edges="edges")
        write_text(path, json.dumps(content, indent=1) + "\n")


EXPORTER = NetworkxExporter()
