"""Blocks from the structure of a graph alone: where it narrows to one op, a block ends.

An op that every path passes is a waist. Between two waists lies either a step of a chain or a
region of branches that part and meet again: a residual unit, an inception block. Each region makes
a block together with the chain of products before it; chains without regions are cut where the
resolution changes. Many blocks in a row are gathered in stages of the same resolution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Path = tuple[str, ...]

MAX_BLOCKS = 20
MAX_RUN = 60  # ops in a region without any waist, before it is cut into runs


@dataclass(frozen=True)
class ScopeNode:
    """What scopes are made of: `label` is the path that names suggest, None where they say nothing.

    `is_product` marks ops with a weight matrix or filter, around which people draw blocks.
    `spatial` is the shape of the first output without batch and channels, `before` the indices of
    the ops that it reads from.
    """

    kind: str
    label: Path | None
    is_product: bool
    spatial: tuple[int, ...]
    before: tuple[int, ...]


def structural_scopes(nodes: Sequence[ScopeNode]) -> list[Path]:
    """A path for every op; nodes are in topological order. Small graphs stay flat."""
    if len(nodes) <= 8:
        return [() for _ in nodes]
    blocks = _blocks(nodes)
    if len(blocks) < 2:
        blocks = _runs(range(len(nodes)))
    names = _named(nodes, blocks)
    paths: list[Path] = [()] * len(nodes)
    for block, name in zip(blocks, names, strict=True):
        for i in block:
            paths[i] = name
    return paths


def _blocks(nodes: Sequence[ScopeNode]) -> list[range]:
    """Consecutive ranges of ops that cover the graph."""
    waists = _waists(nodes)
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
    ranges = [range(a, b) for a, b in pairwise(bounds)]
    return [part for block in ranges for part in _cut(block, nodes)]


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

    Edges from ops that no product feeds (masks, positions) reach everywhere and do not count.
    """
    fed = [False] * len(nodes)
    reach = list(range(len(nodes)))
    for i, node in enumerate(nodes):
        fed[i] = node.is_product or any(fed[j] for j in node.before)
        for j in node.before:
            if fed[j]:
                reach[j] = max(reach[j], i)
    waists, furthest = [], -1
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


def _named(nodes: Sequence[ScopeNode], blocks: Sequence[range]) -> list[Path]:
    if len(blocks) <= MAX_BLOCKS:
        return [(f"block{k + 1}",) for k in range(len(blocks))]
    stages: list[list[int]] = []
    last: tuple[int, ...] | None = None
    for k, block in enumerate(blocks):
        spatial = nodes[block[-1]].spatial
        if last is None or spatial != last:
            stages.append([])
        stages[-1].append(k)
        last = spatial
    if len(stages) < 2 or len(stages) > MAX_BLOCKS:
        size = -(-len(blocks) // MAX_BLOCKS)
        stages = [list(range(k, min(k + size, len(blocks)))) for k in range(0, len(blocks), size)]
    return [
        (f"stage{s + 1}", f"block{n + 1}") if len(stage) > 1 else (f"stage{s + 1}",)
        for s, stage in enumerate(stages)
        for n, _ in enumerate(stage)
    ]
