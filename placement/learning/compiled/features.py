"""Fractal dimensions of all nodes of a graph, by a search in breadth from each (compiled)."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints


@jit
def slopes(num_nodes: int, source: Ints, target: Ints, furthest: int) -> Floats:
    """Slope of log N(r) against log r by node (N,); see `fractal_dimensions`."""
    ptr = np.zeros(num_nodes + 1, np.int64)
    for e in range(source.size):
        ptr[source[e] + 1] += 1
        ptr[target[e] + 1] += 1
    ptr = np.cumsum(ptr)
    place, other = ptr.copy(), np.empty(2 * source.size, np.int64)
    for e in range(source.size):
        a, b = source[e], target[e]
        other[place[a]], other[place[b]] = b, a
        place[a] += 1
        place[b] += 1
    found = np.zeros(num_nodes)
    seen, waiting = np.full(num_nodes, -1, np.int64), np.empty(num_nodes, np.int64)
    x, y = np.empty(furthest), np.empty(furthest)
    for node in range(num_nodes):
        seen[node], waiting[0] = node, node
        begin, end, r = 0, 1, 0
        while r < furthest and begin < end:
            num = end
            for i in range(begin, num):
                a = waiting[i]
                for j in range(ptr[a], ptr[a + 1]):
                    b = other[j]
                    if seen[b] != node:
                        seen[b], waiting[end] = node, b
                        end += 1
            begin = num
            if begin < end:
                x[r], y[r] = np.log(r + 1.0), np.log(float(end))
                r += 1
        if r >= 2:
            away = x[:r] - x[:r].mean()
            found[node] = (away * y[:r]).sum() / (away * away).sum()
    return found
