"""What people know a span of a timeline by: its source ops, and their block or name; no Streamlit.

Files whose ops have only numbers for names are common, and a runtime names its kernels by itself.
Then the ops are called as everywhere (`names.py`).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from placement.core.formatting import counted
from placement.core.graph import Graph
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span
from placement.drawing.names import BETWEEN, names_of
from placement.drawing.wording import shortened

LONGEST_NAME = 60

# Source ops that a span stands for.
OpsOf = Callable[[Span], tuple[str, ...]]


def nothing(span: Span) -> tuple[str, ...]:
    """The `OpsOf` of a timeline whose graph is not the one on the screen."""
    return ()


class Sources(NamedTuple):
    """The graph that spans tell of, where it is the one on the screen, and their source ops."""

    graph: Graph | None = None
    of: OpsOf = nothing


UNKNOWN = Sources()


def ops_of(problem: Problem, schedule: Schedule) -> OpsOf:
    """Source ops by span: those of a segment; of a transfer its maker's and its readers' there."""
    kernels, graph = problem.kernels, problem.graph
    members = {segment.kernels[0]: segment.kernels for segment in schedule.segments}
    device_of = {kernel: s.device for s in schedule.segments for kernel in s.kernels}
    tensors = {tensor.name: tensor for tensor in kernels.tensors}

    def found(span: Span) -> tuple[str, ...]:
        if span.kind == "compute" or span.name in members:
            names: Iterable[str] = members.get(span.name, (span.name,))
        else:
            tensor, there = tensors.get(span.name), span.device.partition("->")[2]
            if tensor is None:
                return ()
            readers = [c for c in tensor.consumers if device_of.get(c) == there]
            names = [*([tensor.producer] if tensor.producer else []), *readers]
        at = sorted(
            {i for n in names if n in kernels.index for i in problem.sources[kernels.index[n]]}
        )
        return tuple(graph.ops[i].name for i in at)

    return found


def name_of(span: Span, ops: Sequence[str], graph: Graph | None = None) -> str:
    """A segment by its ops, a transfer by its tensor; by their blocks if `graph` tells more.

    A segment of several is never called by one of them: who reads that would take the time of all
    for its own. `ops` are the source ops of the span, and `graph` is theirs. A tensor that only has
    its maker's name and a number is that one's output.
    """
    block = "" if graph is None else block_of(graph, ops[:1] if span.kind == "transfer" else ops)
    if block and span.kind == "transfer":
        is_input = any(t.name == span.name for t in graph.inputs) if graph is not None else False
        return shortened(span.name if is_input else f"output of {block}", LONGEST_NAME)
    first = ops[0] if ops and span.kind == "compute" else span.name
    maker, colon, number = span.name.rpartition(":")
    if not block and span.kind == "transfer" and colon and number.isdigit() and maker in ops:
        first = f"output of {maker}"
    if not block and span.kind == "compute" and len(ops) > 1:
        first = f"{counted(len(ops), 'op')}: {from_to(ops, graph)}"
    return shortened(block or first, LONGEST_NAME)


def from_to(ops: Sequence[str], graph: Graph | None = None) -> str:
    """The first and the last of some ops, by their blocks where `graph` tells them.

    What the blocks share stands before both, since others repeat the rest: "bl 0 / b 0 … b 7".
    """
    first, last, around = ops[0], ops[-1], ""
    if graph is not None and first in graph.index and last in graph.index:
        names = names_of(graph)
        one, other = names.block(first), names.block(last)
        pairs = zip(one, other, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if one and one == other:
            return one[-1]
        if len(one) > same and len(other) > same:
            first, last = one[same], other[same]
            # "b.0" says itself that it is in "b".
            outer = [name for name in one[:same] if not first.startswith(name)]
            around = "".join(f"{name}{BETWEEN}" for name in outer)
    return f"{around}{first} … {last}"


def block_of(graph: Graph, ops: Sequence[str]) -> str:
    """What these ops are called where their names in the file say nothing; empty where they do.

    Several are told by the block that they are in, else as "first … last".
    """
    names, known = names_of(graph), [name for name in ops if name in graph.index]
    if not known or not names.is_made(known[0]):
        return ""
    if len(known) == 1:
        return names.of(known[0])
    tops = [block[0] for block in map(names.block, known) if block]
    ends = (tops[0], tops[-1]) if tops else (names.of(known[0]), names.of(known[-1]))
    return names.shared_block(known) or " … ".join(ends)
