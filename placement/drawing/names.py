"""What people call an op: its own name, or where that is a number its block, type and place there.

Files name ops by counters as often as not (`n255`, `node_conv2d_21`, `add_7`). Then "layer 4 /
self_attn / q_proj" says what one has to do with, and "stage 2 / block 3 / conv 1" where: by the
module that the op belongs to, or, in a graph that tells of none, by the blocks between the points
that all data passes. Names in files stay what they are.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from placement.core.graph import Graph, Op, topological_order
from placement.drawing.memo import remembered

BETWEEN = " / "
# A counter, perhaps with a letter or a word that says nothing of its own.
_COUNTER = re.compile(r"(?i)(?:[a-z]|op|node|id|val|tmp|layer|task|unnamed|)[_.:-]?\d+")
_NUMBER = re.compile(r"[_.]?\d+$")
# Where a word begins inside of a type: BatchNormalization, conv2d, _scaled_dot_product.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*[a-z]?|\d+")
# A number, or the first and last one of a stack (layout/drafts.py).
_RANGE = re.compile(r"\d+(?:–\d+)?")
_PLURAL = re.compile(r"(?i)(layer|block|stage|expert|head|group|unit|module|cell)s")
LEAST_OPS = 2
# Ops of a module that one of them stands for.
MOST_BESIDE = 3
NEARLY_ALL = 0.8


@dataclass(frozen=True)
class Names:
    """What each op is called, and the block that it belongs to, as people say both."""

    graph: Graph
    shown: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return dict(zip((op.name for op in self.graph.ops), self.shown, strict=True))

    def of(self, op: str) -> str:
        """What an op is called; one that the graph does not have by the name that it was given."""
        return self._by_name.get(op, op)

    def listed(self, ops: Iterable[str]) -> list[str]:
        return [self.of(op) for op in ops]

    def is_made(self, op: str) -> bool:
        """Whether an op is called otherwise than in its file."""
        return self.of(op) != op

    def block(self, op: str) -> tuple[str, ...]:
        """The block of an op, from the outermost inwards."""
        return self.blocks[self.graph.index[op]]

    def shared_block(self, ops: Iterable[str]) -> str:
        """The block that some ops have in common; empty where they have none."""
        return BETWEEN.join(_shared([self.block(op) for op in ops]))


@remembered(8, key=lambda graph: graph.fingerprint)
def names_of(graph: Graph) -> Names:
    """What the ops of a graph are called; each by a name of its own, the same on every run.

    Of a graph whose ops are all of one type and in no module nothing more can be said.
    """
    kept = [not _says_nothing(op) for op in graph.ops]
    if len({op.kind for op in graph.ops}) == 1 and not any(op.scope for op in graph.ops):
        kept = [True] * len(kept)
    blocks = _blocks(graph, kept)
    around = {block[:depth] for block in blocks for depth in range(len(block))}
    taken = {op.name for op, keep in zip(graph.ops, kept, strict=True) if keep}
    shown = [op.name for op in graph.ops]
    for block, members in _by_block(blocks, kept).items():
        for i, called in _called(graph, members, is_inner=bool(block) and block not in around):
            name = BETWEEN.join((*block, called)) if called else BETWEEN.join(block)
            shown[i] = _free(name, taken)
            taken.add(shown[i])
    return Names(graph, tuple(shown), tuple(blocks))


def _says_nothing(op: Op) -> bool:
    """Whether a name is a counter, or the op's type with one."""
    if _COUNTER.fullmatch(op.name):
        return True
    bare = op.name.removeprefix("node_")
    if bare != op.name and _NUMBER.search(bare):
        return True
    said, of_type = _NUMBER.sub("", bare), op.kind.rpartition(".")[2] or op.kind
    # "conv1" is what people call a layer; "conv_1" and "conv2d_1" are what exporters count.
    is_counted = said == bare or bare[len(said)] in "_."
    same = said.casefold().replace("_", "") == of_type.casefold().replace("_", "")
    return is_counted and (same or said.casefold() in op.kind.casefold().split("."))


