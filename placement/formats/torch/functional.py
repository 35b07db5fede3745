"""From a traced step to a graph without side effects.

Ops that write into what they read become those that make a new value, where nothing reads the old
one through another name; otherwise the whole step is traced again, which takes as long as the first
time.
"""

from collections.abc import Iterator
from operator import getitem
from typing import Any

import torch
from torch import fx
from torch.fx import traceback as notes
from torch.fx.experimental.proxy_tensor import make_fx

from placement.formats.torch.program import Node, is_part

ATEN = torch.ops.aten
PASSING = (ATEN.detach.default, ATEN.alias.default)
BATCH_NORM = ATEN._native_batch_norm_legit.default
# Views that give parts of a tensor that do not overlap.
_APART = (ATEN.split.Tensor, ATEN.split_with_sizes.default, ATEN.unbind.int)


def functional(traced: fx.GraphModule, arguments: Any) -> fx.Graph:
    """The graph of `traced`, which was traced with these arguments, without side effects."""
    graph = _rewritten(traced.graph) or _traced_again(traced, arguments)
    for node in list(graph.nodes):
        if node.target in PASSING:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    graph.eliminate_dead_code()
    return graph


def _traced_again(traced: fx.GraphModule, arguments: Any) -> fx.Graph:
    def again(*flat: Any) -> Any:
        with notes.preserve_node_meta():
            return fx.Interpreter(traced).run(*flat)

    pure = torch.func.functionalize(again, remove="mutations")
    graph: fx.Graph = make_fx(pure, tracing_mode="fake")(*arguments).graph
    for node in reversed(list(graph.nodes)):
        if node.target is ATEN.copy_.default and not node.users:
            graph.erase_node(node)
    return graph


def _rewritten(old: fx.Graph) -> fx.Graph | None:
    """The graph op by op, or None where that is not certainly the same."""
    place = {node: i for i, node in enumerate(old.nodes)}
    last_read = {v: i for node, i in place.items() for v in node.all_input_nodes}
    graph, now, waiting = fx.Graph(), dict[Node, Node](), list[tuple[Node, Node, int]]()
    for node, number in place.items():
        if not is_part(node):
            _take_parts(graph, now, waiting)
        written = list(_written(node))
        seen = [v for w in written for v in _overlapping(w) if place[v] < number]
        pure = _without_writing(node) if _writes(node) else node.target
        if pure is None or any(last_read.get(v, 0) > number for v in seen):
            return None
        args, kwargs = fx.map_arg((node.args, node.kwargs), now.__getitem__)
        made = now[node] = graph.create_node(node.op, pure, args, kwargs, _name(node, pure))
        made.meta = dict(node.meta)
        if node.target is BATCH_NORM:
            known = len(node.meta["val"])
            made.meta["val"] = (*node.meta["val"], *(w.meta["val"] for w in written))
            waiting += [(w, made, i) for i, w in enumerate(written, known)]
        elif written:
            now[written[0]] = made
    return graph


def _take_parts(
    graph: fx.Graph, now: dict[Node, Node], waiting: list[tuple[Node, Node, int]]
) -> None:
    """From here on (value, maker, number) is the value's new state, that result of the maker."""
    for value, maker, number in waiting:
        now[value] = graph.call_function(getitem, (maker, number))
        now[value].meta = {**maker.meta, "val": maker.meta["val"][number]}
    waiting.clear()


def _name(node: Node, target: Any) -> str | None:
    """What the tracer calls an op; it numbers those of one name."""
    packet = getattr(target, "overloadpacket", None)
    return str(node.name) if node.op == "placeholder" else getattr(packet, "__name__", None)


def _writes(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _written(node: Node) -> Iterator[Node]:
    """The values that an op writes into."""
    if _writes(node):
        for argument, value in zip(node.target._schema.arguments, node.args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                yield value


def _without_writing(node: Node) -> Any:
    """The op that makes new values instead; None where none certainly does the same."""
    if node.target is BATCH_NORM:
        return ATEN._native_batch_norm_legit_functional.default
    op = node.target
    name = op.overloadpacket.__name__
    pure = getattr(getattr(ATEN, name.removesuffix("_"), None), op._overloadname, None)
    plain = op.namespace == "aten" and name.endswith("_") and not node.kwargs
    odd = not {torch.Tag.nondeterministic_seeded, torch.Tag.inplace_view}.isdisjoint(op.tags)
    if not plain or odd or op is ATEN.copy_.default or not _keeps_type(node):
        return None
    return pure


def _keeps_type(node: Node) -> bool:
    """Whether the arguments cannot make a wider type of what is written."""
    kind = node.args[0].meta["val"].dtype
    for value in node.args[1:]:
        if isinstance(value, fx.Node):
            if value.meta["val"].dtype is not kind:
                return False
        elif isinstance(value, float | complex) and not kind.is_floating_point:
            return False
    return True


def _overlapping(value: Node) -> Iterator[Node]:
    """Other values in the same memory: what it is a view of, and views of these and of itself."""
    inner, outer = None, value
    while outer is not None:
        if outer is not value:
            yield outer
        if inner is None or outer.target not in _APART:
            waiting = [user for user in outer.users if user is not inner]
            while waiting:
                user = waiting.pop()
                if viewed(user) is not None:
                    yield user
                    waiting += user.users
        inner, outer = outer, viewed(outer)


def viewed(node: Node) -> Node | None:
    """What a value is a view of, if it is one; what an op wrote into is its result's memory too."""
    if is_part(node):
        return node.args[0] if viewed(node.args[0]) is not None else None
    schema = getattr(node.target, "_schema", None)
    if schema is None or all(result.alias_info is None for result in schema.returns):
        return None
    shared = (a for a, v in zip(schema.arguments, node.args, strict=False) if a.alias_info)
    return node.args[schema.arguments.index(next(shared))]
