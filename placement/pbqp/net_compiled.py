"""The live graph of a partitioned Boolean quadratic problem, compiled.

It is a list of half-edges per node: half-edge 2e stands at the first node of edge e, 2e + 1 at the
second, and `h ^ 1` is the other end. The matrix of an edge lies row by row in one buffer, rows for
the first node.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.compiled.jit import inlined, jit
from placement.core.costs import Floats
from placement.core.graph import Ints

# A rest of this share of what was subtracted is the error of subtracting.
_ROUNDING = 1e-14


class Net(NamedTuple):
    """The live graph: node x pays `cost[cost_ptr[x] + i]`, edge e has its matrix at `at[e]`."""

    num_alts: Ints
    cost_ptr: Ints
    cost: Floats
    head: Ints
    degree: Ints
    alive: NDArray[np.bool_]
    node: Ints
    following: Ints
    previous: Ints
    at: Ints


@jit
def build(
    cost_ptr: Ints, cost: Floats, ends: Ints, edge_ptr: Ints, matrices: Floats
) -> tuple[Net, int, Floats, int]:
    num_nodes, num_edges = cost_ptr.size - 1, edge_ptr.size - 1
    room = num_edges + num_nodes
    net = Net(
        cost_ptr[1:] - cost_ptr[:-1],
        cost_ptr,
        cost.copy(),
        np.full(num_nodes, -1, np.int64),
        np.zeros(num_nodes, np.int64),
        np.ones(num_nodes, np.bool_),
        np.empty(2 * room, np.int64),
        np.empty(2 * room, np.int64),
        np.empty(2 * room, np.int64),
        np.empty(room, np.int64),
    )
    buffer = matrices.copy()
    number = 0
    for e in range(num_edges):
        number, _ = add_edge(net, buffer, number, edge_ptr[e], ends[e, 0], ends[e, 1])
    return net, number, buffer, buffer.size


@inlined
def strides(net: Net, h: int) -> tuple[int, int, int]:
    """Where the matrix of half-edge h starts, and its steps by own and by other alternative."""
    if h % 2 == 0:
        return net.at[h // 2], net.num_alts[net.node[h ^ 1]], 1
    return net.at[h // 2], 1, net.num_alts[net.node[h]]


@inlined
def unlink(net: Net, h: int) -> None:
    for side in (h, h ^ 1):
        x, before, after = net.node[side], net.previous[side], net.following[side]
        if before >= 0:
            net.following[before] = after
        else:
            net.head[x] = after
        if after >= 0:
            net.previous[after] = before
        net.degree[x] -= 1


@inlined
def _link(net: Net, h: int, x: int) -> None:
    net.node[h] = x
    net.previous[h], net.following[h] = -1, net.head[x]
    if net.head[x] >= 0:
        net.previous[net.head[x]] = h
    net.head[x] = h
    net.degree[x] += 1


@inlined
def _half_edge(net: Net, x: int, y: int) -> int:
    """The half-edge at x of the edge between x and y, -1 if there is none."""
    swap = net.degree[y] < net.degree[x]
    h = int(net.head[y] if swap else net.head[x])
    wanted = x if swap else y
    while h >= 0 and net.node[h ^ 1] != wanted:
        h = net.following[h]
    return h ^ 1 if swap and h >= 0 else h


@jit
def add_edge(net: Net, buffer: Floats, num_edges: int, at: int, x: int, y: int) -> tuple[int, bool]:
    """Adds the matrix at `at` to the edge x, y, or makes it one; the new number of edges, and
    whether the matrix stays where it is."""
    h = _half_edge(net, x, y)
    is_new = h < 0
    if is_new:
        h = 2 * num_edges
        net.at[num_edges] = at
        _link(net, h, x)
        _link(net, h + 1, y)
        num_edges += 1
    else:
        start, own, other = strides(net, h)
        width = net.num_alts[y]
        for i in range(net.num_alts[x]):
            for j in range(width):
                buffer[start + i * own + j * other] += buffer[at + i * width + j]
    _normalise(net, buffer, h)
    return num_edges, is_new


@jit
def _normalise(net: Net, buffer: Floats, h: int) -> None:
    """Moves row and column minima into the nodes' costs; drops the edge if nothing is left."""
    x, y = net.node[h], net.node[h ^ 1]
    scale = _lower(net, buffer, h, np.zeros(net.num_alts[y]))
    _lower(net, buffer, h ^ 1, scale)
    start, own, other = strides(net, h)
    for i in range(net.num_alts[x]):
        for j in range(net.num_alts[y]):
            if buffer[start + i * own + j * other] > 0.0:
                return
    unlink(net, h)


@jit
def _lower(net: Net, buffer: Floats, h: int, scale: Floats) -> Floats:
    """Moves the least entry of each of h's rows to its node; those minima.

    Forbidden alternatives get zero entries, so that no infinity is subtracted from another and
    their edges vanish. `scale` is what entry j was lowered by before: a rest within the rounding
    of that is none.
    """
    x, y = net.node[h], net.node[h ^ 1]
    cost_x, cost_y = net.cost_ptr[x], net.cost_ptr[y]
    start, own, other = strides(net, h)
    minima = np.zeros(net.num_alts[x])
    for i in range(minima.size):
        least = np.inf
        for j in range(scale.size):
            if net.cost[cost_y + j] < np.inf:
                least = min(least, buffer[start + i * own + j * other])
        net.cost[cost_x + i] += least
        minima[i] = least
        for j in range(scale.size):
            place = start + i * own + j * other
            entry, rest = buffer[place], 0.0
            if net.cost[cost_x + i] < np.inf and net.cost[cost_y + j] < np.inf:
                rest = entry - least
            if rest < np.inf and rest <= _ROUNDING * (abs(entry) + abs(scale[j])):
                rest = 0.0
            buffer[place] = rest
    return minima
