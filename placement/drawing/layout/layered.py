"""Layered layout, top to bottom, in near-linear time (after Sugiyama, Tagawa and Toda, 1981).

Layers by longest path, long edges through shared dummy points, order within layers by barycentres,
positions by isotonic regression, and long narrow drawings folded into columns.
Knows only sizes and edges: nothing of devices, so a placement never moves a box.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from placement.core.graph import topological_order
from placement.drawing.layout.folding import fold
from placement.drawing.layout.ordering import ordered_layers
from placement.drawing.layout.straightening import horizontal_positions

NODE_GAP = 22.0
DUMMY_GAP = 12.0
LAYER_GAP = 30.0
MAX_DUMMIES = 4000

Point = tuple[float, float]


@dataclass(frozen=True)
class Wire:
    """An edge between two items of one scope; wires with one `source` share their way."""

    start: int
    end: int
    source: int


@dataclass(frozen=True)
class Drawing:
    """Centres of items, waypoints of wires (None: no way was found worth drawing), and extent."""

    centres: tuple[Point, ...]
    ways: dict[Wire, tuple[Point, ...] | None]
    width: float
    height: float


@dataclass
class Grid:
    """Layers of cells: items first (cell = item index), then dummies; arcs join next layers."""

    layer_of: list[int]
    width_of: list[float]
    arcs: list[tuple[int, int]] = field(default_factory=list)

    def add_dummy(self, layer: int) -> int:
        self.layer_of.append(layer)
        self.width_of.append(0.0)
        return len(self.layer_of) - 1


def layered(
    sizes: Sequence[Point],
    wires: Sequence[Wire],
    *,
    top: frozenset[int] = frozenset(),
    bottom: frozenset[int] = frozenset(),
    aspect: float = 1.6,
    fold_above: float = 900.0,
    fold_low: float = 0.0,
    check: Callable[[], object] = lambda: None,
) -> Drawing:
    """Place items of the given (width, height) and lead the wires between them.

    Items are listed in the order a tie falls back to. Cycles are tolerated: wires against the
    order are led upwards. Items in `top` and `bottom` stay on the first and last layer.
    """
    if not sizes:
        return Drawing((), {}, 0.0, 0.0)
    layer_of = _layers(len(sizes), wires, top, bottom)
    grid = Grid(list(layer_of), [width for width, _ in sizes])
    cells_of = _lead(grid, wires)
    num_layers = max(grid.layer_of) + 1
    layers = ordered_layers(grid.layer_of, grid.arcs, num_layers, check)
    half = [w / 2 + (NODE_GAP if w else DUMMY_GAP) / 2 for w in grid.width_of]
    check()
    xs = horizontal_positions(layers, half, grid.arcs, num_real=len(sizes))
    check()
    heights = [max((sizes[c][1] for c in layer if c < len(sizes)), default=0.0) for layer in layers]
    folded = fold(
        *(layers, xs, half, heights, grid.arcs),
        gap=LAYER_GAP,
        aspect=aspect,
        above=fold_above,
        low=fold_low,
    )
    centres = tuple((folded.xs[i], folded.middle[folded.row_of[i]]) for i in range(len(sizes)))
    ways: dict[Wire, tuple[Point, ...] | None] = {}
    for wire, cells in cells_of.items():
        ways[wire] = None if cells is None else folded.way(cells)
    return Drawing(centres, ways, folded.width, folded.height)


def _layers(
    num_items: int, wires: Sequence[Wire], top: frozenset[int], bottom: frozenset[int]
) -> list[int]:
    after: list[list[int]] = [[] for _ in range(num_items)]
    for start, end in sorted({(w.start, w.end) for w in wires if w.start != w.end}):
        after[start].append(end)
    order = topological_order(num_items, after)
    if order is None:
        order = _order_despite_cycles(after)
        position = {item: i for i, item in enumerate(order)}
        after = [[j for j in row if position[j] > position[i]] for i, row in enumerate(after)]
    layer = [0] * num_items
    for i in order:
        for j in after[i]:
            layer[j] = max(layer[j], layer[i] + 1)
    has_before = [False] * num_items
    for row in after:
        for j in row:
            has_before[j] = True
    for i in reversed(order):
        # A source joins its first reader instead of hanging at the very top.
        if after[i] and not has_before[i] and i not in top:
            layer[i] = min(layer[j] for j in after[i]) - 1
    last = max((layer[i] for i in range(num_items) if i not in bottom), default=0) + 1
    for i in bottom:
        layer[i] = last
    return _split_crowded(layer, top | bottom)


def _split_crowded(layer: list[int], ports: frozenset[int]) -> list[int]:
    """Spread a layer with very many items over several, so that no drawing is a mile wide."""
    most = max(12, math.ceil(1.2 * math.sqrt(len(layer))))
    members: dict[int, list[int]] = {}
    for item, number in enumerate(layer):
        members.setdefault(number, []).append(item)
    result = list(layer)
    number = 0
    for old in sorted(members):
        crowd = [i for i in members[old] if i not in ports]
        num_rows = max(1, math.ceil(len(crowd) / most))
        size = math.ceil(len(crowd) / num_rows) if crowd else 1
        for i in members[old]:
            result[i] = number
        for place, i in enumerate(crowd):
            result[i] = number + place // size
        number += num_rows
    return result


def _order_despite_cycles(after: list[list[int]]) -> list[int]:
    """Kahn's order; where a cycle blocks, the first item left goes next."""
    waiting = [0] * len(after)
    for row in after:
        for j in row:
            waiting[j] += 1
    done = [False] * len(after)
    ready = [i for i in reversed(range(len(after))) if waiting[i] == 0]
    order: list[int] = []
    first_left = 0
    while len(order) < len(after):
        if not ready:
            while done[first_left]:
                first_left += 1
            ready.append(first_left)
        i = ready.pop()
        if done[i]:
            continue
        done[i] = True
        order.append(i)
        for j in after[i]:
            waiting[j] -= 1
            if waiting[j] == 0 and not done[j]:
                ready.append(j)
    return order


def _lead(grid: Grid, wires: Sequence[Wire]) -> dict[Wire, tuple[int, ...] | None]:
    """Cells that each wire passes, ends included; wires of one source share dummies.

    Short wires come first: when the dummies run out, only the longest stay without a way.
    """
    layer = grid.layer_of
    trunk: dict[tuple[int, int], list[int]] = {}
    cells_of: dict[Wire, tuple[int, ...] | None] = {}
    arcs: dict[tuple[int, int], None] = {}
    unique = sorted(
        set(wires), key=lambda w: (abs(layer[w.end] - layer[w.start]), w.start, w.end, w.source)
    )
    budget = MAX_DUMMIES
    for wire in unique:
        span = layer[wire.end] - layer[wire.start]
        if wire.start == wire.end or span == 0:
            cells_of[wire] = None
            continue
        step = 1 if span > 0 else -1
        line = trunk.setdefault((wire.start, step * (wire.source + 1)), [])
        missing = abs(span) - 1 - len(line)
        if missing > budget:
            cells_of[wire] = None
            continue
        for _ in range(max(0, missing)):
            line.append(grid.add_dummy(layer[wire.start] + step * (len(line) + 1)))
            budget -= 1
        cells = (wire.start, *line[: abs(span) - 1], wire.end)
        cells_of[wire] = cells
        for a, b in pairwise(cells):
            arcs[(a, b) if step > 0 else (b, a)] = None
    grid.arcs = list(arcs)
    return cells_of
