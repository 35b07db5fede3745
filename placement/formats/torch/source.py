"""Source text of segments: one Python function each, over values that segments share.

Nothing of a file enters the text by itself: names are numbers of ours, and how functions and
constants are called is up to `Words`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import fx

from placement.formats.torch.program import Node, TorchProgram, has_nodes, is_part, is_update

# Takes and fills the list of values that segments share.
Function = Callable[[list[Any]], None]


class Words(Protocol):
    """How the text of a segment calls what it does not make itself.

    `keywords` are the arguments by name that a node is called with, `read` is the expression for a
    value of another segment.
    """

    def function(self, node: Node) -> str: ...
    def constant(self, value: Any) -> str: ...
    def keywords(self, node: Node) -> Mapping[str, Any]: ...
    def keyword(self, name: str, text: str) -> str: ...
    def read(self, name: str) -> str: ...


@dataclass(frozen=True)
class Where:
    """The device that a segment makes its constants on, and the functions it calls for others."""

    device: torch.device
    instead: Mapping[Any, Any]


# Ops that write into their first argument, as functions that may be told where to.
_INTO = {torch.ops.aten.index_copy.default: torch.index_copy}
_ON_CPU = Where(torch.device("cpu"), MappingProxyType({}))


@dataclass
class _Table:
    """Everything by its number in a table, which becomes the names that the function sees."""

    shared: Mapping[str, int]
    where: Where
    table: dict[str, Any] = field(default_factory=dict)

    def function(self, node: Node) -> str:
        return self._named(self.where.instead.get(node.target, node.target), "f")

    def constant(self, value: Any) -> str:
        if isinstance(value, torch.device):  # where the graph was captured
            value = self.where.device
        return self._named(value, "c")

    def keywords(self, node: Node) -> Mapping[str, Any]:
        found: Mapping[str, Any] = node.kwargs
        return found

    def keyword(self, name: str, text: str) -> str:
        return f"**{{{self._named(name, 'k')}: {text}}}"

    def read(self, name: str) -> str:
        return f"v[{self.shared[name]}]"

    def _named(self, value: Any, letter: str) -> str:
        name = f"{letter}{len(self.table)}"
        self.table[name] = value
        return name


def functions(
    program: TorchProgram,
    segments: Sequence[Sequence[str]],
    wheres: Sequence[Where] = (),
    *,
    reuse: bool = False,
    in_place: bool = False,
) -> tuple[tuple[Function, ...], dict[str, int]]:
    """A function per segment (names of its kernels, in order), and the place of each shared value.

    What no other segment reads is let go as soon as its last reader is done. `wheres`, by segment,
    says where each runs: on the CPU if nothing is said. With `reuse` an optimiser's update writes
    over what the list holds in the places of its results (None: anew), and with `in_place` what
    writes into a cache does, which may be that cache itself.
    """
    wheres = wheres or [_ON_CPU] * len(segments)
    shared = shared_values(program, segments)
    found = [
        function(program, names, shared, i, wheres[i], reuse=reuse, in_place=in_place)
        for i, names in enumerate(segments)
    ]
    return tuple(found), shared


def shared_values(program: TorchProgram, segments: Sequence[Sequence[str]]) -> dict[str, int]:
    """Placeholders, outputs, and values that a segment reads and another makes, numbered."""
    segment_of = {name: i for i, names in enumerate(segments) for name in names}
    names = [*program.inputs, *program.state]
    handed_back = dict.fromkeys(n for _, n in (*program.outputs, *program.updates))
    for kernel in program.kernels:
        for value in program.reads(kernel):
            maker = program.maker.get(value.name)
            if maker is not None and segment_of[maker.name] != segment_of[kernel.name]:
                names.append(value.name)
    names += [n for n in handed_back if n in program.maker]
    return {name: i for i, name in enumerate(dict.fromkeys(names))}


def function(
    program: TorchProgram,
    names: Sequence[str],
    shared: Mapping[str, int],
    number: int,
    where: Where = _ON_CPU,
    *,
    reuse: bool = False,
    in_place: bool = False,
) -> Function:
    """One of these functions: the segment of this number, of values with these places."""
    words = _Table(shared, where)
    body = "\n    ".join(lines(program, names, shared, words, reuse=reuse, in_place=in_place))
    table = dict(words.table)
    exec(compile(f"def segment(v):\n    {body}\n", f"<segment {number}>", "exec"), table)
    return table["segment"]  # type: ignore[no-any-return]


def lines(
    program: TorchProgram,
    names: Sequence[str],
    shared: Mapping[str, int],
    words: Words,
    *,
    reuse: bool = False,
    in_place: bool = False,
) -> list[str]:
    """The lines of a function of the shared values `v` that runs these kernels, in order."""
    found: list[str] = []
    place = {node.name: i for i, node in enumerate(program.graph.nodes)}
    kernels = [program.nodes[name] for name in names]
    last = {value.name: i for i, k in enumerate(kernels) for value in _used(program, k)}
    here, written = set[str](), written_caches(program) if in_place else {}
    for i, kernel in enumerate(kernels):
        for value in program.reads(kernel):
            if value.name not in here:
                here.add(value.name)
                found.append(f"x{place[value.name]} = {words.read(value.name)}")
        spare = results_of(kernel, shared) if reuse and is_update(kernel) else ()
        into = shared[kernel.name] if kernel.name in written else None
        found.append(f"x{place[kernel.name]} = {_call(words, kernel, place, spare, into)}")
        made = {kernel.name}
        for part in parts_of(kernel):
            index = words.constant(part.args[1])
            found.append(f"x{place[part.name]} = x{place[part.args[0].name]}[{index}]")
            made.add(part.name)
        here |= made
        found += [f"v[{shared[n]}] = x{place[n]}" for n in sorted(made & shared.keys())]
        over = sorted(n for n in here if last.get(n, i) <= i)
        if over:
            found.append("del " + ", ".join(f"x{place[n]}" for n in over))
            here -= set(over)
    return found or ["pass"]


def _used(program: TorchProgram, kernel: Node) -> Iterable[Node]:
    """Values that must be there while a kernel is the current one."""
    return (*program.reads(kernel), kernel, *parts_of(kernel))


def parts_of(kernel: Node) -> list[Node]:
    """Results taken from a kernel, and from these in turn, in order."""
    found: list[Node] = []
    waiting = [kernel]
    while waiting:
        node = waiting.pop(0)
        parts = [user for user in node.users if is_part(user)]
        found += parts
        waiting += parts
    return found


def results_of(update: Node, shared: Mapping[str, int]) -> list[int]:
    """The places of an update's results, in their order."""
    return [shared[part.name] for part in sorted(parts_of(update), key=lambda part: part.args[1])]


