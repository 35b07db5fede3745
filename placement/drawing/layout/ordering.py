"""Order within layers: few edge crossings, by barycentre sweeps (Sugiyama et al., 1981)."""

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from itertools import pairwise

NUM_SWEEPS = 8

Layers = list[list[int]]


def ordered_layers(
    layer_of: Sequence[int],
    arcs: Sequence[tuple[int, int]],
    num_layers: int,
    check: Callable[[], object] = lambda: None,
) -> Layers:
    """Cells of each layer from left to right; the best order met in a bounded number of sweeps.

    `check` is called often and may raise to end the work.
    """
    above: list[list[int]] = [[] for _ in layer_of]
    below: list[list[int]] = [[] for _ in layer_of]
    for a, b in arcs:
        below[a].append(b)
        above[b].append(a)
    layers = _first_order(layer_of, above, below, num_layers)
    best, fewest = [list(layer) for layer in layers], _crossings(layers, below, check)
    place = [0.0] * len(layer_of)
    for layer in layers:
        _write_places(layer, place)
    for sweep in range(NUM_SWEEPS):
        if fewest == 0:
            break
        downwards = sweep % 2 == 0
        neighbours = above if downwards else below
        numbers = range(num_layers) if downwards else range(num_layers - 1, -1, -1)
        for number in numbers:
            layer = layers[number]
            centre = {
                cell: sum(place[n] for n in neighbours[cell]) / len(neighbours[cell])
                if neighbours[cell]
                else place[cell]
                for cell in layer
            }
            layer.sort(key=lambda cell: (centre[cell], place[cell]))
            _write_places(layer, place)
        count = _crossings(layers, below, check)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    return best


def _write_places(layer: list[int], place: list[float]) -> None:
    for i, cell in enumerate(layer):
        place[cell] = i - (len(layer) - 1) / 2


def _first_order(
    layer_of: Sequence[int], above: list[list[int]], below: list[list[int]], num_layers: int
) -> Layers:
    """Depth first from the sources: cells of one branch start out side by side."""
    layers: Layers = [[] for _ in range(num_layers)]
    seen = [False] * len(layer_of)
    roots = sorted(range(len(layer_of)), key=lambda c: (bool(above[c]), layer_of[c], c))
    for root in roots:
        stack = [root]
        while stack:
            cell = stack.pop()
            if seen[cell]:
                continue
            seen[cell] = True
            layers[layer_of[cell]].append(cell)
            stack.extend(reversed(below[cell]))
    return layers


def _crossings(layers: Layers, below: list[list[int]], check: Callable[[], object]) -> int:
    total = 0
    for upper, lower in pairwise(layers):
        check()
        place = {cell: i for i, cell in enumerate(lower)}
        ends: list[int] = []
        for cell in upper:
            row = sorted(place[b] for b in below[cell])
            total += sum(len(ends) - bisect_right(ends, p) for p in row)
            for p in row:
                insort(ends, p)
    return total
