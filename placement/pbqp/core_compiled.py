"""Branch and bound on the irreducible core of a partitioned Boolean quadratic problem, compiled.

Depth first with forward checking: every fixed node adds its matrix rows to the costs of the open
nodes, and the sum of their least costs bounds the rest from below, because the edges between open
nodes are normalised (their least entry is zero).
"""

from typing import NamedTuple

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints


class Core(NamedTuple):
    """Costs (N, A), infinite beyond a node's alternatives; matrices (N, A, N, A) both ways."""

    costs: Floats
    matrices: Floats


@jit
def solve_core(core: Core, max_expanded: int) -> tuple[Ints, int]:
    """The optimal choice, and how many partial choices were expanded.

    The first entry is -1 where `max_expanded` was reached before the search was complete. Where
    every choice costs infinitely much, each node takes its first alternative.
    """
    size, widest = core.costs.shape
    best, best_value = np.zeros(size, np.int64), np.inf
    choice = np.zeros(size, np.int64)
    # Row `depth` of each: costs of the open nodes, order of trials, next trial, cost so far.
    open_costs = np.empty((size + 1, size, widest))
    _fix(core, core.costs, open_costs[0], -1, 0)
    trials = np.zeros((size, widest), np.int64)
    _by_cost(core.costs[0], trials[0])
    upcoming = np.zeros(size, np.int64)
    spent_cost = np.zeros(size + 1)
    expanded, depth = 0, 0
    while depth >= 0:
        if upcoming[depth] == widest:
            depth -= 1
            continue
        i = trials[depth, upcoming[depth]]
        upcoming[depth] += 1
        expanded += 1
        if expanded > max_expanded:
            best[0] = -1
            break
        choice[depth] = i
        spent = spent_cost[depth] + open_costs[depth, depth, i]
        if spent + _fix(core, open_costs[depth], open_costs[depth + 1], depth, i) >= best_value:
            continue
        if depth == size - 1:
            best_value = spent
            for x in range(size):
                best[x] = choice[x]
            continue
        depth += 1
        spent_cost[depth] = spent
        upcoming[depth] = 0
        _by_cost(open_costs[depth, depth], trials[depth])
    return best, expanded


@jit
def _fix(core: Core, before: Floats, after: Floats, x: int, i: int) -> float:
    """Passes on alternative i of node x to the costs of the nodes after it (N, A); the sum of their
    least costs. Node -1 passes on nothing."""
    size, widest = before.shape
    bound = 0.0
    for y in range(x + 1, size):
        least = np.inf
        for j in range(widest):
            after[y, j] = before[y, j]
            if x >= 0:
                after[y, j] += core.matrices[x, i, y, j]
            least = min(least, after[y, j])
        bound += least
    return bound


@jit
def _by_cost(costs: Floats, order: Ints) -> None:
    """Writes the alternatives to `order` by rising cost, ties in declared order."""
    for i in range(costs.size):
        place = i
        while place > 0 and costs[order[place - 1]] > costs[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