def _by_block(
    blocks: Sequence[tuple[str, ...]], kept: Sequence[bool]
) -> dict[tuple[str, ...], list[int]]:
    """Ops that need a name, by their block, in declared order."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, block in enumerate(blocks):
        if not kept[i]:
            found[block].append(i)
    return found


def _called(graph: Graph, members: Sequence[int], *, is_inner: bool) -> Iterator[tuple[int, str]]:
    """Each op of a block by its type, with a number where the block has several of them.

    The only one with weights in a small block without others inside is that block: "q_proj", not
    "q_proj / linear".
    """
    words = {i: _type_words(graph.ops[i].kind) for i in members}
    many = Counter(words.values())
    seen: Counter[str] = Counter()
    weighted = [i for i in members if graph.ops[i].param_bytes]
    for i in members:
        seen[words[i]] += 1
        is_module = is_inner and weighted == [i] and len(members) <= MOST_BESIDE
        number = f" {seen[words[i]]}" if many[words[i]] > 1 else ""
        yield i, "" if is_module else f"{words[i]}{number}"


def _type_words(kind: str) -> str:
    """A type in words: "BatchNormalization" is "batch normalization"."""
    last = next((part for part in reversed(kind.split(".")) if part not in ("default", "")), kind)
    return " ".join(_WORDS.findall(last)).lower() or kind


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number where another op has it."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free


def _blocks(graph: Graph, kept: Sequence[bool]) -> list[tuple[str, ...]]:
    """The block of each op in words."""
    if any(op.scope for op in graph.ops):
        return _of_modules(graph)
    return [()] * len(kept) if all(kept) else _of_structure(graph)


def _of_modules(graph: Graph) -> list[tuple[str, ...]]:
    """By the paths of modules in words, without what nearly all of them begin with."""
    paths = [tuple(part for part in op.scope.split("/") if part) for op in graph.ops]
    while around := _around(paths):
        paths = [path[1:] if path[:1] == around and path[1:] else path for path in paths]
    return [in_words(path) for path in paths]


def _around(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The module around nearly all that has others inside; not what only a number follows."""
    inner = [path for path in paths if len(path) > 1]
    tops = Counter(path[:1] for path in inner)
    top = max(tops, key=lambda each: tops[each], default=())
    own = {path[1] for path in inner if path[:1] == top}
    others = {path[0] for path in paths if path and path[:1] != top}
    is_most = tops[top] >= NEARLY_ALL * sum(map(bool, paths))
    can_go = own.isdisjoint(others | set(top)) and not any(map(_RANGE.fullmatch, own))
    return top if top and is_most and can_go else ()


def in_words(path: Sequence[str]) -> tuple[str, ...]:
    """The parts of a module's path with numbers beside the words that they belong to.

    "layers/4/attn" is "layer 4", "attn", and "stage1/0" is "stage1.0".
    """
    words: list[str] = []
    for part in path:
        if not words or not _RANGE.fullmatch(part):
            words.append(part)
        elif words[-1][-1:].isdecimal():
            words[-1] = f"{words[-1]}.{part}"
        else:
            plural = _PLURAL.fullmatch(words[-1]) if part.isdecimal() else None
            words[-1] = f"{plural[1] if plural else words[-1]} {part}"
    return tuple(words)


def _shared(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What several paths begin with."""
    if not paths:
        return ()
    first, last = min(paths), max(paths)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return first[:same]


def _of_structure(graph: Graph) -> list[tuple[str, ...]]:
    """By what lies between two points that all data passes, where there is more than one way.

    Blocks that follow each other and give values of one shape are a stage, where any stage has
    several.
    """
    runs = [run for run in _between_narrows(graph) if len(run) >= LEAST_OPS]
    shapes = {t.producer: t.shape for t in graph.tensors}
    stages = [
        list(stage)
        for _, stage in groupby(runs, key=lambda run: shapes.get(graph.ops[run[-1]].name))
    ]
    has_stages = len(stages) > 1 and any(len(stage) > 1 for stage in stages)
    blocks: list[tuple[str, ...]] = [()] * len(graph.ops)
    number = 0
    for s, stage in enumerate(stages, 1):
        for b, run in enumerate(stage, 1):
            number += 1
            called = (f"stage {s}", f"block {b}") if has_stages else (f"block {number}",)
            for i in run:
                blocks[i] = called
    return blocks


def _between_narrows(graph: Graph) -> Iterator[list[int]]:
    """Ops between two that every way through the graph passes, the later one included."""
    order = topological_order(len(graph.ops), [list(after) for after in graph.successors])
    assert order is not None, "graphs are checked to be acyclic where they are made"
    place = {i: n for n, i in enumerate(order)}
    run: list[int] = []
    furthest = 0
    for n, i in enumerate(order):
        run.append(i)
        if furthest <= n:
            yield run
            run = []
        furthest = max([furthest, *(place[j] for j in graph.successors[i])])
