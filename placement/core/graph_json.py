"""Graphs as JSON objects, ops and tensors in declared order."""

from dataclasses import asdict
from typing import Any

from placement.core.graph import Graph


def graph_to_json(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "ops": [asdict(op) for op in graph.ops],
        "tensors": [asdict(t) for t in graph.tensors],
    }
