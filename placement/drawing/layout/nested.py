"""Nested layout: every open group is a box laid out by itself, then placed as one item.

An edge that leaves a box runs through a port in the box's border, so it keeps clear of the other
members; all edges of one source share their ports and ways.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from placement.drawing.layout.layered import Drawing, Wire, layered
from placement.drawing.layout.scopes import ScopeTree
from placement.drawing.layout.visible import Visible

# How many times wider than high the picture's place is at a desk, and an open block in it becomes.
DESK, BLOCK = 1.7, 1.2
# What is no higher than this is not folded there, for all of it is in sight and can be read; lower
# than the second height no column need be.
LOW, LOW_BLOCK = (620.0, 400.0), (760.0, 760.0)
HEADER = 30.0
PADDING = 16.0

Point = tuple[float, float]
Leg = tuple[int, Wire]


@dataclass(frozen=True)
class Box:
    """The frame of an open group: its corner and extent."""

    group: int
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Centres of the visible nodes, frames of the open groups, waypoints of the flows."""

    centres: tuple[Point, ...]
    boxes: tuple[Box, ...]
    ways: tuple[tuple[Point, ...] | None, ...]
    width: float
    height: float


@dataclass
class _Scope:
    """One open group: its items ("node", i), ("box", g), ("in", node), ("out", node)."""

    items: dict[tuple[str, int], int] = field(default_factory=dict)
    wires: dict[Wire, None] = field(default_factory=dict)

    def item(self, kind: str, number: int) -> int:
        return self.items.setdefault((kind, number), len(self.items))

    def wire(self, start: int, end: int, source: int) -> Wire:
        wire = Wire(start, end, source)
        self.wires[wire] = None
        return wire


def nested_layout(
    tree: ScopeTree,
    visible: Visible,
    sizes: Sequence[Point],
    titles: dict[int, float],
    *,
    aspect: float = DESK,
    check: Callable[[], object] = lambda: None,
) -> Layout:
    """Lay out the visible nodes; `titles` gives the least width of each open group's header.

    `aspect` is about how many times wider than high the whole may become by folding. In a wide and
    low place what stands in it, blocks too, is folded to be as much wider and lower.
    `check` is called now and then and may raise to end the work.
    """
    scopes = {g: _Scope() for g in sorted(visible.opened)}
    home = [
        tree.group_of[member] if member >= 0 else tree.groups[~member].parent
        for member in visible.members
    ]
    node_at = {member: i for i, member in enumerate(visible.members)}
    for group in sorted(visible.opened):
        for member in tree.groups[group].members:
            if member in node_at:
                scopes[group].item("node", node_at[member])
            elif ~member in visible.opened:
                scopes[group].item("box", ~member)
    legs = [
        None if flow.tucked else _legs(tree, scopes, home, flow.start, flow.end)
        for flow in visible.flows
    ]
    drawings: dict[int, Drawing] = {}
    extents: dict[int, Point] = {}
    for group in sorted(visible.opened, key=lambda g: (-tree.groups[g].depth, g)):
        drawings[group], extents[group] = _draw(
            group, scopes[group], sizes, extents, titles, aspect / DESK, check
        )
    origin = _origins(scopes, drawings, extents)
    centres: list[Point] = [(0.0, 0.0)] * len(visible.members)
    for group, scope in scopes.items():
        x, y = origin[group]
        for (kind, number), item in scope.items.items():
            if kind == "node":
                cx, cy = drawings[group].centres[item]
                centres[number] = (x + cx, y + cy)
    boxes = tuple(
        Box(g, x - (extents[g][0] - drawings[g].width) / 2, y - HEADER, *extents[g])
        for g, (x, y) in sorted(origin.items())
        if g > 0
    )
    ports = {
        group: {item for (kind, _), item in scope.items.items() if kind in ("in", "out")}
        for group, scope in scopes.items()
    }
    ways = tuple(None if leg is None else _way(leg, ports, drawings, origin) for leg in legs)
    width, height = extents[0]
    return Layout(tuple(centres), boxes, ways, width, height)


