"""Graphs as JSON objects, ops and tensors in declared order."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from placement.core.graph import Graph, Op, Tensor


def graph_to_json(graph: Graph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "ops": [asdict(op) for op in graph.ops],
        "tensors": [asdict(t) for t in graph.tensors],
    }


def graph_from_json(content: Mapping[str, Any]) -> Graph:
    return Graph(
        str(content["name"]),
        tuple(
            Op(**{**op, "attributes": tuple((str(k), str(v)) for k, v in op.get("attributes", ()))})
            for op in content["ops"]
        ),
        tuple(
            Tensor(
                **{
                    **t,
                    "consumers": tuple(t["consumers"]),
                    "shape": None if t.get("shape") is None else tuple(t["shape"]),
                }
            )
            for t in content["tensors"]
        ),
    )
