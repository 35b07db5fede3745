"""Which groups are open: at first sight, after a gesture, and to bring an op into view."""

from collections.abc import Iterable

from placement.core.graph import Graph
from placement.drawing.layout.scopes import scope_tree
from placement.drawing.layout.visible import BUDGET, visible_set

# So many cards are large enough to read when all of them are in sight; before an audience so many.
FIRST_SIGHT, PRESENTED_SIGHT = 36, 16
# Fewer than so many of the first ones are little: single groups are opened then.
FIRST_SIGHT_LEAST = 10


def default_expanded(graph: Graph, most: int = FIRST_SIGHT) -> frozenset[str]:
    """Open groups level by level while few enough nodes show to be read; small models fully.

    No more than `most` show, but where there are more already with all groups closed. Where a whole
    level is too much and little shows yet, its first groups open singly. Constants stay tucked
    away.
    """
    tree = scope_tree(graph)
    least = FIRST_SIGHT_LEAST * most // FIRST_SIGHT
    opened: set[str] = set()
    count = len(tree.groups[0].members)
    level = [0]
    while True:
        inner = [~m for g in level for m in tree.groups[g].members if m < 0]
        level = [g for g in inner if not tree.groups[g].tucked]
        more = sum(len(tree.groups[g].members) - 1 for g in level)
        if not level:
            break
        if count + more <= most:
            opened.update(tree.groups[g].id for g in level)
            count += more
            continue
        for g in level:
            more = len(tree.groups[g].members) - 1
            if count < least and count + more <= most:
                opened.add(tree.groups[g].id)
                count += more
        break
    return frozenset(opened)


def toggled(graph: Graph, expanded: Iterable[str], group: str) -> frozenset[str]:
    """Open groups once a closed one is opened, with all around it, or an open one closed."""
    tree = scope_tree(graph)
    now = frozenset(expanded)
    known = {g.id: g.index for g in tree.groups[1:]}
    if group not in known:
        return now
    if group in now:
        return now - {group}
    return now | {tree.groups[g].id for g in tree.ancestors(known[group])}


def all_groups(graph: Graph) -> frozenset[str]:
    """All groups but those that stay tucked away."""
    return frozenset(g.id for g in scope_tree(graph).groups[1:] if not g.tucked)


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