def written_caches(program: TorchProgram) -> Mapping[str, str]:
    """By name of what an op makes that writes into a cache, the cache, where nothing else reads it.

    Such an op may as well write into the cache itself.
    """
    return {
        made: held
        for held, made in program.updates
        if held in program.caches
        and program.nodes[made].target in _INTO
        and program.nodes[made].args[0] is program.nodes[held]
        and len(program.nodes[held].users) == 1
    }


def _call(
    words: Words, node: Node, place: dict[str, int], spare: Sequence[int], into: int | None = None
) -> str:
    """The expression of a kernel, whose results are written over those in places of the list."""
    function = words.function(node) if into is None else words.constant(_INTO[node.target])
    arguments = [_argument(words, value, place) for value in node.args]
    arguments += [
        words.keyword(key, _argument(words, value, place))
        for key, value in words.keywords(node).items()
    ]
    if spare:
        arguments.append(f"out=({', '.join(f'v[{slot}]' for slot in spare)},)")
    if into is not None:
        arguments.append(f"out=v[{into}]")
    return f"{function}({', '.join(arguments)})"


def _argument(words: Words, value: Any, place: dict[str, int]) -> str:
    if isinstance(value, fx.Node):
        return f"x{place[value.name]}"
    if isinstance(value, list | tuple) and has_nodes(value):
        inner = ", ".join(_argument(words, each, place) for each in value)
        return f"[{inner}]"
    if isinstance(value, fx.immutable_collections.immutable_list):
        value = list(value)
    return words.constant(value)
