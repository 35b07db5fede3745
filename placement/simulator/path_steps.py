"""The steps of a critical path between ops: edges it runs along, and queues it waits in.

A path goes through every kernel of its segments, in the order that the device runs them. From one
kernel to the next it follows data where the later one reads the earlier one; where it does not, the
later one had its inputs and waited for its device (or its tensor for a link) to be free.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span

Edge = tuple[int, int]
Group = Sequence[int]


@dataclass(frozen=True)
class Queue:
    """Op `after` reads nothing of op `before` (indices), but began only when that was through.

    `place` is the device that was busy, or the link as "src->dst" on which another tensor went
    first; empty where data goes through kernels that no op stands for.
    """

    before: int
    after: int
    place: str

    @property
    def title(self) -> str:
        """What is waited for, in words."""
        if not self.place:
            return "handed on by the runtime"
        return f"waits for {self.place.replace('->', ' → ')} to be free"


@dataclass(frozen=True)
class PathSteps:
    """A critical path between ops: the edges (maker, reader) that it runs along, and its queues."""

    edges: frozenset[Edge]
    queues: tuple[Queue, ...]

    def between(self, node_of_op: Sequence[int]) -> "PathSteps":
        """The same between the nodes of a picture that show these ops, each pair of them once.

        Where the path also follows data from one node to another, its queues there are not told.
        """
        edges = {(node_of_op[a], node_of_op[b]) for a, b in self.edges}
        places: dict[Edge, dict[str, None]] = {}
        for queue in self.queues:
            pair = (node_of_op[queue.before], node_of_op[queue.after])
            if pair[0] != pair[1] and pair not in edges:
                places.setdefault(pair, {})[queue.place] = None
        return PathSteps(
            frozenset(pair for pair in edges if pair[0] != pair[1]),
            tuple(Queue(*pair, " or ".join(filter(None, found))) for pair, found in places.items()),
        )


def path_steps(problem: Problem, schedule: Schedule, path: Sequence[Span]) -> PathSteps:
    """Every step of a critical path of this schedule, as indices of source ops."""
    data = _Data(problem)
    edges: set[Edge] = set()
    queues: list[Queue] = []
    for group in _kernels(problem, schedule, path):
        edges |= data.between(group, group)
    for before, after, place in _pairs(problem, schedule, path):
        found = data.between(before, after)
        edges |= found
        # A kernel of the runtime's own does the work of no op that could be shown.
        if before and after and not found and not set(before) & set(after):
            queues.append(Queue(before[-1], after[0], place))
    return PathSteps(frozenset(edges), tuple(queues))


def waits(problem: Problem, schedule: Schedule, path: Sequence[Span]) -> tuple[str, ...]:
    """For each span of a critical path the device or link that it queued for; empty for data."""
    readers: dict[str, set[str]] = {}
    for tensor in problem.kernels.tensors:
        if tensor.producer is not None:
            readers.setdefault(tensor.producer, set()).update(tensor.consumers)

    def queued(before: Span, after: Span) -> bool:
        if before.kind == after.kind == "transfer":
            return True
        if not before.kind == after.kind == "compute":
            return False
        first, then = (schedule.segments[span.segment].kernels for span in (before, after))
        return not any(readers.get(kernel, set()).intersection(then) for kernel in first)

    found = (after.device if queued(before, after) else "" for before, after in pairwise(path))
    return ("", *found) if path else ()


# Ops of what comes first and of what comes next on the path, and where that one queued if it reads
# nothing of the first.
Pair = tuple[Group, Group, str]


def _kernels(problem: Problem, schedule: Schedule, path: Sequence[Span]) -> Iterator[Group]:
    """The ops of every kernel on the path."""
    for span in path:
        if span.kind == "compute":
            yield from _groups(problem, schedule.segments[span.segment].kernels)


def _groups(problem: Problem, kernels: Sequence[str]) -> list[Group]:
    """The ops of kernels in their order; those that no op stands for are left out."""
    found = (problem.sources[problem.kernels.index[kernel]] for kernel in kernels)
    return [ops for ops in found if ops]


def _pairs(problem: Problem, schedule: Schedule, path: Sequence[Span]) -> Iterator[Pair]:
    """What follows what: kernel by kernel inside of segments, and each segment after the last."""
    last = -1
    for i, span in enumerate(path):
        if span.kind != "compute":
            continue
        kernels = schedule.segments[span.segment].kernels
        groups = _groups(problem, kernels)
        for before, after in pairwise(groups):
            yield before, after, span.device
        if groups:
            if last >= 0:
                yield _handed_over(problem, schedule, path[last : i + 1])
            last = i


def _handed_over(problem: Problem, schedule: Schedule, path: Sequence[Span]) -> Pair:
    """From the first segment of this stretch of the path to the last, over what lies between."""
    first, *between, last = path
    before, after = (schedule.segments[span.segment].kernels for span in (first, last))
    sent = [span for span in between if span.kind == "transfer"]
    place = last.device if first.device == last.device else ""
    if any(span.kind == "compute" for span in between):
        place = ""
    elif sent:
        tensor = next(t for t in problem.kernels.tensors if t.name == sent[-1].name)
        after = tuple(kernel for kernel in after if kernel in tensor.consumers)
        if tensor.producer in before:
            before = (tensor.producer,)
        else:
            place = sent[-1].device
    return _together(problem, before), _together(problem, after), place


def _together(problem: Problem, kernels: Sequence[str]) -> Group:
    return [op for group in _groups(problem, kernels) for op in group]


class _Data:
    """Who reads whom among the ops; what a runtime folded away hands on what it reads."""

    def __init__(self, problem: Problem) -> None:
        index = problem.graph.index
        told = {op for sources in problem.sources for op in sources}
        self.folded = frozenset(range(len(problem.graph.ops))) - told
        self.readers: dict[int, set[int]] = {}
        for tensor in problem.graph.tensors:
            if tensor.producer is not None:
                names = self.readers.setdefault(index[tensor.producer], set())
                names.update(index[name] for name in tensor.consumers)

    def between(self, before: Group, after: Group) -> set[Edge]:
        """Edges from one group of ops to another, those over folded ops included."""
        there, makers = set(after), dict[int, list[int]]()
        waiting, seen = list(before), set(before)
        while waiting:
            op = waiting.pop()
            for reader in self.readers.get(op, ()):
                if reader in there or reader in self.folded:
                    makers.setdefault(reader, []).append(op)
                if reader in self.folded and reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)
        return _leading(makers, there)


def _leading(makers: Mapping[int, list[int]], there: set[int]) -> set[Edge]:
    """Of edges, given as the makers of each reader, those on a way that ends in one of these."""
    found: set[Edge] = set()
    waiting = list(there)
    while waiting:
        reader = waiting.pop()
        for maker in makers.get(reader, ()):
            if (maker, reader) not in found:
                found.add((maker, reader))
                waiting.append(maker)
    return found
