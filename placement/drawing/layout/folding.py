"""Fold a tall narrow drawing into columns, as a newspaper does, cut where few edges cross."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Point = tuple[float, float]

GUTTER = 46.0
TURN = 16.0
# Above and below folded columns, where lines turn.
MARGIN = TURN + 6.0
MOST_CROSSING = 6
# Of the size of a drawing so much is worth a line less from column to column.
LINE = 0.02
# So many columns more and fewer are tried than are about as many as fit.
TRIED = 2


@dataclass(frozen=True)
class Folded:
    """Positions after folding. Rows are layers; `column_of[row]`, `middle[row]` and `tall[row]`."""

    xs: list[float]
    row_of: dict[int, int]
    column_of: list[int]
    middle: list[float]
    tall: list[float]
    left: list[float]
    width: float
    height: float

    def way(self, cells: tuple[int, ...]) -> tuple[Point, ...]:
        """Waypoints of a wire through these cells, its two end cells left out."""
        points: list[Point] = []
        for a, b in pairwise(cells):
            row, next_row = self.row_of[a], self.row_of[b]
            if self.column_of[row] != self.column_of[next_row]:
                points.extend(self._around(a, b, row, next_row))
            if b != cells[-1]:
                x, half = self.xs[b], self.tall[next_row] / 2
                ends = (self.middle[next_row] - half, self.middle[next_row] + half)
                if next_row < row:
                    ends = (ends[1], ends[0])
                points.extend((x, y) for y in (ends if half else ends[:1]))
        return tuple(points)

    def _around(self, a: int, b: int, row: int, next_row: int) -> list[Point]:
        """Out at the bottom of one column and in at the top of the next (or back)."""
        first, second = (a, b) if row < next_row else (b, a)
        gutter = self.left[self.column_of[self.row_of[second]]] - GUTTER / 2
        low, high = self.height - 6.0, 6.0
        points = [
            (self.xs[first], low),
            (gutter, low),
            (gutter, high),
            (self.xs[second], high),
        ]
        return points if row < next_row else points[::-1]


def fold(
    layers: Sequence[Sequence[int]],
    xs: Sequence[float],
    half: Sequence[float],
    heights: Sequence[float],
    arcs: Sequence[tuple[int, int]],
    *,
    gap: float,
    aspect: float,
    above: float,
    low: float = 0.0,
) -> Folded:
    """Stack layers, in several columns where the drawing is taller than `above` and narrow.

    Nothing is gained by columns lower than `low`.
    """
    row_of = {cell: row for row, layer in enumerate(layers) for cell in layer}
    # A row without height holds only the ports of a box: it needs little room.
    lengths = [
        h + gap * (1.0 if h and below else 0.35)
        for h, below in zip(heights, [*heights[1:], 0.0], strict=True)
    ]
    crossing = _crossing(len(layers), row_of, arcs)
    cuts: list[int] = []
    if sum(lengths) > above:
        cuts = _cuts(layers, xs, half, heights, lengths, crossing, aspect, low)
    column_of = [sum(cut <= row for cut in cuts) for row in range(len(layers))]
    new_xs, left, width = list(xs), [], 0.0
    for column in range(len(cuts) + 1):
        cells = [c for row, layer in enumerate(layers) if column_of[row] == column for c in layer]
        low = min(xs[c] - half[c] for c in cells)
        high = max(xs[c] + half[c] for c in cells)
        if column:
            width += GUTTER
        left.append(width)
        for cell in cells:
            new_xs[cell] = xs[cell] - low + width
        width += high - low
    # Folded, the drawing needs room for the turns; all columns begin at one height.
    margin = MARGIN if cuts else 0.0
    first = lengths[0] if heights and not heights[0] else 0.0
    middle, tops = [], [margin + (first if column else 0.0) for column in range(len(cuts) + 1)]
    for row, tall in enumerate(heights):
        column = column_of[row]
        middle.append(tops[column] + tall / 2)
        tops[column] += lengths[row]
    last = [max(r for r, c in enumerate(column_of) if c == k) for k in range(len(tops))]
    height = max(middle[row] + heights[row] / 2 for row in last) + margin
    return Folded(new_xs, row_of, column_of, middle, list(heights), left, width, height)


def _crossing(num_rows: int, row_of: dict[int, int], arcs: Sequence[tuple[int, int]]) -> list[int]:
    """How many different cells send an arc over the border above each row."""
    senders: list[set[int]] = [set() for _ in range(num_rows)]
    for a, b in arcs:
        senders[max(row_of[a], row_of[b])].add(a)
    return [len(s) for s in senders]


def _cuts(
    layers: Sequence[Sequence[int]],
    xs: Sequence[float],
    half: Sequence[float],
    heights: Sequence[float],
    lengths: Sequence[float],
    crossing: Sequence[int],
    aspect: float,
    low: float,
) -> list[int]:
    """Rows that start a new column: those with which the drawing is largest in its place.

    Every line that goes around from column to column counts as some of the size.
    """
    lefts = [min(xs[c] - half[c] for c in row) for row in layers]
    rights = [max(xs[c] + half[c] for c in row) for row in layers]
    # A port belongs to the column of what it leads to.
    can_cut = [
        bool(row and heights[row - 1] and heights[row]) and crossing[row] <= MOST_CROSSING
        for row in range(len(layers))
    ]

    def size(cuts: Sequence[int]) -> float:
        spans = [*pairwise((0, *cuts, len(layers)))]
        wide = sum(max(rights[a:b]) - min(lefts[a:b]) for a, b in spans) + GUTTER * len(cuts)
        high = max(sum(lengths[a:b]) for a, b in spans) + (2 * MARGIN if cuts else 0.0)
        lines = 1 + LINE * sum(crossing[row] for row in cuts)
        return lines * max(wide / aspect, high, low)

    def about(width: float) -> int:
        """How many columns of a width are together as high as the place is."""
        return round(math.sqrt(aspect * sum(lengths) / (width + GUTTER)))

    widths = [right - left for left, right in zip(lefts, rights, strict=True)]
    fewest, most = about(max(rights) - min(lefts)), about(sum(widths) / len(widths))
    numbers = range(max(2, fewest - TRIED), most + TRIED + 1)
    tried = [[], *(_even(lengths, crossing, can_cut, number) for number in numbers)]
    return min(tried, key=lambda cuts: (size(cuts), len(cuts)))


def _even(
    lengths: Sequence[float], crossing: Sequence[int], can_cut: Sequence[bool], columns: int
) -> list[int]:
    """Rows that start a new column where that many columns are about as long as each other."""
    cuts: list[int] = []
    start = 0
    for left in range(columns, 1, -1):
        # The columns to come share what is left, or the last would have what the others lack.
        wanted, reached = sum(lengths[start:]) / left, 0.0
        found: list[tuple[float, int]] = []
        for row in range(start, len(lengths)):
            off = abs(reached - wanted) / wanted
            if found and reached > wanted and off > min(found)[0]:
                break
            if row > start and can_cut[row]:
                found.append((off + 0.12 * crossing[row], row))
            reached += lengths[row]
        if not found:
            break
        start = min(found)[1]
        cuts.append(start)
    return cuts
