"""The executable side of a PyTorch model: one functional graph of aten ops, and its state."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import getitem
from typing import Any

import torch
from torch import fx

from placement.core.model import SymbolicDim

# A node of a graph; its arguments may be anything.
Node = Any


@dataclass(frozen=True, eq=False)
class TorchProgram:
    """A graph without side effects, whose placeholders are inputs or state.

    `state` has the tensor of each placeholder that is none of `inputs`; `labels` how people know a
    placeholder ("features.0.weight"). `outputs` are (label, node name); `updates` (placeholder,
    node name) pairs say which state takes which value when a step is over. `symbolic_dims` are the
    sizes that whoever opens the model may set, `dims` those that were set. A model may be without
    weights: its state is on the meta device then. `stored_bytes` has the bytes of weights that are
    stored otherwise than they are computed with. `caches` are the placeholders of state that is no
    weight: what a language model keeps of earlier words, which a step reads and writes its part of.
    """

    name: str
    graph: fx.Graph
    inputs: tuple[str, ...]
    state: Mapping[str, torch.Tensor]
    labels: Mapping[str, str]
    outputs: tuple[tuple[str, str], ...]
    updates: tuple[tuple[str, str], ...] = ()
    symbolic_dims: tuple[SymbolicDim, ...] = ()
    stored_bytes: Mapping[str, int] = field(default_factory=dict)
    caches: tuple[str, ...] = ()
    dims: tuple[tuple[str, int], ...] = ()

    @property
    def has_weights(self) -> bool:
        """Whether the state's numbers are here, and not its shapes alone."""
        return not any(value.is_meta for value in self.state.values())

    @property
    def format(self) -> str:
        return "torch"

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the graph as text, of its inputs' types and of every tensor of the state."""
        digest = hashlib.sha256(str(self.graph).encode())
        for name in self.inputs:
            value = self.nodes[name].meta.get("val")
            about = (getattr(value, "dtype", type(value)), getattr(value, "shape", value))
            digest.update(f"{name} {about}".encode())
        for name in sorted(self.state):
            value = self.state[name].detach()
            value = value if value.is_meta else value.contiguous().cpu()
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            if value.is_meta:
                digest.update(str(self.stored_bytes.get(name)).encode())
                continue
            digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.graph.nodes}

    @cached_property
    def kernels(self) -> tuple[Node, ...]:
        """The nodes that compute, in order; taking one of several results is part of its maker."""
        return tuple(n for n in self.graph.nodes if n.op == "call_function" and not is_part(n))

    @cached_property
    def maker(self) -> Mapping[str, Node]:
        """The kernel that makes each value that is no placeholder."""
        found: dict[str, Node] = {}
        for node in self.graph.nodes:
            if node.op == "call_function":
                found[node.name] = found[node.args[0].name] if is_part(node) else node
        return found

    @cached_property
    def _by_label(self) -> Mapping[str, str]:
        return {label: name for name, label in self.labels.items()}

    def node_of(self, label: str) -> str:
        """The name of the node that people know by this label; others are known by their name."""
        return self._by_label.get(label, label)

    def reads(self, kernel: Node) -> tuple[Node, ...]:
        """Values that a kernel reads, each once, in order."""
        return tuple(dict.fromkeys(kernel.all_input_nodes))

    @cached_property
    def values(self) -> Mapping[str, tuple[Node, ...]]:
        """By kernel the tensors that it makes: itself, or the results taken from it."""
        found: dict[str, list[Node]] = {k.name: [] for k in self.kernels}
        for node in self.graph.nodes:
            if node.op == "call_function" and not isinstance(node.meta.get("val"), list | tuple):
                found[self.maker[node.name].name].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}


def is_part(node: Node) -> bool:
    """Whether a node takes one of several results of another."""
    return node.target is getitem and isinstance(node.args[0], fx.Node)


def is_update(node: Node) -> bool:
    """Whether a kernel is an optimiser's update of one parameter."""
    return bool(node.meta.get("phase") == "update" and not is_part(node))


def kind_of(node: Node) -> str:
    """The op's name without its library and overload: "conv2d" for aten.conv2d.default."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return str(target.overloadpacket.__name__)
    return str(getattr(target, "__name__", target))


def has_nodes(argument: Any) -> bool:
    """Whether an argument is a value of the graph or holds some."""
    found: list[Node] = []
    fx.map_arg(argument, found.append)
    return bool(found)


def num_bytes(value: object) -> int:
    """Bytes of a value, by its fake tensor; a number that is no tensor has eight."""
    if isinstance(value, torch.Tensor):
        return int(value.numel()) * value.element_size()
    return 8
