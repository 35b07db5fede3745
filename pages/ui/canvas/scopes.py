"""The scope tree: ops grouped into blocks by their slash paths, at most 400 members in each.

Chains of scopes with nothing else in them become one group ("stage1/block2"), a scope around a
single op is left out, and a scope with too many members gets a layer of numbered ranges.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pages.ui.canvas.memo import remembered
from placement.core.graph import Graph

MAX_MEMBERS = 400
MAX_DEPTH = 24


@dataclass(frozen=True)
class ScopeGroup:
    """A block of ops. Members are op indices, or `~index` of a group (a negative number).

    `alike` counts the siblings of the same structure, this one included: 12 for one of twelve
    equal layers.
    """

    index: int
    label: str
    path: str
    parent: int
    depth: int
    members: tuple[int, ...]
    num_ops: int
    alike: int

    @property
    def id(self) -> str:
        """Name of the group towards the page; short, and free of what a file may contain."""
        return f"s{self.index}"


@dataclass(frozen=True)
class ScopeTree:
    """All groups in depth-first order, `groups[0]` being the whole graph; `group_of[op]`."""

    groups: tuple[ScopeGroup, ...]
    group_of: tuple[int, ...]

    def ops(self, index: int) -> Iterator[int]:
        """Op indices inside a group, in declared order within each scope."""
        stack = [~index]
        while stack:
            member = stack.pop()
            if member >= 0:
                yield member
            else:
                stack.extend(reversed(self.groups[~member].members))

    def ancestors(self, index: int) -> Iterator[int]:
        """The group itself and all groups around it, innermost first, the root left out."""
        while index > 0:
            yield index
            index = self.groups[index].parent


@dataclass
class _Draft:
    """A group while the tree is being built; members are op indices or drafts."""

    label: str
    path: str
    members: "list[int | _Draft]" = field(default_factory=list)
    by_name: "dict[str, _Draft]" = field(default_factory=dict)
    num_ops: int = 0
    signature: int = 0


@remembered(16, key=lambda graph: graph.fingerprint)
def scope_tree(graph: Graph) -> ScopeTree:
    """The tree of a graph; the same content gives the same ids on every run."""
    root = _Draft("", "")
    for index, op in enumerate(graph.ops):
        draft = root
        parts = [part for part in op.scope.split("/") if part]
        if len(parts) > MAX_DEPTH:
            parts = [*parts[: MAX_DEPTH - 1], "/".join(parts[MAX_DEPTH - 1 :])]
        for part in parts:
            if part not in draft.by_name:
                child = _Draft(part, f"{draft.path}/{part}" if draft.path else part)
                draft.by_name[part] = child
                draft.members.append(child)
            draft = draft.by_name[part]
        draft.members.append(index)
    _simplify(root)
    known: dict[tuple[object, ...], int] = {}
    kinds = [op.kind for op in graph.ops]
    _measure(root, kinds, known)
    groups: list[ScopeGroup] = []
    _freeze(root, -1, 0, 1, groups)
    group_of = [0] * len(graph.ops)
    for group in groups:
        for member in group.members:
            if member >= 0:
                group_of[member] = group.index
    return ScopeTree(tuple(groups), tuple(group_of))


def _simplify(draft: _Draft) -> None:
    members: list[int | _Draft] = []
    for member in draft.members:
        if isinstance(member, _Draft):
            _simplify(member)
            only = member.members[0] if len(member.members) == 1 else None
            if isinstance(only, _Draft):
                only.label = f"{member.label}/{only.label}"
                member = only
            elif only is not None:
                member = only
        members.append(member)
    while len(members) == 1 and isinstance(members[0], _Draft) and not draft.path:
        members = members[0].members
    draft.members = _chunked(members, draft.path)


def _chunked(members: list[int | _Draft], path: str) -> list[int | _Draft]:
    """Members in a few even ranges, about as many ranges as members in each."""
    if len(members) <= MAX_MEMBERS:
        return members
    size = min(MAX_MEMBERS, math.ceil(math.sqrt(len(members))))
    ranges: list[int | _Draft] = []
    for start in range(0, len(members), size):
        part = members[start : start + size]
        label = f"… {start + 1}–{start + len(part)}"
        ranges.append(_Draft(label, f"{path}/{label}" if path else label, part))
    return _chunked(ranges, path)


def _measure(draft: _Draft, kinds: list[str], known: dict[tuple[object, ...], int]) -> None:
    shape: list[object] = []
    for member in draft.members:
        if isinstance(member, _Draft):
            _measure(member, kinds, known)
            draft.num_ops += member.num_ops
            shape.append(member.signature)
        else:
            draft.num_ops += 1
            shape.append(kinds[member])
    draft.signature = known.setdefault(tuple(shape), len(known))


def _freeze(draft: _Draft, parent: int, depth: int, alike: int, into: list[ScopeGroup]) -> int:
    index = len(into)
    placeholder = ScopeGroup(index, "", "", parent, depth, (), 0, 1)
    into.append(placeholder)
    repeats = Counter(m.signature for m in draft.members if isinstance(m, _Draft))
    members = tuple(
        ~_freeze(m, index, depth + 1, repeats[m.signature], into) if isinstance(m, _Draft) else m
        for m in draft.members
    )
    into[index] = ScopeGroup(
        index, draft.label, draft.path, parent, depth, members, draft.num_ops, alike
    )
    return index
