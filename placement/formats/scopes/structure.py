"""Blocks from the structure of a graph alone: where it narrows to one op, a block ends.

An op that every path passes is a waist. Between two waists lies either a step of a chain or a
region of branches that part and meet again: a residual unit, an inception block. Each region makes
a block together with the chain of products before it; chains without regions are cut where the
resolution changes. A region that is much of a network is no block of it: two towers that meet late,
or all that a U-Net does below its outermost skip. Its branches are divided in the same way, each
for itself. How blocks are called is said in `naming.py`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

Path = tuple[str, ...]

FLAT = 8  # ops of a graph that needs no blocks
MAX_BLOCKS = 20
MAX_RUN = 60  # ops in a region without any waist, before it is cut into runs
LEAST_BRANCH, LEAST_PRODUCTS = 4, 2  # ops and products of a branch that is worth a block
MUCH = 3  # a region with this part of a network's products is no block of it
MOST_PRODUCTS = 12  # of a region that is one block, whatever its share of the network
MOST_DEPTH = 40  # regions within each other that are divided


@dataclass(frozen=True)
class ScopeNode:
    """What scopes are made of: `label` is the path that names suggest, None where they say nothing.

    `is_product` marks ops with a weight matrix or filter, around which people draw blocks.
    `spatial` is the shape of the first output without batch and channels, `before` the indices of
    the ops that it reads from. `takes` and `gives` name inputs and outputs of the model.
    """

    kind: str
    label: Path | None
    is_product: bool
    spatial: tuple[int, ...]
    before: tuple[int, ...]
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()


class Part(NamedTuple):
    """A block of ops (indices), or one of parts; `is_branch` if it is one of several beside each
    other, `is_loose` if its ops are in no block."""

    ops: tuple[int, ...] = ()
    inside: tuple["Part", ...] = ()
    is_branch: bool = False
    is_loose: bool = False

    def all_ops(self) -> Iterator[int]:
        yield from self.ops
        for part in self.inside:
            yield from part.all_ops()

    def renumbered(self, numbers: Sequence[int]) -> "Part":
        """The same of ops that have other numbers."""
        inside = tuple(part.renumbered(numbers) for part in self.inside)
        return self._replace(ops=tuple(numbers[i] for i in self.ops), inside=inside)


def parts_of(nodes: Sequence[ScopeNode]) -> list[Part]:
    """The blocks and branches of a graph, which cover it; nodes are in topological order."""
    found = _divided(nodes, range(len(nodes)), 0)
    return [Part(tuple(run)) for run in _runs(range(len(nodes)))] if len(found) < 2 else found


def _divided(nodes: Sequence[ScopeNode], ops: Sequence[int], depth: int) -> list[Part]:
    """The parts of some ops, which are divided as if they were all there is."""
    number = {op: i for i, op in enumerate(ops)}
    own = [
        replace(nodes[op], before=tuple(number[j] for j in nodes[op].before if j in number))
        for op in ops
    ]
    waists = _waists(own)
    num_products = sum(node.is_product for node in own)
    found: list[Part] = []
    has_branches = False
    for block in _blocks(own, waists):
        inner = [i for i in block if not waists[i]]
        inner_products = sum(own[i].is_product for i in inner)
        is_much = MUCH * inner_products >= num_products or _is_open(own, inner)
        parts: list[Part] = []
        if depth < MOST_DEPTH and (is_much or inner_products > MOST_PRODUCTS):
            branches = _branches(own, inner)
            divided = [_divided(own, branch, depth + 1) for branch in branches]
            # A single branch that is a block by itself is no news.
            if len(divided) > 1 or any(len(each) > 1 for each in divided):
                parts = _opened(own, block, inner, divided)
        rest = parts if is_much else [Part(inside=tuple(parts))]
        rest = rest if parts else [Part(tuple(run)) for run in _cut(block, own)]
        if has_branches and len(found[-1].ops) < LEAST_BRANCH:
            # What joins branches belongs to what comes next.
            found, rest = found[:-1], _in_one(found[-1], rest)
        has_branches = bool(parts)
        found += rest
    return [part.renumbered(ops) for part in found]


def _is_open(own: Sequence[ScopeNode], inner: Sequence[int]) -> bool:
    """Whether a region's branches begin apart, or end apart."""
    readers = _readers(own, inner)
    begins = [i for i in inner if own[i].is_product and not own[i].before]
    return len(begins) > 1 or sum(not readers[i] for i in inner) > 1


def _opened(
    own: Sequence[ScopeNode],
    block: range,
    inner: Sequence[int],
    divided: Sequence[Sequence[Part]],
) -> list[Part]:
    """A region's branches as parts, between what comes before the region and what joins them.

    One that reads from another is not beside it: its parts come after that.
    """
    branch_of = {i: n for n, parts in enumerate(divided) for part in parts for i in part.all_ops()}
    readers = _readers(own, block)
    behind = {i for i in block if i > inner[-1]}
    for i in reversed(inner):
        if i not in branch_of and readers[i] and readers[i] <= behind:
            behind.add(i)
    before = tuple(i for i in block if i < inner[0])
    loose = tuple(i for i in inner if i not in branch_of and i not in behind)
    first = [Part(before)] if before else []
    last = [Part(tuple(sorted(behind)))] if behind else []
    if len(divided) == 1 and not loose:
        return _with_small_ones([*first, *divided[0], *last])
    found = first
    for n, parts in enumerate(divided):
        reads = {
            branch_of.get(j, n) for part in parts for i in part.all_ops() for j in own[i].before
        }
        if len(divided) == 1 or reads != {n}:
            found += parts
        else:
            whole = parts[0] if len(parts) == 1 else Part(inside=tuple(parts))
            found.append(whole._replace(is_branch=True))
    found += [Part(loose, is_loose=True)] if loose else []
    return found + last


