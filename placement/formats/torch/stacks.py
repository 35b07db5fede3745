"""Stacks of like layers are traced once: a network of 100 layers costs what its kinds of layer do.

While a module is exported, each layer of a stack gives one op that stands for all of its own: it
takes the layer's tensors and makes tensors of the shapes that the layer makes. A kind is a layer's
modules, the shapes of its parameters and what it is called with; each is exported by itself, once,
and its ops then take the place of that op wherever a layer of the kind is called. The result is
the graph that an export of everything gives, but for names, for constants of single layers (scales
by depth are those of the first of a kind), and for ops without effect, which go where a part is
traced twice because it writes into its inputs.

Nothing here runs on numbers: modules and inputs are on the meta device.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils import _pytree as pytree

from placement.formats.torch.program import Node, TorchProgram, is_part


class Unlike(Exception):
    """A stack whose layers cannot be traced by themselves; its message says why."""


Export = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], TorchProgram]
FEWEST = 2
# What a layer knows of its place, which makes no other kind of it.
_PLACES = frozenset({"layer_idx", "layer_id", "layer_index", "layer_number", "block_idx", "idx"})
_ODD = re.compile(r"\W")
_NUMBERED = re.compile(r"_\d+$")
_HELD = ("_parameters", "_buffers", "_modules")
_PLAIN = (bool, int, float, str, type(None), torch.dtype)


@dataclass(frozen=True)
class _Kind:
    """A kind of layer: one of them, what it was called with, and what it makes.

    `given` and `made` are nested as `given_spec` and `made_spec` say.
    """

    layer: nn.Module
    given: tuple[Any, ...]
    given_spec: pytree.TreeSpec
    made: tuple[Any, ...]
    made_spec: pytree.TreeSpec

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return tuple(value for value in self.given if isinstance(value, torch.Tensor))


class _Alone(nn.Module):
    """A layer of a kind as a module of its own, called with tensors alone."""

    def __init__(self, kind: _Kind) -> None:
        super().__init__()
        self.kind, self.layer = kind, kind.layer

    def forward(self, *tensors: torch.Tensor) -> Any:
        args, kwargs = _filled(self.kind.given, self.kind.given_spec, tensors)
        return [
            value
            for value in pytree.tree_leaves(self.layer(*args, **kwargs))
            if isinstance(value, torch.Tensor)
        ]


def _filled(leaves: Sequence[Any], spec: pytree.TreeSpec, tensors: Sequence[torch.Tensor]) -> Any:
    """What is nested as a spec says, with other tensors in it."""
    given = iter(tensors)
    whole = [next(given) if isinstance(x, torch.Tensor) else x for x in leaves]
    return pytree.tree_unflatten(whole, spec)


@dataclass
class _Tracing:
    """What is known while a module is exported: kinds by key, and each call's layer and kind."""

    kinds: dict[Any, _Kind] = field(default_factory=dict)
    calls: list[tuple[str, Any]] = field(default_factory=list)


_library: Any = torch.library
_LIBRARY = _library.Library("placement", "DEF")
_LIBRARY.define("layer(Tensor[] values, int call) -> Tensor[]")
LAYER = torch.ops.placement.layer.default
# The fake op is looked up by the library, so what it answers stands here while a trace is made.
_open: list[_Tracing] = []


def _made(values: Sequence[torch.Tensor], call: int) -> list[torch.Tensor]:
    tracing = _open[-1]
    kind = tracing.kinds[tracing.calls[call][1]]
    return [
        torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)
        for t in kind.made
        if isinstance(t, torch.Tensor)
    ]


_library.register_fake("placement::layer", _made, lib=_LIBRARY)


def traced(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], export: Export
) -> TorchProgram:
    """The program that `export` makes of a module, with each kind of layer exported once."""
    tracing = _Tracing()
    stacked, first_names = _stacked(module), _first_names(module)
    _open.append(tracing)
    try:
        with _standing_in(stacked, tracing):
            program = export(module, args, kwargs)
    finally:
        _open.pop()
    if not tracing.calls:
        return program
    programs = {
        key: traced(_Alone(kind), kind.tensors, {}, export) for key, kind in tracing.kinds.items()
    }
    return _inlined(program, tracing, programs, first_names)


def _first_names(module: nn.Module) -> dict[str, str]:
    """By name of a parameter or buffer the first name that the same tensor has."""
    found: dict[str, str] = {}
    known: dict[int, str] = {}
    for name, value in (
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ):
        found[name] = known.setdefault(id(value), name)
    return found


