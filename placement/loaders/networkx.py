"""networkx: a DiGraph, or node-link JSON that networkx wrote, as a Graph.

Everything but the edges may be left out. Of a node `kind`, `scope`, `phase`, `flops`,
`param_bytes`, `colocation_group` and `attributes` are read, each with the meaning it has in `Op`.
Where the graph attribute `tensors` describes the tensors (as `placement.exporters.networkx` writes
it), they are taken from there; otherwise each edge is one tensor of `bytes` bytes (default 0), and
the edges of one node that give the same `tensor` name are one tensor with several readers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.core.graph import Graph, Op, Tensor
from placement.core.model import Model
from placement.loaders._files import read_json, refuse_dims

if TYPE_CHECKING:
    import networkx as nx

_OP_FIELDS = tuple(field.name for field in fields(Op) if field.name != "name")
_TENSOR_FIELDS = tuple(field.name for field in fields(Tensor))


def from_networkx(source: "nx.DiGraph[Any]", name: str = "graph") -> Graph:
    """The graph as described above; node names become text. ValueError where there is a cycle."""
    import networkx as nx

    if not source.is_directed() or source.is_multigraph():
        raise ValueError(
            f"The networkx graph {name!r} must be a DiGraph;"
            " convert it with networkx.DiGraph(graph)."
        )
    text = {node: str(node) for node in source}
    position = {node: i for i, node in enumerate(source)}
    try:
        order = list(nx.lexicographical_topological_sort(source, key=position.__getitem__))
    except nx.NetworkXUnfeasible:
        on_cycle = text[nx.find_cycle(source)[0][0]]
        raise ValueError(
            f"The networkx graph {name!r} has a cycle through {on_cycle!r}; remove an edge."
        ) from None
    ops = tuple(_op(text[node], source.nodes[node]) for node in order)
    described = source.graph.get("tensors")
    if described is not None:
        tensors = tuple(_tensor(entry) for entry in _list(described, "tensors"))
    else:
        tensors = _edge_tensors(source, order, text)
    return Graph(str(source.graph.get("name") or name), ops, tensors)


@dataclass(frozen=True)
class NetworkxLoader:
    """Reads node-link JSON; such a model has no executable side."""

    name: str = "networkx"
    summary: str = "networkx node-link JSON"
    suffixes: tuple[str, ...] = (".json",)

    def accepts(self, path: Path) -> bool:
        try:
            content = read_json(path)
        except ValueError:
            return False
        return (
            isinstance(content, dict)
            and "format" not in content
            and isinstance(content.get("nodes"), list)
            and isinstance(content.get("edges", content.get("links")), list)
            and ("directed" in content or "multigraph" in content)
        )

    def load(self, path: Path, dims: Mapping[str, int]) -> Model:
        import networkx as nx

        refuse_dims(dims, path)
        content = read_json(path)
        if not self.accepts(path):
            raise ValueError(f"{path.name!r} is not node-link JSON; write it with networkx.")
        try:
            edges = "edges" if "edges" in content else "links"
            graph = nx.node_link_graph(content, edges=edges)
            return Model(from_networkx(graph, path.stem))
        except (nx.NetworkXException, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path.name!r} is not understood as node-link JSON ({type(error).__name__}:"
                f" {str(error)[:200]}); write it with networkx.node_link_data."
            ) from None


def _op(name: str, data: Mapping[str, Any]) -> Op:
    given = {key: data[key] for key in _OP_FIELDS if data.get(key) is not None}
    given.setdefault("kind", "op")
    for key in ("kind", "scope", "phase", "colocation_group"):
        if key in given:
            given[key] = str(given[key])
    given["flops"] = _number(given.get("flops", 0.0), f"flops of op {name!r}")
    given["param_bytes"] = int(_number(given.get("param_bytes", 0), f"param_bytes of op {name!r}"))
    pairs = _list(given.get("attributes", ()), "attributes")
    given["attributes"] = tuple((str(key), str(value)) for key, value in pairs)
    return Op(name, **given)


def _tensor(entry: Any) -> Tensor:
    if not isinstance(entry, dict) or "name" not in entry:
        raise ValueError("An entry of the graph attribute 'tensors' has no name; give it one.")
    given = {key: entry[key] for key in _TENSOR_FIELDS if key in entry}
    name = given["name"] = str(given["name"])
    given.setdefault("producer", None)
    given["consumers"] = tuple(map(str, _list(given.get("consumers", ()), "consumers")))
    given["num_bytes"] = int(_number(given.get("num_bytes", 0), f"num_bytes of tensor {name!r}"))
    if given.get("shape") is not None:
        given["shape"] = tuple(int(_number(d, f"shape of {name!r}")) for d in given["shape"])
    return Tensor(**given)


def _edge_tensors(
    source: "nx.DiGraph[Any]", order: list[Any], text: Mapping[Any, str]
) -> tuple[Tensor, ...]:
    consumers: dict[tuple[str, str], list[str]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for node in order:
        for _, reader, data in source.out_edges(node, data=True):
            name = str(data.get("tensor", f"{text[node]} -> {text[reader]}"))
            key = (text[node], name)
            consumers.setdefault(key, []).append(text[reader])
            size = int(_number(data.get("bytes", 0), f"bytes of edge {name!r}"))
            sizes[key] = max(sizes.get(key, 0), size)
    return tuple(
        Tensor(name, producer, tuple(readers), sizes[producer, name])
        for (producer, name), readers in consumers.items()
    )


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 2**62:
        raise ValueError(f"The {what} is {str(value)[:50]!r}; give a number.")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"The graph attribute {what!r} is no list; give a list.")
    return list(value)


LOADER = NetworkxLoader()
