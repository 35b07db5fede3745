"""networkx: a DiGraph, or node-link JSON that networkx wrote, as a Graph.

Everything but the edges may be left out. Of a node `kind`, `scope`, `phase`, `flops`,
`param_bytes`, `colocation_group`, `attributes`, `state_bytes` and `moved_bytes` are read, each with
the meaning it has in `Op`, of the graph the attribute `tokens` with the fields of `Tokens`.
Where the graph attribute `tensors` describes the tensors (as `placement.exporters.networkx` writes
it), they are taken from there; otherwise each edge is one tensor of `bytes` bytes (default 0), and
the edges of one node that give the same `tensor` name are one tensor with several readers.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.core.amounts import MOST
from placement.core.decoding import decode, shown
from placement.core.graph import Graph, Op, Tensor, Tokens
from placement.core.model import Model
from placement.files.input import read_json, read_value, refuse_dims
from placement.loaders.base import Loader

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
            f"The networkx graph {name!r} has a cycle through {shown(on_cycle)}; remove an edge."
        ) from None
    ops = tuple(_op(text[node], source.nodes[node]) for node in order)
    described = source.graph.get("tensors")
    if described is not None:
        tensors = tuple(
            _tensor(entry, i)
            for i, entry in enumerate(_list(described, "graph attribute 'tensors'"))
        )
    else:
        tensors = _edge_tensors(source, order, text)
    told = _text(source.graph.get("name") or name, "name of the graph")
    return Graph(told, ops, tensors, _tokens(source.graph.get("tokens")))


class NetworkxLoader(Loader):
    """Reads node-link JSON; such a model has no executable side."""

    name = "networkx"
    summary = "networkx node-link JSON"
    suffixes = (".json",)

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
        refuse_dims(dims, path)
        graph = read_value(path, "node-link file", lambda c: _graph_of(c, path.stem))
        return Model(graph)


@dataclass(frozen=True)
class NodeLink:
    """Node-link JSON, as networkx writes it; older versions call the edges links."""

    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    directed: bool = True
    multigraph: bool = False
    graph: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = [_id(node.get("id"), f"nodes[{i}].id") for i, node in enumerate(self.nodes)]
        known = set(ids)
        if len(known) < len(ids):
            raise ValueError("two of its nodes have one id; give each its own.")
        for i, edge in enumerate(self.edges):
            for key in ("source", "target"):
                if _id(edge.get(key), f"edges[{i}].{key}") not in known:
                    raise ValueError(
                        f"edges[{i}].{key} is {shown(edge[key])}, which is not the id of a node;"
                        " add the node or remove the edge."
                    )


def _id(value: Any, place: str) -> Hashable:
    """A node's name: a text, a number, or a list of them, which networkx makes a tuple."""
    if isinstance(value, list) and value:
        return tuple(_id(part, place) for part in value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{place} is {shown(value)}; use a text or a number.")
    return value


def _graph_of(content: Any, name: str) -> Graph:
    import networkx as nx

    if isinstance(content, Mapping) and "edges" not in content and "links" in content:
        content = {**content, "edges": content["links"]}
    file = decode(content, NodeLink, remedy="write it with networkx.node_link_data")
    return from_networkx(nx.node_link_graph(vars(file), edges="edges"), name)


def _op(name: str, data: Mapping[str, Any]) -> Op:
    given = {key: data[key] for key in _OP_FIELDS if data.get(key) is not None}
    for key in ("kind", "scope", "phase", "colocation_group"):
        if key in given:
            given[key] = _text(given[key], f"{key} of op {shown(name)}")
    given["flops"] = _number(given.get("flops", 0.0), f"flops of op {shown(name)}")
    for key in ("param_bytes", "state_bytes"):
        given[key] = _whole(given.get(key, 0), f"{key} of op {shown(name)}")
    if "moved_bytes" in given:
        given["moved_bytes"] = _number(given["moved_bytes"], f"moved_bytes of op {shown(name)}")
    where = f"attributes of op {shown(name)}"
    pairs = [_list(pair, where) for pair in _list(given.get("attributes", ()), where)]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"The {where} are no pairs; give lists of a key and a value.")
    given["attributes"] = tuple((_text(k, where), _text(v, where)) for k, v in pairs)
    return Op(name, **{"kind": "op", **given})


def _tokens(entry: Any) -> Tokens | None:
    return None if entry is None else decode(entry, Tokens, remedy="leave it out")


def _tensor(entry: Any, number: int) -> Tensor:
    if not isinstance(entry, dict) or "name" not in entry:
        raise ValueError(f"graph.tensors[{number}] has no name; give it one.")
    given = {key: entry[key] for key in _TENSOR_FIELDS if key in entry}
    name = given["name"] = _text(given["name"], f"name of graph.tensors[{number}]")
    where = f"tensor {shown(name)}"
    if given.setdefault("producer", None) is not None:
        given["producer"] = _text(given["producer"], f"producer of {where}")
    readers = _list(given.get("consumers", ()), f"consumers of {where}")
    given["consumers"] = tuple(_text(reader, f"consumers of {where}") for reader in readers)
    given["num_bytes"] = _whole(given.get("num_bytes", 0), f"num_bytes of {where}")
    if given.get("shape") is not None:
        shape = _list(given["shape"], f"shape of {where}")
        given["shape"] = tuple(_whole(size, f"shape of {where}") for size in shape)
    given["dtype"] = _text(given.get("dtype", "float32"), f"dtype of {where}")
    if not isinstance(given.setdefault("is_output", False), bool):
        raise ValueError(f"The is_output of {where} is {shown(given['is_output'])}; use a truth.")
    return Tensor(**given)


def _edge_tensors(
    source: "nx.DiGraph[Any]", order: list[Any], text: Mapping[Any, str]
) -> tuple[Tensor, ...]:
    consumers: dict[tuple[str, str], list[str]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for node in order:
        for _, reader, data in source.out_edges(node, data=True):
            between = f"{text[node]} -> {text[reader]}"
            name = _text(data.get("tensor", between), f"tensor of edge {shown(between)}")
            key = (text[node], name)
            consumers.setdefault(key, []).append(text[reader])
            size = _whole(data.get("bytes", 0), f"bytes of edge {shown(name)}")
            sizes[key] = max(sizes.get(key, 0), size)
    return tuple(
        Tensor(name, producer, tuple(readers), sizes[producer, name])
        for (producer, name), readers in consumers.items()
    )


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MOST:
        raise ValueError(f"The {what} is {shown(value)}; give a number, at most {MOST:g}.")
    return value


def _whole(value: Any, what: str) -> int:
    """A number of bytes; files of the literature state fractions of one."""
    return int(_number(value, what))


def _text(value: Any, what: str) -> str:
    if isinstance(value, list | tuple | Mapping) or value is None:
        raise ValueError(f"The {what} is {shown(value)}; give a text.")
    return str(value)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"The {what} is {shown(value)}; give a list.")
    return list(value)


LOADER = NetworkxLoader()
