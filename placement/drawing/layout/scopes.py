"""The scope tree: ops grouped into blocks by their slash paths, at most 400 members in each.

Chains of scopes with nothing else in them become one group ("stage1/block2"), a scope around a
single op is left out, and a scope with too many members gets a layer of numbered ranges. Blocks of
one structure that follow each other are a stack, and the constants of a scope are one group.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from placement.core.graph import Graph
from placement.drawing.alike import classes_of
from placement.drawing.layout.drafts import (
    Draft,
    constants_of,
    measure,
    name_numbers,
    simplify,
    split,
    stack,
    tuck_constants,
)
from placement.drawing.memo import remembered

MAX_DEPTH = 24


@dataclass(frozen=True)
class ScopeGroup:
    """A block of ops. Members are op indices, or `~index` of a group (a negative number).

    `shape` is the same number for all groups of one structure whose ops are alike, and `alike`
    counts these in the whole graph, this one included: 12 for one of twelve equal layers. `stack`
    is how many blocks of one structure a stack holds, 0 for other groups. `tucked` groups hold
    constants only.
    """

    index: int
    label: str
    path: str
    parent: int
    depth: int
    members: tuple[int, ...]
    num_ops: int
    alike: int
    shape: int = 0
    stack: int = 0
    tucked: bool = False

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


def ops_inside(graph: Graph, node_ids: Iterable[str]) -> list[str]:
    """Names of the ops that these node ids stand for, in declared order.

    A group stands for all its ops, open or closed, so an edit made while another view was on the
    screen is understood too. Ids that the graph does not have are left out.
    """
    return [graph.ops[i].name for i in members_of(scope_tree(graph), node_ids)]


def members_of(tree: ScopeTree, node_ids: Iterable[str]) -> list[int]:
    """Op indices that node ids stand for ("o3" an op, "s2" a group), in declared order."""
    chosen: set[int] = set()
    for node_id in node_ids:
        kind, number = node_id[:1], node_id[1:]
        if not number.isdecimal() or len(number) > 9:
            continue
        if kind == "s" and int(number) < len(tree.groups):
            chosen.update(tree.ops(int(number)))
        elif kind == "o" and int(number) < len(tree.group_of):
            chosen.add(int(number))
    return sorted(chosen)


@remembered(16, key=lambda graph: graph.fingerprint)
def scope_tree(graph: Graph) -> ScopeTree:
    """The tree of a graph; the same content gives the same ids on every run."""
    root = Draft("", "")
    for index, op in enumerate(graph.ops):
        draft = root
        parts = [part for part in op.scope.split("/") if part]
        if len(parts) > MAX_DEPTH:
            parts = [*parts[: MAX_DEPTH - 1], "/".join(parts[MAX_DEPTH - 1 :])]
        for part in parts:
            if part not in draft.by_name:
                child = Draft(part, f"{draft.path}/{part}" if draft.path else part)
                draft.by_name[part] = child
                draft.members.append(child)
            draft = draft.by_name[part]
        draft.members.append(index)
    kinds = [op.kind for op in graph.ops]
    simplify(root)
    tuck_constants(root, constants_of(graph))
    measure(root, kinds, {})
    stack(root, graph)
    split(root)
    name_numbers(root)
    measure(root, classes_of(graph), {})
    drafted: list[ScopeGroup] = []
    _freeze(root, -1, 0, drafted)
    num_alike = Counter(group.shape for group in drafted)
    groups = [replace(group, alike=num_alike[group.shape]) for group in drafted]
    group_of = [0] * len(graph.ops)
    for group in groups:
        for member in group.members:
            if member >= 0:
                group_of[member] = group.index
    return ScopeTree(tuple(groups), tuple(group_of))


def _freeze(draft: Draft, parent: int, depth: int, into: list[ScopeGroup]) -> int:
    index = len(into)
    placeholder = ScopeGroup(index, "", "", parent, depth, (), 0, 1)
    into.append(placeholder)
    members = tuple(
        ~_freeze(m, index, depth + 1, into) if isinstance(m, Draft) else m for m in draft.members
    )
    into[index] = ScopeGroup(
        index=index,
        label=draft.label,
        path=draft.path,
        parent=parent,
        depth=depth,
        members=members,
        num_ops=draft.num_ops,
        alike=1,
        shape=draft.signature,
        stack=draft.stack,
        tucked=draft.tucked,
    )
    return index
