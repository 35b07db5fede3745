"""Fold a tall narrow drawing into columns, as a newspaper does, cut where few edges cross."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Point = tuple[float, float]

GUTTER = 46.0
TURN = 16.0
MOST_CROSSING = 6


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
) -> Folded:
    """Stack layers, in several columns where the drawing is taller than `above` and narrow."""
    row_of = {cell: row for row, layer in enumerate(layers) for cell in layer}
    # A row without height holds only the ports of a box: it needs little room.
    lengths = [
        h + gap * (1.0 if h and below else 0.35)
        for h, below in zip(heights, [*heights[1:], 0.0], strict=True)
    ]
    cuts = _cuts(layers, xs, half, lengths, _crossing(len(layers), row_of, arcs), aspect, above)
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
    margin = TURN + 6.0 if cuts else 0.0
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
    lengths: Sequence[float],
    crossing: Sequence[int],
    aspect: float,
    above: float,
) -> list[int]:
    """Rows that start a new column, chosen for the wanted width by height."""
    total = sum(lengths)
    if total <= above:
        return []
    width = max(xs[c] + half[c] for layer in layers for c in layer) - min(
        xs[c] - half[c] for layer in layers for c in layer
    )
    columns = max(1, round((aspect * total / (width + GUTTER)) ** 0.5))
    if columns == 1:
        return []
    cuts: list[int] = []
    wanted, done, reached = total / columns, 0.0, 0.0
    candidates: list[tuple[float, int]] = []
    for row, length in enumerate(lengths):
        start = cuts[-1] if cuts else 0
        if row > start and len(cuts) < columns - 1 and crossing[row] <= MOST_CROSSING:
            off = abs(reached - wanted) / wanted
            if off < 0.35:
                candidates.append((off + 0.12 * crossing[row], row))
        reached += length
        if candidates and (reached > 1.35 * wanted or row == len(lengths) - 1):
            cut = min(candidates)[1]
            done += sum(lengths[cuts[-1] if cuts else 0 : cut])
            cuts.append(cut)
            reached = sum(lengths[cut : row + 1])
            candidates = []
            # The columns to come share what is left, or the last would have what the others lack.
            wanted = (total - done) / (columns - len(cuts))
    return cuts
