"""Source text of segments: one Python function each, over values that segments share.

Nothing of a file enters the text: names are numbers of ours, and functions and constants are looked
up in a table.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from placement.loaders._torch_program import Node, TorchProgram, is_part

# Takes and fills the list of values that segments share.
Function = Callable[[list[Any]], None]


@dataclass
class _Text:
    """Lines under way, and the table of what they name."""

    table: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def named(self, value: Any, letter: str) -> str:
        name = f"{letter}{len(self.table)}"
        self.table[name] = value
        return name


def functions(
    program: TorchProgram, segments: Sequence[Sequence[str]]
) -> tuple[tuple[Function, ...], dict[str, int]]:
    """A function per segment (names of its kernels, in order), and the place of each shared value.

    What no other segment reads is let go as soon as its last reader is done.
    """
    segment_of = {name: i for i, names in enumerate(segments) for name in names}
    shared = _shared(program, segment_of)
    found = [_function(program, names, i, shared) for i, names in enumerate(segments)]
    return tuple(found), shared


def _shared(program: TorchProgram, segment_of: dict[str, int]) -> dict[str, int]:
    """Placeholders, outputs, and values that a segment reads and another makes, numbered."""
    names = [*program.inputs, *program.state]
    handed_back = {n for _, n in (*program.outputs, *program.updates)}
    for kernel in program.kernels:
        for value in program.reads(kernel):
            maker = program.maker.get(value.name)
            if maker is not None and segment_of[maker.name] != segment_of[kernel.name]:
                names.append(value.name)
    names += [n for n in handed_back if n in program.maker]
    return {name: i for i, name in enumerate(dict.fromkeys(names))}


def _function(
    program: TorchProgram, names: Sequence[str], number: int, shared: dict[str, int]
) -> Function:
    text = _Text()
    place = {node.name: i for i, node in enumerate(program.graph.nodes)}
    kernels = [program.nodes[name] for name in names]
    last = {value.name: i for i, k in enumerate(kernels) for value in _used(program, k)}
    here: set[str] = set()
    for i, kernel in enumerate(kernels):
        for value in program.reads(kernel):
            if value.name not in here:
                here.add(value.name)
                text.lines.append(f"x{place[value.name]} = v[{shared[value.name]}]")
        text.lines.append(f"x{place[kernel.name]} = {_call(text, kernel, place)}")
        made = {kernel.name}
        for part in _parts(kernel):
            index = text.named(part.args[1], "c")
            text.lines.append(f"x{place[part.name]} = x{place[part.args[0].name]}[{index}]")
            made.add(part.name)
        here |= made
        text.lines += [f"v[{shared[n]}] = x{place[n]}" for n in sorted(made & shared.keys())]
        over = sorted(n for n in here if last.get(n, i) <= i)
        if over:
            text.lines.append("del " + ", ".join(f"x{place[n]}" for n in over))
            here -= set(over)
    body = "\n    ".join(text.lines or ["pass"])
    table = dict(text.table)
    exec(compile(f"def segment(v):\n    {body}\n", f"<segment {number}>", "exec"), table)
    return table["segment"]  # type: ignore[no-any-return]


def _used(program: TorchProgram, kernel: Node) -> Iterable[Node]:
    """Values that must be there while a kernel is the current one."""
    return (*program.reads(kernel), kernel, *_parts(kernel))


def _parts(kernel: Node) -> list[Node]:
    """Results taken from a kernel, and from these in turn, in order."""
    found: list[Node] = []
    waiting = [kernel]
    while waiting:
        node = waiting.pop(0)
        parts = [user for user in node.users if is_part(user)]
        found += parts
        waiting += parts
    return found


def _call(text: _Text, node: Node, place: dict[str, int]) -> str:
    function = text.named(node.target, "f")
    arguments = [_argument(text, value, place) for value in node.args]
    arguments += [
        f"**{{{text.named(key, 'k')}: {_argument(text, value, place)}}}"
        for key, value in node.kwargs.items()
    ]
    return f"{function}({', '.join(arguments)})"


def _argument(text: _Text, value: Any, place: dict[str, int]) -> str:
    if isinstance(value, fx.Node):
        return f"x{place[value.name]}"
    if isinstance(value, list | tuple) and _has_nodes(value):
        inner = ", ".join(_argument(text, each, place) for each in value)
        return f"[{inner}]"
    if isinstance(value, fx.immutable_collections.immutable_list):
        value = list(value)
    return text.named(value, "c")


def _has_nodes(value: Any) -> bool:
    found: list[Node] = []
    fx.map_arg(value, found.append)
    return bool(found)
