"""Scopes: the slash path of blocks that each op belongs to, from whatever a file tells.

First choice is what people wrote, names of nodes; then names of weights, which exporters keep when
they number the nodes ("inception_3a/1x1_b_0" on node n12); then the structure of the graph. Names
are only believed where they fit the graph: groups that wait for each other in a circle are no
blocks, and neither are hundreds of them.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from placement.formats.scopes.inherit import inherit
from placement.formats.scopes.labels import tidy
from placement.formats.scopes.structure import ScopeNode, structural_scopes

MAX_TOP_GROUPS = 40
MAX_IN_CIRCLES = 0.2  # of all ops


def scopes(nodes: Sequence[ScopeNode]) -> list[str]:
    """One slash path per op, empty for the top; nodes are in topological order."""
    labels = tidy([node.label for node in nodes])
    found: list[tuple[str, ...]] | None = None
    if sum(label is not None for label in labels) > 0:
        found = inherit(nodes, labels)
        if not _fits(nodes, found):
            found = None
    if found is None:
        found = structural_scopes(nodes)
    return ["/".join(path) for path in tidy_paths(found)]


def tidy_paths(paths: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Without levels that have a single child and no ops of their own; the telling name stays."""
    children: dict[tuple[str, ...], set[str]] = {}
    own = set(paths)
    for path in own:
        for depth in range(len(path)):
            children.setdefault(path[:depth], set()).add(path[depth])
    leaves = {path for path in own if len(path) == 1 and len(children.get(path, ())) == 1}
    renamed: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}
    holder: dict[tuple[str, ...], tuple[str, ...]] = {}
    prefixes = {path[:depth] for path in own for depth in range(1, len(path) + 1)}
    for _, level in groupby(sorted(prefixes, key=lambda p: (len(p), p)), key=len):
        wanted = {}
        for path in level:
            parent = path[:-1]
            above = renamed[parent]
            only = len(children[parent]) == 1 and (parent not in own or parent in leaves)
            if only and parent:
                wanted[path] = (*above[:-1], max(above[-1], path[-1], key=_letters))
            else:
                wanted[path] = (*above, path[-1])
        number = Counter(wanted.values())
        for path, name in wanted.items():
            # Blocks that all have one part of the same name would become one: both names stay.
            if number[name] > 1 or holder.get(name, path[:-1]) != path[:-1]:
                name = (*name[:-1], f"{renamed[path[:-1]][-1]}.{path[-1]}")
            renamed[path] = name
            holder[name] = path
    # A parent with ops of its own takes the name that it and its only child agreed on.
    for path in sorted(leaves):
        child = (*path, next(iter(children[path])))
        renamed[path] = renamed[child]
    return [renamed[path] for path in paths]


def _letters(name: str) -> int:
    """Length of the longest run of letters."""
    return max(map(len, "".join(c if c.isalpha() else " " for c in name).split()), default=0)


def _fits(nodes: Sequence[ScopeNode], found: Sequence[tuple[str, ...]]) -> bool:
    tops = [path[0] if path else "" for path in found]
    groups = sorted(set(tops) - {""})
    if not groups or (len(groups) > MAX_TOP_GROUPS and len(nodes) > 2 * MAX_TOP_GROUPS):
        return False
    if len(groups) == 1 and len(nodes) > MAX_TOP_GROUPS:
        return False
    in_circles = _circles(nodes, tops)
    return in_circles <= MAX_IN_CIRCLES * len(nodes)


def _circles(nodes: Sequence[ScopeNode], tops: Sequence[str]) -> int:
    """Number of ops in groups that, directly or not, both feed and read another group."""
    after: dict[str, set[str]] = {top: set() for top in tops}
    for i, node in enumerate(nodes):
        for j in node.before:
            if tops[i] != tops[j] and tops[i] and tops[j]:
                after[tops[j]].add(tops[i])
    circular = {top for top in after if _is_in_circle(top, after)}
    return sum(top in circular for top in tops)


def _is_in_circle(start: str, after: dict[str, set[str]]) -> bool:
    """Whether one gets back to a group by way of those that read from it."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = after[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return start in found
