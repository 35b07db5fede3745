"""From a functional aten graph to the graph people see: ops by module, with phases and sizes.

Sums of gradients and what a forward method does between its modules have no module of their own. A
few of them say how a network hangs together; hundreds hide it, and are put into blocks.
"""

import dataclasses
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

MAX_ATTRIBUTE_CHARS = 200
MOST_LOOSE = 24
# Ops that multiply matrices; the others do about one operation per element that they make.
_COUNTED = (
    "addmm", "baddbmm", "bmm", "conv", "efficient_attention", "flash_attention", "grouped_mm",
    "gru", "linear", "lstm", "matmul", "mm", "mv", "rnn", "scaled",
)  # fmt: skip


def graph_of(program: TorchProgram) -> Graph:
    """Ops in the order of the program; a weight counts at the first op that reads it."""
    readers = _readers(program)
    weight_bytes, counted = _weight_bytes(program, readers), dict[Any, float]()
    ops = tuple(
        _op(program, node, weight_bytes.get(node.name, 0), counted) for node in program.kernels
    )
    tensors = tuple(_tensors(program, readers))
    ops = housed(in_statements(ops, program.kernels), tensors)
    return Graph(program.name, ops, tensors)


def _readers(program: TorchProgram) -> dict[str, tuple[str, ...]]:
    """The kernels that read each value, in order."""
    found: dict[str, list[str]] = {}
    for kernel in program.kernels:
        for value in program.reads(kernel):
            found.setdefault(value.name, []).append(kernel.name)
    return {name: tuple(kernels) for name, kernels in found.items()}


def _weight_bytes(program: TorchProgram, readers: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in program.state.items():
        if readers.get(name):
            first = readers[name][0]
            stored = program.stored_bytes.get(name, num_bytes(value))
            found[first] = found.get(first, 0) + stored
    return found


def _op(program: TorchProgram, node: Node, param_bytes: int, counted: dict[Any, float]) -> Op:
    return Op(
        name=node.name,
        kind=kind_of(node),
        scope=node.meta.get("scope", ""),
        phase=node.meta.get("phase", "forward"),
        flops=_flops(node, counted),
        param_bytes=param_bytes,
        colocation_group=node.meta.get("group"),
        attributes=tuple(_attributes(node)),
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
    with suppress(Exception), FlopCounterMode(display=False) as counter:
        target(*args, **kwargs)
    return float(counter.get_total_flops())


def _tensors(program: TorchProgram, readers: Mapping[str, tuple[str, ...]]) -> Iterator[Tensor]:
    handed_back = {node for _, node in program.outputs}
    for name in program.inputs:
        read = readers.get(name, ())
        yield _tensor(program, program.nodes[name], None, read, name in handed_back)
    for kernel in program.kernels:
        for value in program.values[kernel.name]:
            read, is_output = readers.get(value.name, ()), value.name in handed_back
            if read or is_output:
                yield _tensor(program, value, kernel.name, read, is_output)


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