def _legs(
    tree: ScopeTree, scopes: dict[int, _Scope], home: list[int], start: int, end: int
) -> list[Leg]:
    """Wires of a flow, scope by scope: out of the boxes around its start, into those of its end."""
    inside = {home[end], *tree.ancestors(home[end]), 0}
    out: list[Leg] = []
    group, kind, number = home[start], "node", start
    while group not in inside:
        scope = scopes[group]
        port = scope.item("out", start)
        out.append((group, scope.wire(scope.item(kind, number), port, start)))
        kind, number, group = "box", group, tree.groups[group].parent
    meeting, first = group, (kind, number)
    into: list[Leg] = []
    group, kind, number = home[end], "node", end
    while group != meeting:
        scope = scopes[group]
        port = scope.item("in", start)
        into.append((group, scope.wire(port, scope.item(kind, number), start)))
        kind, number, group = "box", group, tree.groups[group].parent
    scope = scopes[meeting]
    across = scope.wire(scope.item(*first), scope.item(kind, number), start)
    return [*out, (meeting, across), *reversed(into)]


def _draw(
    group: int,
    scope: _Scope,
    sizes: Sequence[Point],
    extents: dict[int, Point],
    titles: dict[int, float],
    wider: float,
    check: Callable[[], object],
) -> tuple[Drawing, Point]:
    measures: list[Point] = []
    for kind, number in scope.items:
        if kind == "node":
            measures.append(sizes[number])
        else:
            measures.append(extents[number] if kind == "box" else (0.0, 0.0))
    above, low = LOW_BLOCK if group else LOW
    drawing = layered(
        measures,
        list(scope.wires),
        top=frozenset(i for (kind, _), i in scope.items.items() if kind == "in"),
        bottom=frozenset(i for (kind, _), i in scope.items.items() if kind == "out"),
        aspect=wider * (BLOCK if group else DESK),
        fold_above=above / wider,
        fold_low=low / wider,
        check=check,
    )
    if group == 0:
        return drawing, (drawing.width, drawing.height)
    width = max(drawing.width, titles.get(group, 0.0)) + 2 * PADDING
    return drawing, (width, drawing.height + HEADER + PADDING)


def _origins(
    scopes: dict[int, _Scope], drawings: dict[int, Drawing], extents: dict[int, Point]
) -> dict[int, Point]:
    """Where each group's own coordinates start; the outermost group's at zero."""
    origin: dict[int, Point] = {0: (0.0, 0.0)}
    todo = [0]
    while todo:
        group = todo.pop()
        x, y = origin[group]
        for (kind, inner), item in scopes[group].items.items():
            if kind == "box":
                cx, cy = drawings[group].centres[item]
                width, height = extents[inner]
                spare = width - 2 * PADDING - drawings[inner].width
                origin[inner] = (
                    x + cx - width / 2 + PADDING + spare / 2,
                    y + cy - height / 2 + HEADER,
                )
                todo.append(inner)
    return origin


def _way(
    legs: list[Leg],
    ports: dict[int, set[int]],
    drawings: dict[int, Drawing],
    origin: dict[int, Point],
) -> tuple[Point, ...] | None:
    """Waypoints over all scopes; None where one of them had no room for the flow.

    A line around a column begins and ends at the port of a box, and not at the box's middle.
    """
    points: list[Point] = []
    for group, wire in legs:
        way = drawings[group].ways.get(wire)
        if way is None:
            return None
        x, y = origin[group]
        if wire.start in ports[group]:
            px, _ = drawings[group].centres[wire.start]
            if _is_level(points[-2:]):
                points[-1] = (x + px, points[-1][1])
            points += [(x + px, y - HEADER), (x + px, y)]
        own = [(x + px, y + py) for px, py in way]
        if points and wire.start not in ports[group] and _is_level(own[:2]):
            own[0] = (points[-1][0], own[0][1])
        points += own
        if wire.end in ports[group]:
            px, _ = drawings[group].centres[wire.end]
            points += [
                (x + px, y + drawings[group].height),
                (x + px, y + drawings[group].height + PADDING),
            ]
    return tuple(points)


def _is_level(stretch: Sequence[Point]) -> bool:
    return len(stretch) == 2 and stretch[0][1] == stretch[1][1]
