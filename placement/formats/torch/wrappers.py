"""Exports hide some calls in graphs of their own: opens such graphs in place.

`torch.no_grad()` inside a module becomes one node that calls an inner graph, and so do activation
checkpointing and regions that are compiled apart. For a prediction the wrapper means nothing, so
the inner nodes take the place of that call, with their modules and values.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from placement.formats.torch.program import Node, is_part

HIGHER = torch.ops.higher_order
AUTOCAST = HIGHER.wrap_with_autocast
# Wrappers that are plain calls: which argument is the inner graph, and where its own begin.
_CALLS: dict[str, tuple[int, int]] = {
    "wrap_with_set_grad_enabled": (1, 2),
    "tag_activation_checkpoint": (0, 1),
    "wrap_activation_checkpoint": (0, 1),
    "wrap": (0, 1),
    "invoke_subgraph": (0, 2),
}


def open_wrappers(exported: ExportedProgram) -> None:
    """Put the ops of all wrappers that are plain calls into the graph around them, in place."""
    module = exported.graph_module
    renamed: dict[str, str] = {}
    while calls := [node for node in module.graph.nodes if _is_call(node)]:
        for call in calls:
            renamed |= _open(module, call)
    module.graph.lint()
    module.recompile()
    for spec in exported.graph_signature.output_specs:
        name = getattr(spec.arg, "name", "")
        while name in renamed:
            name = renamed[name]
            spec.arg = replace(spec.arg, name=name)


def _is_call(node: Node) -> bool:
    is_higher = isinstance(node.target, torch._ops.HigherOrderOperator)
    return is_higher and node.target.name() in _CALLS


def _open(module: fx.GraphModule, call: Node) -> dict[str, str]:
    """The inner nodes in place of a call; what its results were called, and what they are now."""
    at, begin = _CALLS[call.target.name()]
    getter, arguments = call.args[at], call.args[begin:]
    inner: Any = getattr(module, getter.target)
    given = iter(arguments)
    now: dict[Node, Any] = {}
    results: Any = ()
    with module.graph.inserting_before(call):
        for node in inner.graph.nodes:
            if node.op == "placeholder":
                now[node] = next(given)
            elif node.op == "output":
                results = fx.map_arg(node.args[0], now.__getitem__)
            else:
                now[node] = module.graph.node_copy(node, now.__getitem__)
            if node.op == "get_attr":
                now[node].target = _taken_along(module, inner, str(node.target))
    renamed = {}
    for user in list(call.users):
        assert is_part(user)
        result = results[user.args[1]]
        renamed[user.name] = result.name
        user.replace_all_uses_with(result)
        module.graph.erase_node(user)
    module.graph.erase_node(call)
    if not getter.users:
        module.graph.erase_node(getter)
    return renamed


def _taken_along(module: fx.GraphModule, inner: Any, target: str) -> str:
    """The name in `module` of what an inner graph has under a name that may be taken there."""
    number = sum(name.startswith("inner_") for name in vars(module) | module._modules)
    name = f"inner_{number}"
    setattr(module, name, getattr(inner, target))
    return name


def has_autocast(exported: ExportedProgram) -> bool:
    return any(node.target is AUTOCAST for node in exported.graph.nodes)