def _stacked(module: nn.Module) -> dict[str, tuple[nn.Module, Any]]:
    """By path the layers that have others of their structure in their list, outermost ones only."""
    found: dict[str, tuple[nn.Module, Any]] = {}

    def look(inner: nn.Module, path: str) -> None:
        kinds: dict[str, Any] = {}
        if isinstance(inner, nn.ModuleList):
            known = {name: _structure(child) for name, child in inner.named_children()}
            counts: dict[Any, int] = {}
            for structure in known.values():
                counts[structure] = counts.get(structure, 0) + 1
            kinds = {name: s for name, s in known.items() if counts[s] >= FEWEST}
        for name, child in inner.named_children():
            below = f"{path}.{name}" if path else name
            if name in kinds:
                found[below] = (child, kinds[name])
            else:
                look(child, below)

    look(module, "")
    return found


def _structure(layer: nn.Module) -> Any:
    """Stands for a layer's modules, their plain attributes, and the shapes of its tensors."""
    told: list[Any] = []
    for path, inner in layer.named_modules():
        about = sorted(
            (name, repr(value))
            for name, value in vars(inner).items()
            if name not in _PLACES and not name.startswith("_") and _is_plain(value)
        )
        told.append((path, type(inner), tuple(about), _by_place(inner)))
    tensors = (*layer.named_parameters(), *layer.named_buffers())
    told += [(name, tuple(value.shape), value.dtype) for name, value in tensors]
    return tuple(told)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(one) for one in value)
    return isinstance(value, _PLAIN)


def _by_place(layer: nn.Module) -> tuple[Any, ...]:
    """What a configuration says, in lists with an entry per layer, of the place of a layer."""
    place = next((vars(layer)[name] for name in sorted(_PLACES) if name in vars(layer)), None)
    config = getattr(layer, "config", None)
    if not isinstance(place, int) or config is None:
        return ()
    lists = sorted((k, v) for k, v in vars(config).items() if isinstance(v, list | tuple))
    return tuple((key, repr(value[place])) for key, value in lists if place < len(value))


@contextmanager
def _standing_in(stacked: Mapping[str, tuple[nn.Module, Any]], tracing: _Tracing) -> Iterator[None]:
    """While it lasts, calls of these layers are noted and give one op each.

    What is inside of them is out of sight, for an export looks at every parameter.
    """
    hidden = {path: _Inside.of(layer) for path, (layer, _) in stacked.items()}
    for path, (layer, structure) in stacked.items():
        layer.forward = _stand_in(path, layer, structure, hidden[path], tracing)
    try:
        yield
    finally:
        for path, (layer, _) in stacked.items():
            del layer.forward
            hidden[path].back(layer)


@dataclass(frozen=True)
class _Inside:
    """What a layer holds, taken out of it."""

    held: Mapping[str, Any]
    forward: Callable[..., Any]

    @classmethod
    def of(cls, layer: nn.Module) -> "_Inside":
        inside = cls({name: getattr(layer, name) for name in _HELD}, layer.forward)
        for name, content in inside.held.items():
            layer.__dict__[name] = type(content)()
        return inside

    def back(self, layer: nn.Module) -> None:
        layer.__dict__.update(self.held)

    def answer(self, layer: nn.Module, args: Any, kwargs: Any) -> Any:
        """What the layer makes of tensors without content, with nobody tracing."""
        self.back(layer)
        try:
            with disable_proxy_modes_tracing(), unset_fake_temporarily():
                return self.forward(*args, **kwargs)
        finally:
            _Inside.of(layer)


def _stand_in(
    path: str, layer: nn.Module, structure: Any, inside: _Inside, tracing: _Tracing
) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        others = [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)]
        odd = next((leaf for leaf in others if not _is_plain(leaf)), None)
        if odd is not None:
            raise Unlike(f"{path} is called with a {type(odd).__name__}")
        key = (structure, str(spec), repr(others), repr([_about(t, tensors) for t in tensors]))
        if key not in tracing.kinds:
            given = _without_fakes(leaves)
            answer = inside.answer(layer, *pytree.tree_unflatten(given, spec))
            made, made_spec = pytree.tree_flatten(answer)
            tracing.kinds[key] = _Kind(layer, given, spec, tuple(made), made_spec)
        kind = tracing.kinds[key]
        tracing.calls.append((path, key))
        made = torch.ops.placement.layer(tensors, len(tracing.calls) - 1)
        return _filled(kind.made, kind.made_spec, made)

    return called