def _in_one(part: Part, parts: Sequence[Part]) -> list[Part]:
    """A block and the first of those that follow it as one, where both are plain."""
    if not parts or not (_is_plain(part) and _is_plain(parts[0])):
        return [part, *parts]
    return [Part(part.ops + parts[0].ops), *parts[1:]]


def _with_small_ones(parts: Sequence[Part]) -> list[Part]:
    """Blocks in a row, those of few ops together with what follows them."""
    found: list[Part] = []
    for part in reversed(parts):
        is_small = len(part.ops) < LEAST_BRANCH
        found = _in_one(part, found) if is_small else [part, *found]
    return found


def _is_plain(part: Part) -> bool:
    return not (part.inside or part.is_branch or part.is_loose)


def _readers(own: Sequence[ScopeNode], among: Sequence[int]) -> dict[int, set[int]]:
    """Which ops read each of some ops."""
    readers: dict[int, set[int]] = {i: set() for i in among}
    for i, node in enumerate(own):
        for j in node.before:
            if j in readers:
                readers[j].add(i)
    return readers


def _branches(own: Sequence[ScopeNode], inner: Sequence[int]) -> list[list[int]]:
    """Branches of a region that are worth a block: all that leads to one op, and nowhere else.

    An op belongs to the branch of its readers where these belong to one; else it ends its own.
    """
    end = dict[int, int]()
    readers = _readers(own, inner)
    for i in reversed(inner):
        ends = {end.get(j, -1) for j in readers[i]}
        end[i] = ends.pop() if len(ends) == 1 and -1 not in ends else i
    branches: dict[int, list[int]] = {}
    for i in inner:
        branches.setdefault(end[i], []).append(i)
    return [
        branch
        for branch in branches.values()
        if LEAST_BRANCH <= len(branch) < len(own)
        and sum(own[i].is_product for i in branch) >= LEAST_PRODUCTS
    ]


def _blocks(nodes: Sequence[ScopeNode], waists: Sequence[bool]) -> list[range]:
    """Consecutive ranges of ops that cover the graph."""
    starts = [0]
    in_region = False
    has_region = has_product = False
    for i, node in enumerate(nodes):
        region = not waists[i] or (in_region and len(node.before) > 1)
        opens = region and not in_region
        if opens and has_region:
            starts.append(_start_of(i, starts[-1], nodes, waists))
            has_product = any(nodes[j].is_product for j in range(starts[-1], i))
        elif waists[i] and node.is_product and not in_region:
            changed = i > 0 and nodes[i].spatial != nodes[starts[-1]].spatial
            if has_region or (has_product and changed):
                starts.append(i)
                has_region = has_product = False
        has_region = (has_region and starts[-1] != i) or region
        has_product |= node.is_product
        in_region = not waists[i]
    bounds = [*dict.fromkeys(starts), len(nodes)]
    return [range(a, b) for a, b in pairwise(bounds)]


def _start_of(i: int, low: int, nodes: Sequence[ScopeNode], waists: Sequence[bool]) -> int:
    """Where the block of a region that opens at op i begins: behind the last block's tail.

    Activations and pools behind a join still belong to that join.
    """
    j = i
    while j > low + 1 and waists[j - 1] and len(nodes[j - 1].before) <= 1:
        j -= 1
    products = [k for k in range(j, i) if nodes[k].is_product]
    return products[0] if products else i


def _waists(nodes: Sequence[ScopeNode]) -> list[bool]:
    """Whether every path passes the op: no edge jumps over it in topological order.

    Edges from ops that no product feeds (masks, positions) reach everywhere and do not count; nor
    do looked up tables feed anything. Where data comes in at several products, or goes out at
    several ops, no op between these is on all paths.
    """
    fed = [False] * len(nodes)
    reach = list(range(len(nodes)))
    read = [False] * len(nodes)
    sources = []
    for i, node in enumerate(nodes):
        is_fed = any(fed[j] for j in node.before)
        begins = node.is_product and node.kind != "Gather"
        if begins and not is_fed:
            sources.append(i)
        fed[i] = begins or is_fed
        for j in node.before:
            read[j] = True
            if fed[j]:
                reach[j] = max(reach[j], i)
    sinks = [i for i in range(len(nodes)) if fed[i] and not read[i]]
    for i in sinks[:-1]:
        reach[i] = sinks[-1] + 1
    waists, furthest = [], sources[-1] if len(sources) > 1 else -1
    for i in range(len(nodes)):
        waists.append(furthest <= i)
        furthest = max(furthest, reach[i])
    return waists


def _cut(block: range, nodes: Sequence[ScopeNode]) -> list[range]:
    """The block, or where it is long and has no waist inside, runs of it."""
    if len(block) <= MAX_RUN or len(block) * 4 < len(nodes):
        return [block]
    return _runs(block)


def _runs(block: range) -> list[range]:
    count = min(MAX_BLOCKS, max(2, len(block) // MAX_RUN + 1))
    marks = [block.start + len(block) * k // count for k in range(count + 1)]
    return [range(a, b) for a, b in pairwise(marks) if a < b]
