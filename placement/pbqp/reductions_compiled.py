"""Reductions of a partitioned Boolean quadratic problem, compiled.

A node's degree never grows, so one heap of ranked nodes always yields the lowest applicable
reduction, ties in declared order. RII makes new edges: their matrices go to the end of a buffer
that grows.
"""

import heapq
from typing import NamedTuple

import numpy as np

from placement.compiled.jit import inlined, jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.pbqp.core_compiled import Core, solve_core
from placement.pbqp.net_compiled import Net, add_edge, build, strides, unlink


@jit
def total_cost(
    cost_ptr: Ints, cost: Floats, ends: Ints, edge_ptr: Ints, matrices: Floats, choice: Ints
) -> float:
    """Sum of the chosen costs and of the chosen entries of all edges."""
    total = 0.0
    for x in range(choice.size):
        total += cost[cost_ptr[x] + choice[x]]
    for e in range(edge_ptr.size - 1):
        x, y = ends[e, 0], ends[e, 1]
        width = cost_ptr[y + 1] - cost_ptr[y]
        total += matrices[edge_ptr[e] + choice[x] * width + choice[y]]
    return total


# What became of a node, beside 0, 1 and 2: decided by an exact search of its core, or by RN.
CORE, RN = 3, 4


class Work(NamedTuple):
    """What is left of the problem, and what was done.

    `choice` (N,) is -1 where a node has not chosen; the first `counts[REDUCED]` rows of `order`
    (N, 3) are the nodes that were taken out, with the half-edges that they had.
    """

    net: Net
    choice: Ints
    order: Ints
    counts: Ints


# Places in `counts`.
EDGES, USED, REDUCED, FIXED, BUDGET, MOST_DEGREE = 0, 1, 2, 3, 4, 5


@jit
def begin(
    cost_ptr: Ints, cost: Floats, ends: Ints, edge_ptr: Ints, matrices: Floats, max_expanded: int
) -> tuple[Work, Floats]:
    """The normalised graph with nothing taken out yet, and the buffer of its matrices."""
    net, num_edges, buffer, used = build(cost_ptr, cost, ends, edge_ptr, matrices)
    num_nodes = net.degree.size
    choice = np.full(num_nodes, -1, np.int64)
    most = 0
    for x in range(num_nodes):
        most = max(most, net.degree[x])
    counts = np.array([num_edges, used, 0, 0, max_expanded, most])
    return Work(net, choice, np.empty((num_nodes, 3), np.int64), counts), buffer


@jit
def ranked(work: Work) -> list[int]:
    """The heap of all nodes by the reduction that they allow."""
    net, num_nodes = work.net, work.choice.size
    heap = [
        _rank(net.degree[x], work.counts[MOST_DEGREE]) * num_nodes + x for x in range(num_nodes)
    ]
    heapq.heapify(heap)
    return heap


@inlined
def reduce_next(
    work: Work, buffer: Floats, heap: list[int], exact_nodes: int
) -> tuple[Floats, int, int]:
    """Take out the node at the front of the heap: the buffer, the node and what became of it.

    The node is -1 where its entry in the heap was out of date.
    """
    net, counts, choice, num_nodes = work.net, work.counts, work.choice, work.choice.size
    most = counts[MOST_DEGREE]
    key = heapq.heappop(heap)
    x, rank = key % num_nodes, key // num_nodes
    if not net.alive[x] or rank != _rank(net.degree[x], most):
        return buffer, -1, -1
    if rank <= 2:
        buffer = _with_room(net, buffer, counts[USED], x)
        first, second, num_edges, used = _eliminate(net, buffer, counts[EDGES], counts[USED], x)
        counts[EDGES], counts[USED] = num_edges, used
        place = counts[REDUCED]
        work.order[place, 0], work.order[place, 1], work.order[place, 2] = x, first, second
        counts[REDUCED] += 1
        for h in (first, second):
            if h >= 0:
                y = net.node[h ^ 1]
                heapq.heappush(heap, _rank(net.degree[y], most) * num_nodes + y)
        return buffer, x, rank
    none = np.empty(0, np.int64)
    core = _component(net, x, exact_nodes) if counts[BUDGET] > 0 else none
    if core.size > 0:
        found, spent = solve_core(_core_of(net, buffer, core), counts[BUDGET])
        counts[BUDGET] -= spent
        if found[0] >= 0:
            for position in range(core.size):
                choice[core[position]] = found[position]
                net.alive[core[position]] = False
            return buffer, x, CORE
    for h in _fix(net, buffer, x, choice):
        y = net.node[h ^ 1]
        heapq.heappush(heap, _rank(net.degree[y], most) * num_nodes + y)
    counts[FIXED] += 1
    return buffer, x, RN


