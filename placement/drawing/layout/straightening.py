"""Horizontal positions: every cell as near to its neighbours as the order in its layer allows.

Each pass moves a whole layer at once: the least squares positions under "keep the order and the
distances" are an isotonic regression, solved by pooling adjacent violators in linear time.
"""

from collections.abc import Sequence

NUM_PASSES = 10


def horizontal_positions(
    layers: Sequence[Sequence[int]],
    half: Sequence[float],
    arcs: Sequence[tuple[int, int]],
    *,
    num_real: int,
) -> list[float]:
    """Centre x per cell; `half[c]` is half a cell's width with its share of the gap.

    Cells from `num_real` on are dummies; the way between two of them is pulled straight harder.
    """
    above: list[list[tuple[int, float]]] = [[] for _ in half]
    below: list[list[tuple[int, float]]] = [[] for _ in half]
    for a, b in arcs:
        pull = 1.0 + (a >= num_real) + 2.0 * (a >= num_real and b >= num_real)
        below[a].append((b, pull))
        above[b].append((a, pull))
    xs = [0.0] * len(half)
    for layer in layers:
        total = sum(2 * half[c] for c in layer)
        left = -total / 2
        for cell in layer:
            xs[cell] = left + half[cell]
            left += 2 * half[cell]
    both = [a + b for a, b in zip(above, below, strict=True)]
    for number in range(NUM_PASSES):
        downwards = number % 2 == 0
        neighbours = both if number >= NUM_PASSES - 2 else above if downwards else below
        for layer in layers if downwards else reversed(layers):
            _settle(layer, half, neighbours, xs)
    return xs


def _settle(
    layer: Sequence[int],
    half: Sequence[float],
    neighbours: Sequence[Sequence[tuple[int, float]]],
    xs: list[float],
) -> None:
    offset = 0.0
    offsets: list[float] = []
    blocks: list[tuple[float, float, int]] = []  # weighted mean, weight, number of cells
    for i, cell in enumerate(layer):
        if i:
            offset += half[layer[i - 1]] + half[cell]
        offsets.append(offset)
        pulls = neighbours[cell]
        if pulls:
            weight = sum(p for _, p in pulls)
            wish = sum(xs[n] * p for n, p in pulls) / weight
        else:
            weight, wish = 0.05, xs[cell]
        mean, count = wish - offset, 1
        while blocks and blocks[-1][0] >= mean:
            other_mean, other_weight, other_count = blocks.pop()
            mean = (mean * weight + other_mean * other_weight) / (weight + other_weight)
            weight += other_weight
            count += other_count
        blocks.append((mean, weight, count))
    i = 0
    for mean, _, count in blocks:
        for _ in range(count):
            xs[layer[i]] = mean + offsets[i]
            i += 1
