"""The ways of edges and of queues as SVG paths: straight where level or upright, else curved."""

import math
from collections.abc import Sequence

from placement.drawing.svg import number
from placement.drawing.views import View, ViewEdge, ViewNode

CORNER = 8.0
QUEUE_WIDTH = 2.4
# How far the way of a queue swings out beside nodes that stand above each other.
SWING = 46.0
Point = tuple[float, float]


def points_of(view: View, edge: ViewEdge) -> list[Point]:
    """From the foot of the first node over the waypoints to the head of the second."""
    a, b = view.nodes[edge.start], view.nodes[edge.end]
    return [(a.x, a.y + a.height / 2), *(edge.way or ()), (b.x, b.y - b.height / 2)]


def path_of(points: Sequence[Point]) -> str:
    """The path's commands; corners between level and upright stretches are rounded."""
    commands = [f"M{_at(points[0])}"]
    for k in range(1, len(points)):
        before, here = points[k - 1], points[k]
        after = points[k + 1] if k + 1 < len(points) else None
        level, upright = abs(here[1] - before[1]) < 0.5, abs(here[0] - before[0]) < 0.5
        if not (level or upright):
            bend = (here[1] - before[1]) / 2
            first, second = (before[0], before[1] + bend), (here[0], here[1] - bend)
            commands.append(f"C{_at(first)} {_at(second)} {_at(here)}")
        elif after is not None and abs(after[0 if level else 1] - here[0 if level else 1]) < 0.5:
            commands.append(
                f"L{_at(_towards(here, before))}Q{_at(here)} {_at(_towards(here, after))}"
            )
        else:
            commands.append(f"L{_at(here)}")
    return "".join(commands)


def edge_width(num_bytes: int) -> float:
    """Line width by the logarithm of the bytes: 1 up to a kilobyte, 4 from a gigabyte on."""
    return 1 + 3 * min(1.0, max(0.0, math.log10(max(num_bytes, 1)) - 3) / 6)


def arrow_of(points: Sequence[Point], width: float) -> str:
    """The head of an arrow at the end of the way."""
    (x, y), (_, before) = points[-1], points[-2]
    size = 4 + width * 0.8
    back = y - size * 1.3 if y >= before else y + size * 1.3
    return f"M{_at((x, y))}L{_at((x - size / 1.6, back))}L{_at((x + size / 1.6, back))}Z"


def queue_way(before: ViewNode, after: ViewNode) -> tuple[str, str]:
    """The way from a node to one that waited in a queue behind it, and the head of its arrow.

    From foot to head where the later one is drawn lower, as edges go; else from side to side.
    """
    foot, head = before.y + before.height / 2, after.y - after.height / 2
    if head > foot:
        bend = (head - foot) / 2
        start, end = (before.x, foot), (after.x, head)
        turns = (before.x, foot + bend), (after.x, head - bend)
        heading = (0.0, 1.0)
    else:
        side = 1.0 if after.x >= before.x else -1.0
        # Beside each other the way goes across, one above the other around them.
        across = abs(after.x - before.x) > (before.width + after.width) / 2
        into = -side if across else side
        start = (before.x + side * before.width / 2, before.y)
        end = (after.x + into * after.width / 2, after.y)
        reach = abs(end[0] - start[0]) / 2 if across else SWING
        turns = (start[0] + side * reach, start[1]), (end[0] + into * reach, end[1])
        heading = (-into, 0.0)
    way = f"M{_at(start)}C{_at(turns[0])} {_at(turns[1])} {_at(end)}"
    return way, _head(end, heading, 4 + QUEUE_WIDTH * 0.8)


def _head(tip: Point, heading: Point, size: float) -> str:
    """The head of an arrow that comes in this direction, of length 1."""
    (x, y), (dx, dy) = tip, heading
    back = (x - dx * size * 1.3, y - dy * size * 1.3)
    wings = ((back[0] + s * dy * size / 1.6, back[1] + s * dx * size / 1.6) for s in (1, -1))
    return f"M{_at(tip)}L{'L'.join(map(_at, wings))}Z"


def _towards(corner: Point, end: Point) -> Point:
    """The point of a straight stretch where its rounded corner begins."""
    dx, dy = end[0] - corner[0], end[1] - corner[1]
    length = max(abs(dx), abs(dy))
    share = min(CORNER, length / 2) / length if length else 0.0
    return (corner[0] + dx * share, corner[1] + dy * share)


def _at(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"
