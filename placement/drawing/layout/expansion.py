"""Which groups are open: at first sight, after a gesture, and to bring an op into view."""

from collections.abc import Iterable, Mapping
from typing import Any

from placement.core.graph import Graph
from placement.drawing.layout.scopes import scope_tree
from placement.drawing.layout.visible import BUDGET, visible_set

# So many cards are large enough to read when all of them are in sight.
FIRST_SIGHT = 36
FIRST_SIGHT_LEAST = 10


def default_expanded(graph: Graph) -> frozenset[str]:
    """Open groups level by level while few enough nodes show to be read; small models fully.

    Where a whole level is too much and little shows yet, its first groups open singly. Constants
    stay tucked away.
    """
    tree = scope_tree(graph)
    opened: set[str] = set()
    count = len(tree.groups[0].members)
    level = [0]
    while True:
        inner = [~m for g in level for m in tree.groups[g].members if m < 0]
        level = [g for g in inner if not tree.groups[g].tucked]
        more = sum(len(tree.groups[g].members) - 1 for g in level)
        if not level:
            break
        if count + more <= FIRST_SIGHT:
            opened.update(tree.groups[g].id for g in level)
            count += more
            continue
        for g in level:
            more = len(tree.groups[g].members) - 1
            if count < FIRST_SIGHT_LEAST and count + more <= FIRST_SIGHT:
                opened.add(tree.groups[g].id)
                count += more
        break
    return frozenset(opened)


def expanded_after(
    graph: Graph, expanded: Iterable[str], event: Mapping[str, Any]
) -> frozenset[str]:
    """Open groups after a `toggle`, `expand_all` or `collapse_all`; other kinds change nothing."""
    tree = scope_tree(graph)
    now = frozenset(expanded)
    kind = event.get("kind")
    if kind == "collapse_all":
        return frozenset()
    if kind == "expand_all":
        return frozenset(g.id for g in tree.groups[1:] if not g.tucked)
    if kind == "toggle":
        known = {g.id: g.index for g in tree.groups[1:]}
        node = str(event.get("node"))
        if node not in known:
            return now
        if node in now:
            return now - {node}
        return now | {tree.groups[g].id for g in tree.ancestors(known[node])}
    return now


def all_visible(graph: Graph, expanded: Iterable[str], op_names: Iterable[str]) -> bool:
    """Whether each of these ops has a node of its own with these groups open."""
    tree = scope_tree(graph)
    seen = visible_set(graph, tree, frozenset(expanded), budget=BUDGET)
    nodes = (seen.node_of_op[graph.index[name]] for name in op_names if name in graph.index)
    return all(seen.members[node] >= 0 for node in nodes)


def reveal(graph: Graph, expanded: Iterable[str], op_names: Iterable[str]) -> frozenset[str]:
    """Open groups with all groups around these ops opened too (for search and the timeline)."""
    tree = scope_tree(graph)
    groups = {
        tree.groups[g].id
        for name in op_names
        if name in graph.index
        for g in tree.ancestors(tree.group_of[graph.index[name]])
    }
    return frozenset(expanded) | groups