@inlined
def choose_back(work: Work, buffer: Floats, position: int) -> int:
    """Back-propagation: the node that was taken out at this position chooses; which one it is."""
    x = work.order[position, 0]
    first, second = work.order[position, 1], work.order[position, 2]
    work.choice[x] = _answer(work.net, buffer, x, first, second, work.choice)
    return int(x)


@jit
def reduce_and_choose(
    cost_ptr: Ints,
    cost: Floats,
    ends: Ints,
    edge_ptr: Ints,
    matrices: Floats,
    exact_nodes: int,
    max_expanded: int,
) -> tuple[Ints, int]:
    """Chosen alternative of every node, and how many nodes were fixed by the heuristic RN."""
    work, buffer = begin(cost_ptr, cost, ends, edge_ptr, matrices, max_expanded)
    heap = ranked(work)
    while len(heap) > 0:
        buffer, _, _ = reduce_next(work, buffer, heap, exact_nodes)
    for position in range(work.counts[REDUCED] - 1, -1, -1):
        choose_back(work, buffer, position)
    return work.choice, work.counts[FIXED]


@jit
def _rank(degree: int, most: int) -> int:
    """0, 1, 2 for R0, RI, RII; above, nodes of larger degree come first."""
    return degree if degree <= 2 else 3 + most - degree


@jit
def _with_room(net: Net, buffer: Floats, used: int, x: int) -> Floats:
    """The buffer, twice as long where the matrix of RII at node x would not fit."""
    if net.degree[x] < 2:
        return buffer
    h = net.head[x]
    y, z = net.node[h ^ 1], net.node[net.following[h] ^ 1]
    needed = used + net.num_alts[y] * net.num_alts[z]
    if needed <= buffer.size:
        return buffer
    longer = np.empty(2 * needed, np.float64)
    longer[:used] = buffer[:used]
    return longer


@jit
def _eliminate(
    net: Net, buffer: Floats, num_edges: int, used: int, x: int
) -> tuple[int, int, int, int]:
    """R0, RI or RII: takes out a node of degree at most 2; its half-edges (or -1), new counts."""
    net.alive[x] = False
    first = net.head[x]
    if first < 0:
        return -1, -1, num_edges, used
    second = net.following[first]
    unlink(net, first)
    y = net.node[first ^ 1]
    if second < 0:
        for j in range(net.num_alts[y]):
            net.cost[net.cost_ptr[y] + j] += _least(net, buffer, x, first, j, -1, 0)
        return first, second, num_edges, used
    unlink(net, second)
    z = net.node[second ^ 1]
    width = net.num_alts[z]
    for j in range(net.num_alts[y]):
        for k in range(width):
            buffer[used + j * width + k] = _least(net, buffer, x, first, j, second, k)
    num_edges, is_new = add_edge(net, buffer, num_edges, used, y, z)
    return first, second, num_edges, used + net.num_alts[y] * width if is_new else used


