"""What each op of a program reads and writes in memory, in bytes.

A view (a reshape, transpose, slice, expansion or split that copies nothing) moves nothing; what
reads it reads the elements that are there, each once however often it is repeated. An op that picks
rows of a table reads those rows. One that writes into a cache writes its part and reads no more of
it. Whether an op that may copy does is tried on tensors without content.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import fx

from placement.formats.torch.functional import viewed
from placement.formats.torch.program import Node, TorchProgram, has_nodes, is_part, kind_of

# Ops that read as much of their first argument as they make.
_PICK = frozenset({"embedding", "gather", "index", "index_select", "take", "take_along_dim"})
# Ops that make their first argument with a part of it, or all, overwritten by another argument.
_WRITE = {
    "copy": 1, "index_copy": 3, "index_put": 2, "scatter": 3, "select_scatter": 1,
    "slice_scatter": 1,
}  # fmt: skip
_GROUPED = ("grouped_mm",)
# A view whose schema says nothing of it.
_UNCHECKED = "_unsafe_view"


class Traffic:
    """Bytes that the kernels of a program move; what is tried once is not tried again."""

    def __init__(self, program: TorchProgram) -> None:
        self._program = program
        self._tried: dict[Any, bool] = {}
        self.cached = self._cached_values()

    def of(self, kernel: Node) -> float:
        """Bytes that a kernel reads and writes."""
        if self.is_view(kernel):
            return 0.0
        written = sum(_bytes(value) for value in _values(kernel.meta.get("val")))
        at = self.written_argument(kernel)
        if at is not None and kernel.args[0].name in self.cached:
            part = self._read(kernel.args[at])
            others = (v for v in self._program.reads(kernel) if v is not kernel.args[0])
            return part + sum(self._read(value) for value in others)
        read = {value.name: self._read(value) for value in self._program.reads(kernel)}
        first = kernel.args[0] if kernel.args else None
        if isinstance(first, fx.Node) and kind_of(kernel) in _PICK:
            read[first.name] = min(read[first.name], written)
        if _is_grouped(kernel):
            read[kernel.args[1].name] *= _share_of_groups(kernel)
        return float(sum(read.values()) + written)

    def is_view(self, kernel: Node) -> bool:
        """Whether all that a kernel makes lies in the memory of what it reads."""
        if kind_of(kernel) == _UNCHECKED:
            return True
        if not isinstance(viewed(kernel), fx.Node):
            return False
        arguments = fx.map_arg((kernel.args, dict(kernel.kwargs)), lambda n: n.meta.get("val"))
        key = (kernel.target, str(_described(arguments)))
        if key not in self._tried:
            self._tried[key] = _shares_memory(kernel, arguments)
        return self._tried[key]

    def _cached_values(self) -> Mapping[str, str]:
        """By name of a value the cache (placeholder) whose memory it lies in.

        A cache itself, views of it, and what writing into one of these makes: the state is what is
        written to when the step is over, so that nothing has to be copied for it.
        """
        found = {name: name for name in self._program.caches}
        for node in self._program.graph.nodes if found else ():
            if node.op != "call_function" or not node.args or not isinstance(node.args[0], fx.Node):
                continue
            base = node.args[0].name
            is_same = is_part(node) or self.written_argument(node) is not None
            if base in found and (is_same or self.is_view(node)):
                found[node.name] = found[base]
        return found

    def written_argument(self, kernel: Node) -> int | None:
        """Which argument an op writes over a part of its first one; None where it does not."""
        at = _WRITE.get(kind_of(kernel))
        is_there = at is not None and len(kernel.args) > at
        return at if is_there and isinstance(kernel.args[at or 0], fx.Node) else None

    def _read(self, value: Node) -> float:
        """Bytes of a value that is read; weights that are stored smaller count as they are."""
        num_bytes, root = _bytes(value.meta.get("val")), self.root(value)
        stored = self._program.stored_bytes.get(root.name)
        whole = root.meta.get("val") if stored is not None else None
        if stored is None or root.name in self._program.caches or not _bytes(whole):
            return num_bytes
        return num_bytes * stored / _bytes(whole)

    def root(self, value: Node) -> Node:
        """The value whose memory a value lies in."""
        while value.op == "call_function":
            base = value.args[0] if kind_of(value) == _UNCHECKED else viewed(value)
            if not isinstance(base, fx.Node) or not (is_part(value) or self.is_view(value)):
                break
            value = base
        return value


def _values(made: Any) -> Iterator[Any]:
    yield from made if isinstance(made, list | tuple) else (made,)


def _bytes(value: Any) -> float:
    """Bytes of the elements of a tensor that lie apart: a repeated one counts once."""
    if isinstance(value, list | tuple):
        return sum(_bytes(each) for each in value)
    if not isinstance(value, torch.Tensor):
        return 0.0
    number = 1
    for size, stride in zip(value.shape, value.stride(), strict=True):
        number *= int(size) if stride or not size else 1
    return float(number * value.element_size())


def _is_grouped(kernel: Node) -> bool:
    return any(word in kind_of(kernel) for word in _GROUPED) and len(kernel.args) > 1


def _share_of_groups(kernel: Node) -> float:
    """The share of the matrices of several groups that rows need, if each is of another group."""
    rows, groups = kernel.args[0].meta.get("val"), kernel.args[1].meta.get("val")
    if rows is None or groups is None or groups.dim() < 3:
        return 1.0
    return float(min(1.0, rows.shape[0] / max(1, groups.shape[0])))


def _described(value: Any) -> Any:
    """Types, shapes and strides in the place of tensors."""
    if isinstance(value, torch.Tensor):
        return (str(value.dtype), tuple(value.shape), tuple(value.stride()))
    if isinstance(value, Mapping):
        return {name: _described(each) for name, each in value.items()}
    return [_described(each) for each in value] if isinstance(value, list | tuple) else value


def _shares_memory(kernel: Node, arguments: Any) -> bool:
    """Whether an op gives views of these arguments, tried on tensors without content."""
    empty = torch.utils._pytree.tree_map_only(torch.Tensor, _empty, arguments)
    args, kwargs = empty
    given = {_memory(v) for v in torch.utils._pytree.tree_leaves(empty) if _is_tensor(v)}
    kwargs = {k: ("meta" if isinstance(v, torch.device) else v) for k, v in kwargs.items()}
    try:
        made = kernel.target(*args, **kwargs)
    except (RuntimeError, NotImplementedError, TypeError):
        return not has_nodes(kernel.args[1:])
    return all(_memory(v) in given for v in torch.utils._pytree.tree_leaves(made) if _is_tensor(v))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _empty(value: torch.Tensor) -> torch.Tensor:
    shape, stride = [int(n) for n in value.shape], [int(n) for n in value.stride()]
    return torch.empty_strided(shape, stride, dtype=value.dtype, device="meta")


def _memory(value: torch.Tensor) -> int:
    return int(value.untyped_storage()._cdata)
