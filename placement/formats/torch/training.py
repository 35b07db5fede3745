"""A training step as one functional aten graph: loss, gradients, and one update per parameter.

The step is traced with gradients, which notes for each op the module it belongs to, its phase and
the forward op it was derived from, and then freed of side effects. Ops that train a parameter (its
first reader, the op that makes its gradient, its update) are one colocation group, since each would
otherwise move the parameter or something as large. Views take no part in that by themselves: what
reads a transposed weight reads the weight.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import getitem
from typing import Any

import torch
from torch import fx, nn
from torch._functorch._aot_autograd.logging_utils import setup_stacktrace_preservation_hooks
from torch.fx import traceback as notes
from torch.fx.experimental.proxy_tensor import make_fx

from placement.formats.torch.functional import BATCH_NORM, functional, viewed
from placement.formats.torch.optimisers import Optimiser
from placement.formats.torch.program import Node, TorchProgram

ATEN = torch.ops.aten


def training_program(
    module: nn.Module,
    inputs: Sequence[Any],
    named: Mapping[str, Any],
    targets: Sequence[Any],
    loss: Callable[..., Any] | None,
    optimiser: Optimiser,
    name: str,
) -> TorchProgram:
    """The step `loss(module(*inputs, **named), *targets)`, its gradients and updates.

    Without a loss the module's output is one, or has one as attribute or item `loss`.
    """
    params = {k: v.detach() for k, v in module.named_parameters() if v.requires_grad}
    held = {k: v.detach() for k, v in module.named_parameters() if not v.requires_grad}
    held |= {k: v.detach().clone() for k, v in module.named_buffers()}
    if not params:
        raise ValueError(f"{name!r} has no parameters that can be trained; check requires_grad.")

    def step(params: Any, held: Any, inputs: Any, named: Any, targets: Any) -> Any:
        trained = {k: v.detach().requires_grad_() for k, v in params.items()}
        state = {**trained, **held}
        made = torch.func.functional_call(module, state, tuple(inputs), named)
        value = _loss_of(made) if loss is None else loss(made, *targets)
        setup_stacktrace_preservation_hooks([value.grad_fn])
        notes.current_meta["custom"] = {"phase": "backward"}
        grads = torch.autograd.grad(value, list(trained.values()), allow_unused=True)
        return value.detach(), [state[k] for k in held], list(grads)

    arguments = (params, held, list(inputs), dict(named), list(targets))
    graph = functional(_traced(module, step, arguments), arguments)
    words = [*_input_names(module, len(inputs)), *named, *_target_names(len(targets))]
    return _program(graph, words, params, held, optimiser, name)


def _loss_of(made: Any) -> Any:
    found = made.get("loss") if isinstance(made, Mapping) else getattr(made, "loss", made)
    if not isinstance(found, torch.Tensor) or found.numel() != 1:
        raise ValueError("The module's output is no loss; give a function loss(output, *targets).")
    return found


def _traced(module: nn.Module, step: Callable[..., Any], arguments: Any) -> fx.GraphModule:
    """The step with its side effects; ops carry scope, phase and number of their forward op."""
    table = {ATEN.native_batch_norm.default: _batch_norm}
    with notes.preserve_node_meta(), _noting_scopes(module):
        graph = make_fx(step, decomposition_table=table, tracing_mode="fake")(*arguments)
    scope_of: dict[int, str] = {}
    first_of: dict[int, str] = {}
    for node in graph.graph.nodes:
        number, noted = node.meta.get("seq_nr", -1), node.meta.get("custom") or {}
        if node.op == "call_function" and noted.get("phase") != "backward" and number >= 0:
            scope_of.setdefault(number, noted.get("scope", ""))
            first_of.setdefault(number, node.name)
    for node in graph.graph.nodes:
        noted, number = node.meta.get("custom") or {}, node.meta.get("seq_nr", -1)
        backward = noted.get("phase") == "backward"
        node.meta["custom"] = {
            "name": node.name,
            "phase": "backward" if backward else "forward",
            "scope": scope_of.get(number, "") if backward else noted.get("scope", ""),
            "mate": first_of.get(number, "") if backward else "",
        }
    return graph


def _batch_norm(x, weight, bias, mean, var, training, momentum, eps):  # type: ignore[no-untyped-def]
    """The op whose schema says that it writes the running mean and variance."""
    if training and mean is not None:
        return BATCH_NORM(x, weight, bias, mean, var, training, momentum, eps)
    return NotImplemented


@contextmanager
def _noting_scopes(module: nn.Module) -> Iterator[None]:
    """While it runs, ops are noted with the module that makes them."""
    open_scopes = [""]

    def enter(path: str) -> None:
        open_scopes.append(path.replace(".", "/"))
        notes.current_meta["custom"] = {"scope": open_scopes[-1]}

    def leave() -> None:
        open_scopes.pop()
        notes.current_meta["custom"] = {"scope": open_scopes[-1]}

    handles = []
    for path, inner in module.named_modules():
        noting = inner.register_forward_pre_hook(lambda m, a, path=path: enter(path), prepend=True)
        handles.append(noting)
        handles.append(inner.register_forward_hook(lambda m, a, o: leave()))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _program(
    graph: fx.Graph,
    given: Sequence[str],
    params: Mapping[str, Any],
    held: Mapping[str, Any],
    optimiser: Optimiser,
    name: str,
) -> TorchProgram:
    places = [n for n in graph.nodes if n.op == "placeholder"]
    words = _told_apart([*params, *held, *given])
    if len(places) != len(words):
        raise ValueError(f"{name!r} takes nested inputs; give it tensors one by one.")
    labels = {place.name: word for place, word in zip(places, words, strict=True)}
    num_state = len(params) + len(held)
    state = {p.name: v for p, v in zip(places, [*params.values(), *held.values()], strict=False)}
    flat = list(next(n for n in graph.nodes if n.op == "output").args[0])
    loss, after, grads = flat[0], flat[1 : 1 + len(held)], flat[1 + len(held) :]
    updates = [
        (place.name, node.name)
        for place, node in zip(places[len(params) : num_state], after, strict=True)
        if isinstance(node, fx.Node) and node is not place
    ]
    _take_notes(graph)
    updates += _add_updates(graph, optimiser, places, grads, params, state, labels)
    _join_groups(places[: len(params)], labels)
    inputs = tuple(p.name for p in places[num_state:])
    labels[loss.name] = "loss"
    return TorchProgram(name, graph, inputs, state, labels, (("loss", loss.name),), tuple(updates))


def _take_notes(graph: fx.Graph) -> None:
    """Scope, phase and mate of each op; mates are named as they were in the first tracing."""
    noted = {node: node.meta.get("custom") or {} for node in graph.nodes}
    now: dict[str, str] = {}
    for node, note in noted.items():
        now.setdefault(note.get("name", ""), node.name)
    for node, note in noted.items():
        node.meta["scope"] = note.get("scope", "")
        node.meta["phase"] = note.get("phase", "forward")
        node.meta["mate"] = now.get(note.get("mate") or "none", "")


def _add_updates(
    graph: fx.Graph,
    optimiser: Optimiser,
    places: Sequence[Node],
    grads: Sequence[Any],
    params: Mapping[str, Any],
    state: dict[str, torch.Tensor],
    labels: dict[str, str],
) -> list[tuple[str, str]]:
    """One op behind the graph for each parameter that has a gradient."""
    found = []
    output = next(n for n in graph.nodes if n.op == "output")
    for place, grad, (word, value) in zip(places, grads, params.items(), strict=False):
        if not isinstance(grad, fx.Node):
            continue
        own = []
        for key, start in optimiser.state_of(value).items():
            with graph.inserting_after(places[-1]):
                held = graph.placeholder(f"{place.name}_{key}")
            held.meta["val"] = start.to("meta")
            state[held.name], labels[held.name] = start, f"{word}.{key}"
            own.append(held)
        with graph.inserting_before(output):
            arguments = (place, grad, *own, *optimiser.settings)
            update = graph.call_function(optimiser.function, arguments)
            metas = [place.meta["val"], *(held.meta["val"] for held in own)]
            update.meta |= {"val": tuple(metas), "phase": "update", "scope": _scope(word)}
            for i, target in enumerate((place, *own)):
                part = graph.call_function(getitem, (update, i))
                part.meta |= {"val": metas[i], "phase": "update", "scope": _scope(word)}
                found.append((target.name, part.name))
    return found


def _scope(word: str) -> str:
    return word.rpartition(".")[0].replace(".", "/")


def _input_names(module: nn.Module, number: int) -> list[str]:
    names = list(inspect.signature(module.forward).parameters)[:number]
    return names + [f"input_{i}" for i in range(len(names), number)]


def _told_apart(words: Sequence[str]) -> list[str]:
    """The words with a number behind those that came before."""
    found: list[str] = []
    for word in words:
        again = sum(word == known.partition("#")[0] for known in found)
        found.append(f"{word}#{again + 1}" if again else word)
    return found


def _target_names(number: int) -> list[str]:
    return ["target"] if number == 1 else [f"target_{i}" for i in range(number)]


def _join_groups(places: Sequence[Node], labels: Mapping[str, str]) -> None:
    """Note the group of each op; parameters that share an op share their group."""
    group_of: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while node in group_of and group_of[node] is not node:
            node = group_of[node]
        return node

    for place in places:
        updates = [user for user in place.users if user.meta.get("phase") == "update"]
        gradients = [maker for update in updates for maker in _makers(update.args[1])]
        for node in (*_first_readers(place), *gradients, *updates):
            group_of.setdefault(node, node)
            group_of[root(node)] = root(place)
    for node in list(group_of):
        node.meta["group"] = f"train {labels[root(node).name]}"


def _first_readers(value: Node) -> Iterator[Node]:
    """The first forward op that reads a value; of a view also the first that reads the view."""
    found = next((user for user in value.users if user.meta.get("phase") == "forward"), None)
    if found is not None:
        yield found
        if viewed(found) is not None:
            yield from _first_readers(found)


def _makers(value: Node) -> Iterator[Node]:
    """The op that makes a value; of a view also the one that makes what is viewed."""
    maker = value.args[0] if value.target is getitem else value
    yield maker
    below = viewed(maker)
    if below is not None:
        yield from _makers(below)