def _about(value: torch.Tensor, values: Sequence[torch.Tensor]) -> Any:
    """Type and shape of a tensor, and which of several it is the same as."""
    same = next(i for i, other in enumerate(values) if other is value)
    return (same, value.dtype, tuple(value.shape), value.stride(), str(value.device))


def _without_fakes(leaves: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_empty(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)


def _empty(value: torch.Tensor) -> torch.Tensor:
    """A tensor like a fake one, without whoever fakes it."""
    shape, stride = [int(n) for n in value.shape], [int(n) for n in value.stride()]
    with disable_proxy_modes_tracing(), unset_fake_temporarily():
        return torch.empty_strided(shape, stride, dtype=value.dtype, device="meta")


def _inlined(
    program: TorchProgram,
    tracing: _Tracing,
    programs: Mapping[Any, TorchProgram],
    first_names: Mapping[str, str],
) -> TorchProgram:
    """The program with the ops of its layers in place of the ops that stand for them."""
    graph, now = fx.Graph(), dict[Node, Any]()
    places: dict[str, Node] = {}
    updates: list[tuple[str, str]] = []
    state, labels = dict(program.state), dict(program.labels)
    for node in program.graph.nodes:
        if node.op == "placeholder":
            now[node] = graph.node_copy(node)
            if node.name in state:
                places[labels[node.name]] = now[node]
    last = graph.call_function(len, ([],))

    def weight(label: str, value: torch.Tensor) -> Node:
        label = first_names.get(label, label)
        if label not in places:
            with graph.inserting_before(last):
                place = graph.placeholder(f"p_{re.sub(_ODD, '_', label)}")
            place.meta["val"] = value
            places[label], state[place.name], labels[place.name] = place, value, label
        return places[label]

    for node in program.graph.nodes:
        if node.target is LAYER:
            path, key = tracing.calls[node.args[1]]
            given = [now[value] for value in node.args[0]]
            again = node.meta["again"]
            now[node], written = _copied(graph, programs[key], given, path, again, weight)
            updates += written
        elif is_part(node) and node.args[0].target is LAYER:
            now[node] = now[node.args[0]][node.args[1]]
        elif node.op != "placeholder":
            now[node] = _copy(graph, node, now)
    graph.erase_node(last)
    for node in program.graph.nodes:
        if node.op == "call_function" and node.name in labels:
            labels[now[node].name] = labels.pop(node.name)
    outputs = tuple((label, now[program.nodes[name]].name) for label, name in program.outputs)
    own = (
        (now[program.nodes[held]].name, now[program.nodes[n]].name) for held, n in program.updates
    )
    return TorchProgram(
        program.name, graph, program.inputs, state, labels, outputs, (*own, *updates)
    )


def _copied(
    graph: fx.Graph,
    layer: TorchProgram,
    given: Sequence[Any],
    path: str,
    again: tuple[str, ...],
    weight: Callable[[str, torch.Tensor], Node],
) -> tuple[list[Any], list[tuple[str, str]]]:
    """A layer's ops at the end of a graph; its outputs and updates of state there.

    `again` are the modules around the layer, and itself, that were called before.
    """
    inputs, now = dict(zip(layer.inputs, given, strict=True)), dict[Node, Any]()
    handed_back = {name for _, name in layer.outputs} | {held for held, _ in layer.updates}
    scope = path.replace(".", "/")
    for node in layer.graph.nodes:
        if node.name in inputs:
            now[node] = inputs[node.name]
        elif node.op == "placeholder" and (node.users or node.name in handed_back):
            label = path + layer.labels[node.name].removeprefix("layer")
            now[node] = weight(label, layer.state[node.name])
        elif node.op == "call_function":
            now[node] = _copy(graph, node, now)
            now[node].meta["scope"] = scope + node.meta["scope"].removeprefix("layer")
            inside = (scope + inner.removeprefix("layer") for inner in node.meta["again"])
            now[node].meta["again"] = (*again, *inside)
    updates = [(now[layer.nodes[held]].name, now[layer.nodes[n]].name) for held, n in layer.updates]
    return [now[layer.nodes[name]] for _, name in layer.outputs], updates


def _copy(graph: fx.Graph, node: Node, now: Mapping[Node, Any]) -> Node:
    """A node at the end of a graph, numbered anew."""
    args, kwargs = fx.map_arg((node.args, dict(node.kwargs)), now.__getitem__)
    name = _NUMBERED.sub("", node.name)
    made = graph.create_node(node.op, node.target, args, kwargs, name, node.type)
    made.meta = dict(node.meta)
    return made