@inlined
def _least(net: Net, buffer: Floats, x: int, first: int, j: int, second: int, k: int) -> float:
    """Least cost of node x when its neighbours choose j and k (second is -1 where it has one)."""
    start, own, other = strides(net, first)
    start += j * other
    start_2, own_2 = 0, 0
    if second >= 0:
        start_2, own_2, other_2 = strides(net, second)
        start_2 += k * other_2
    best = np.inf
    for i in range(net.num_alts[x]):
        value = net.cost[net.cost_ptr[x] + i] + buffer[start + i * own]
        if second >= 0:
            value += buffer[start_2 + i * own_2]
        best = min(best, value)
    return best


@jit
def _fix(net: Net, buffer: Floats, x: int, choice: Ints) -> Ints:
    """RN: the locally cheapest alternative of x, its costs passed on; the half-edges it had."""
    best, best_value = 0, np.inf
    for i in range(net.num_alts[x]):
        value = net.cost[net.cost_ptr[x] + i]
        h = net.head[x]
        while h >= 0:
            y = net.node[h ^ 1]
            start, own, other = strides(net, h)
            least = np.inf
            for j in range(net.num_alts[y]):
                entry = buffer[start + i * own + j * other]
                least = min(least, entry + net.cost[net.cost_ptr[y] + j])
            value += least
            h = net.following[h]
        if value < best_value:
            best, best_value = i, value
    choice[x] = best
    net.alive[x] = False
    touched = np.empty(net.degree[x], np.int64)
    for position in range(touched.size):
        h = net.head[x]
        y = net.node[h ^ 1]
        start, own, other = strides(net, h)
        for j in range(net.num_alts[y]):
            net.cost[net.cost_ptr[y] + j] += buffer[start + best * own + j * other]
        unlink(net, h)
        touched[position] = h
    return touched


@inlined
def _answer(net: Net, buffer: Floats, x: int, first: int, second: int, choice: Ints) -> int:
    """Back-propagation: the cheapest alternative of x now that its neighbours have chosen."""
    best, best_value = 0, np.inf
    for i in range(net.num_alts[x]):
        value = net.cost[net.cost_ptr[x] + i]
        for h in (first, second):
            if h >= 0:
                start, own, other = strides(net, h)
                value += buffer[start + i * own + choice[net.node[h ^ 1]] * other]
        if value < best_value:
            best, best_value = i, value
    return best


@jit
def _component(net: Net, x: int, most: int) -> Ints:
    """The connected component of x as it is discovered, empty if it has more than `most` nodes."""
    found = np.empty(most + 1, np.int64)
    if most < 1:
        return found[:0]
    found[0], num_found, done = x, 1, 0
    while done < num_found:
        h = net.head[found[done]]
        while h >= 0:
            y = net.node[h ^ 1]
            if _place_of(found, num_found, y) == num_found:
                if num_found == most:
                    return found[:0]
                found[num_found] = y
                num_found += 1
            h = net.following[h]
        done += 1
    return found[:num_found]


@jit
def _place_of(found: Ints, num_found: int, y: int) -> int:
    """Index of node y among the first nodes found, their number if it is not there."""
    position = 0
    while position < num_found and found[position] != y:
        position += 1
    return position


@jit
def _core_of(net: Net, buffer: Floats, nodes: Ints) -> Core:
    """The component as dense arrays: costs (N, A) and matrices (N, A, N, A), zero where no edge."""
    size, widest = nodes.size, 1
    for x in nodes:
        widest = max(widest, net.num_alts[x])
    costs = np.full((size, widest), np.inf)
    matrices = np.zeros((size, widest, size, widest))
    for p in range(size):
        x = nodes[p]
        for i in range(net.num_alts[x]):
            costs[p, i] = net.cost[net.cost_ptr[x] + i]
        h = net.head[x]
        while h >= 0:
            q = _place_of(nodes, size, net.node[h ^ 1])
            start, own, other = strides(net, h)
            for i in range(net.num_alts[x]):
                for j in range(net.num_alts[net.node[h ^ 1]]):
                    matrices[p, i, q, j] = buffer[start + i * own + j * other]
            h = net.following[h]
    return Core(costs, matrices)
