"""From an exported program to one functional graph of aten ops."""

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from placement.formats.torch.program import Node, TorchProgram, is_part
from placement.formats.torch.wrappers import has_autocast, open_wrappers

# How an export marks later calls of a module.
_AGAIN = re.compile(r"@\d+$")
MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)


def program_of(exported: ExportedProgram, name: str) -> TorchProgram:
    """The program of an export; a ValueError where it branches or has sizes that vary."""
    exported = _functional(exported)
    graph = exported.graph
    _require_plain(graph, name)
    signature = exported.graph_signature
    state: dict[str, torch.Tensor] = {}
    labels: dict[str, str] = {}
    inputs: list[str] = []
    for spec in signature.input_specs:
        node_name = getattr(spec.arg, "name", "")
        if spec.kind is InputKind.USER_INPUT:
            inputs.append(node_name)
        elif spec.target is not None:
            labels[node_name] = spec.target
            state[node_name] = _state_of(exported, spec.target)
    outputs: list[tuple[str, str]] = []
    names = _output_names(exported)
    updates: list[tuple[str, str]] = []
    for spec in signature.output_specs:
        node_name = getattr(spec.arg, "name", "")
        word = next(names, "") if spec.kind is OutputKind.USER_OUTPUT else ""
        if spec.kind is OutputKind.USER_OUTPUT and node_name:
            if word and word not in labels.values():
                labels.setdefault(node_name, word)
            outputs.append((labels.get(node_name, node_name), node_name))
        elif spec.kind in MUTATIONS:
            by_label = {label: node for node, label in labels.items()}
            updates.append((by_label[str(spec.target)], node_name))
    for node in list(graph.nodes):
        node.meta["scope"], node.meta["again"] = scope_of(node), called_again(node)
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            # It makes nothing, and sizes and types are fixed here.
            graph.erase_node(node)
    held = {n: t.detach() for n, t in state.items()}
    return TorchProgram(name, graph, tuple(inputs), held, labels, tuple(outputs), tuple(updates))


def _output_names(exported: ExportedProgram) -> Iterator[str]:
    """For each output the name that it has in a mapping or a dataclass; empty where it has none."""
    spec = exported.call_spec.out_spec
    nested = pytree.tree_unflatten(list(range(spec.num_leaves)), spec) if spec else None
    for path, _ in pytree.tree_leaves_with_path(nested):
        words = [getattr(key, "key", getattr(key, "name", getattr(key, "idx", ""))) for key in path]
        yield "_".join(map(str, words)) if words and isinstance(words[0], str) else ""


def _functional(exported: ExportedProgram) -> ExportedProgram:
    """The export without wrappers and ops that write into their inputs; the rest stays as it is."""
    open_wrappers(exported)
    writes = any(
        isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
        for node in exported.graph.nodes
    )
    # What autocast does is casts, which show only when it is traced anew.
    if not writes and not has_autocast(exported):
        return exported
    zeros = [_zeros(node.meta["val"]) for node in _user_inputs(exported)]
    # Those of a clean copy are none, and the library binds them to the signature.
    exported._example_inputs = pytree.tree_unflatten(zeros, exported.call_spec.in_spec)
    decomposed: ExportedProgram = exported.run_decompositions({})
    return decomposed


def _user_inputs(exported: ExportedProgram) -> list[Node]:
    specs = exported.graph_signature.input_specs
    names = {spec.arg.name for spec in specs if spec.kind is InputKind.USER_INPUT}
    return [n for n in exported.graph.nodes if n.op == "placeholder" and n.name in names]


def _zeros(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return torch.zeros(value.shape, dtype=value.dtype, device=value.device)


def _state_of(exported: ExportedProgram, target: str) -> torch.Tensor:
    for source in (exported.state_dict, exported.constants):
        value = source.get(target)
        if isinstance(value, torch.Tensor):
            return value
    raise ValueError(
        f"The exported program has a constant {target!r} that is no tensor; export the module"
        " without it."
    )


def _require_plain(graph: fx.Graph, name: str) -> None:
    for node in graph.nodes:
        if is_part(node) and node.args[0].op != "call_function":
            raise ValueError(f"{name!r} takes a part of an input ({node.name}); give it by itself.")
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            where = scope_of(node).replace("/", ".")
            inside = f" in its module {where!r}" if where else ""
            raise ValueError(
                f"{name!r} branches or loops on data{inside} ({node.target}), which cannot be"
                " placed op by op; give it inputs, or another module there, that need no such"
                " choice."
            )
        if any(_varies(value) for value in _flat(node.meta.get("val"))):
            raise ValueError(
                f"{name!r} has sizes that vary ({node.name}); export it without dynamic_shapes."
            )


def _varies(value: Any) -> bool:
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return True
    return isinstance(value, torch.Tensor) and any(isinstance(n, torch.SymInt) for n in value.shape)


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def scope_of(node: Node) -> str:
    """The module that an op belongs to, as a slash path."""
    stack = node.meta.get("nn_module_stack") or {}
    return _path(list(stack.values())[-1]) if stack else ""


def called_again(node: Node) -> tuple[str, ...]:
    """The modules around an op, as slash paths, that were called before: "key@1" in its stack."""
    stack = node.meta.get("nn_module_stack") or {}
    return tuple(_path(module) for key, module in stack.items() if _AGAIN.search(str(key)))


def _path(module: tuple[str, Any]) -> str:
    return str(module[0]).replace(".", "/").strip("/")
