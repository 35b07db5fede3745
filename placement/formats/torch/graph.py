"""From a functional aten graph to the graph people see: ops by module, with phases and sizes.

Sums of gradients and what a forward method does between its modules have no module of their own. A
few of them say how a network hangs together; hundreds hide it, and are put into blocks.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from placement.core.graph import Graph, Op, Tensor
from placement.formats.torch.program import Node, TorchProgram, has_nodes, kind_of, num_bytes
from placement.formats.torch.statements import in_statements
from placement.formats.torch.traffic import Traffic

MAX_ATTRIBUTE_CHARS = 200
MOST_LOOSE = 24
# Ops that multiply matrices; the others do about one operation per element that they make.
_COUNTED = (
    "addmm", "baddbmm", "bmm", "conv", "efficient_attention", "flash_attention", "grouped_mm",
    "gru", "linalg_matmul", "linear", "lstm", "matmul", "mm", "mv", "rnn", "scaled",
)  # fmt: skip


def graph_of(program: TorchProgram) -> Graph:
    """Ops in the order of the program; a weight counts at the first op that reads it."""
    readers, traffic = _readers(program), Traffic(program)
    held, counted = _held_bytes(program, readers), dict[Any, float]()
    ops = tuple(
        _op(node, held.get(node.name, (0, 0)), traffic.of(node), counted)
        for node in program.kernels
    )
    tensors = tuple(_tensors(program, readers, traffic.cached))
    ops = housed(in_statements(ops, program.kernels), tensors)
    return Graph(program.name, ops, tensors)


def param_bytes_of(program: TorchProgram) -> tuple[int, ...]:
    """Bytes of weights by op, in the order of `graph_of`."""
    held = _held_bytes(program, _readers(program))
    return tuple(held.get(node.name, (0, 0))[0] for node in program.kernels)


def _readers(program: TorchProgram) -> dict[str, tuple[str, ...]]:
    """The kernels that read each value, in order."""
    found: dict[str, list[str]] = {}
    for kernel in program.kernels:
        for value in program.reads(kernel):
            found.setdefault(value.name, []).append(kernel.name)
    return {name: tuple(kernels) for name, kernels in found.items()}


def _held_bytes(
    program: TorchProgram, readers: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[int, int]]:
    """Bytes of weights and of caches, each at the first kernel that reads it, or else writes it."""
    found: dict[str, tuple[int, int]] = {}
    caches, writers = set(program.caches), dict(program.updates)
    for name, value in program.state.items():
        writer = program.maker.get(writers.get(name, "")) if name in caches else None
        first = next(iter(readers.get(name, ())), writer.name if writer is not None else "")
        if first:
            stored = program.stored_bytes.get(name, num_bytes(value))
            weights, cached = found.get(first, (0, 0))
            is_cache = name in caches
            found[first] = (weights + stored * (not is_cache), cached + stored * is_cache)
    return found


def _op(node: Node, held: tuple[int, int], moved: float, counted: dict[Any, float]) -> Op:
    param_bytes, state_bytes = held
    return Op(
        name=node.name,
        kind=kind_of(node),
        scope=node.meta.get("scope", ""),
        phase=node.meta.get("phase", "forward"),
        flops=_flops(node, counted),
        param_bytes=param_bytes,
        colocation_group=node.meta.get("group"),
        attributes=tuple(_attributes(node)),
        state_bytes=state_bytes,
        moved_bytes=moved,
    )


def _attributes(node: Node) -> Iterator[tuple[str, str]]:
    """Arguments that are no tensors, by the names of the op's schema; and the op's mate."""
    if node.meta.get("mate"):
        yield "derived from", str(node.meta["mate"])
    schema = getattr(node.target, "_schema", None)
    names = [] if schema is None else [a.name for a in schema.arguments]
    rows = [*zip(names, node.args, strict=False), *node.kwargs.items()]
    for name, value in rows:
        if value is not None and not has_nodes(value):
            yield name, str(value)[:MAX_ATTRIBUTE_CHARS]


def _flops(node: Node, counted: dict[Any, float]) -> float:
    """Multiply and add as two, as the framework counts them; else one per element made.

    `counted` has what was counted before, by op and what it was called with.
    """
    made = node.meta.get("val")
    if kind_of(node).lstrip("_").startswith(_COUNTED):
        args, kwargs = fx.map_arg((node.args, dict(node.kwargs)), lambda n: n.meta.get("val"))
        key = (node.target, str(pytree.tree_map_only(torch.Tensor, _about, (args, kwargs))))
        if key not in counted:
            counted[key] = _counted(node.target, args, kwargs)
        if counted[key]:
            return counted[key]
    parts = made if isinstance(made, list | tuple) else [made]
    return float(sum(p.numel() for p in parts if isinstance(p, torch.Tensor)))


def _about(value: torch.Tensor) -> str:
    return f"{value.dtype} {tuple(value.shape)}"


def _counted(target: Any, args: Any, kwargs: Any) -> float:
    """What the framework counts of an op; nothing is computed, for the tensors are fake.

    Of rows that are multiplied by one of several matrices it counts nothing.
    """
    if "grouped_mm" in str(target):
        return float(2 * args[0].numel() * args[1].shape[-1])
    if "scaled_dot_product_attention" in str(target) and args[0].dim() == 4:
        (*rows, per_key), words, per_value = args[0].shape, args[1].shape[-2], args[2].shape[-1]
        return float(2 * math.prod(rows) * words * (per_key + per_value))
    with suppress(Exception), FlopCounterMode(display=False) as counter:
        target(*args, **kwargs)
    return float(counter.get_total_flops())


def _tensors(
    program: TorchProgram, readers: Mapping[str, tuple[str, ...]], cached: Mapping[str, str]
) -> Iterator[Tensor]:
    """The values that flow; one that lies in a cache takes no room of its own."""
    handed_back = {node for _, node in program.outputs}
    for name in program.inputs:
        read = readers.get(name, ())
        yield _tensor(program, program.nodes[name], None, read, name in handed_back)
    for kernel in program.kernels:
        for value in program.values[kernel.name]:
            read, is_output = readers.get(value.name, ()), value.name in handed_back
            if read or is_output:
                made = _tensor(program, value, kernel.name, read, is_output)
                lies_there = value.name in cached
                yield dataclasses.replace(made, num_bytes=0) if lies_there else made


def _tensor(
    program: TorchProgram,
    node: Node,
    producer: str | None,
    consumers: tuple[str, ...],
    is_output: bool,
) -> Tensor:
    value: Any = node.meta.get("val")
    is_tensor = isinstance(value, torch.Tensor)
    return Tensor(
        name=program.labels.get(node.name, node.name),
        producer=producer,
        consumers=consumers,
        num_bytes=num_bytes(value),
        shape=tuple(int(n) for n in value.shape) if is_tensor else (),
        dtype=str(value.dtype).removeprefix("torch.") if is_tensor else type(value).__name__,
        is_output=is_output,
    )


def housed(ops: Sequence[Op], tensors: Iterable[Tensor]) -> tuple[Op, ...]:
    """The same ops, each in the block of what it reads, or else of what reads it.

    That is the innermost block that has all of these, or the outermost one of the last.
    """
    if sum(not op.scope for op in ops) <= MOST_LOOSE:
        return tuple(ops)
    index = {op.name: i for i, op in enumerate(ops)}
    makers: list[set[int]] = [set() for _ in ops]
    readers: list[set[int]] = [set() for _ in ops]
    for tensor in tensors:
        if tensor.producer is not None:
            maker = index[tensor.producer]
            readers[maker] |= {index[name] for name in tensor.consumers}
            for name in tensor.consumers:
                makers[index[name]].add(maker)
    scopes = [op.scope for op in ops]
    forwards = range(len(ops))
    for order, around in ((forwards, makers), (reversed(forwards), readers)):
        for i in order:
            if not scopes[i]:
                scopes[i] = _block_of([scopes[j] for j in sorted(around[i]) if scopes[j]])
    return tuple(dataclasses.replace(op, scope=s) for op, s in zip(ops, scopes, strict=True))


def _block_of(scopes: Sequence[str]) -> str:
    if not scopes:
        return ""
    paths = [scope.split("/") for scope in scopes]
    shared = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared or paths[-1][:1])
