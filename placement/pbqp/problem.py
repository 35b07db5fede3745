"""Partitioned Boolean quadratic problems: one alternative per node, costs on nodes and edges.

Scholz and Eckstein, "Register allocation for irregular architectures", LCTES 2002; Hames and
Scholz, "Nearly optimal register allocation with PBQP", JMLC 2006. Nodes of degree 0, 1 and 2 are
reduced away without loss (R0, RI, RII); what remains is searched exactly where it is small, and
otherwise its node of largest degree is fixed by a local choice (RN), which may cost optimality.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints

if TYPE_CHECKING:
    from placement.pbqp.net_compiled import Net

# Limits of the exact search on irreducible cores; ten million take a second or so.
EXACT_NODES = 16
MAX_EXPANDED = 10_000_000


@dataclass(frozen=True)
class PbqpSolution:
    """The chosen alternative of every node and what the choice costs.

    `optimal` is true where no node was fixed by the heuristic RN (`num_rn` counts them). An
    infinite `cost` that is optimal means that every choice takes a forbidden entry.
    """

    choice: tuple[int, ...]
    cost: float
    optimal: bool
    num_rn: int


class Packed(NamedTuple):
    """Minimise the sum of `costs[x][c_x]` over nodes and `matrix[c_x, c_y]` over edges.

    Costs of node x are `costs[cost_ptr[x]:cost_ptr[x + 1]]`, one per alternative, any number of one
    or more. Edge e joins two different nodes, `ends[e]` (E, 2); its matrix, with the alternatives
    of the first as rows, lies row by row in `matrices[matrix_ptr[e]:matrix_ptr[e + 1]]`. Several
    edges between the same nodes add up. Entries may be infinite (forbidden), not NaN or minus
    infinity.
    """

    cost_ptr: Ints
    costs: Floats
    ends: Ints
    matrix_ptr: Ints
    matrices: Floats


def solve_packed(
    packed: Packed, *, exact_nodes: int = EXACT_NODES, max_expanded: int = MAX_EXPANDED
) -> PbqpSolution:
    """A solution by reduction and, on connected cores of at most `exact_nodes` nodes, by search.

    `max_expanded` limits the partial choices that all searches together may expand; a core beyond
    either limit is left to RN. The time is linear in nodes and edges but for that search, and
    ties take the alternative listed first. The arrays are left unchanged.

    >>> arrays = map(np.array, ([0, 2, 4], [2.0, 0, 2, 4], [[0, 1]], [0, 4], [2.0, 1, 1, 4]))
    >>> solve_packed(Packed(*arrays)).cost
    3.0
    """
    from placement.pbqp.reductions_compiled import reduce_and_choose, total_cost

    choice, num_rn = reduce_and_choose(*packed, exact_nodes, max_expanded)
    cost = float(total_cost(*packed, choice))
    return PbqpSolution(tuple(choice.tolist()), cost, num_rn == 0, int(num_rn))


class Reduction(NamedTuple):
    """A node that was taken out of the problem, or that has chosen.

    `kind` is one of KINDS. `neighbours` are the nodes that still have an edge to it, `costs` (A,)
    what its alternatives cost by now, with all that was passed on to it. `choices` are the nodes
    that chose in this step with their alternatives.
    """

    kind: str
    node: int
    neighbours: tuple[int, ...]
    costs: tuple[float, ...]
    choices: tuple[tuple[int, int], ...]


KINDS = ("R0", "RI", "RII", "core", "RN", "back")


def reductions(
    packed: Packed, *, exact_nodes: int = EXACT_NODES, max_expanded: int = MAX_EXPANDED
) -> Iterator[Reduction]:
    """What `solve_packed` does, one node at a time: its reductions, then the choices backwards.

    The loop runs uncompiled, on the same source.
    """
    from placement.pbqp import reductions_compiled as fast

    work, buffer = fast.begin(*packed, max_expanded)
    net, (num_nodes,) = work.net, work.choice.shape
    reduce_next = getattr(fast.reduce_next, "py_func", fast.reduce_next)
    choose_back = getattr(fast.choose_back, "py_func", fast.choose_back)
    heap = getattr(fast.ranked, "py_func", fast.ranked)(work)
    while heap:
        x = heap[0] % num_nodes
        neighbours, costs = _neighbours(net, x), _costs(net, x)
        undecided = work.choice < 0
        buffer, x, kind = reduce_next(work, buffer, heap, exact_nodes)
        if x < 0:
            continue
        chosen = np.flatnonzero(undecided & (work.choice >= 0)).tolist()
        choices = tuple((y, int(work.choice[y])) for y in chosen)
        yield Reduction(KINDS[kind], int(x), neighbours, costs, choices)
    for position in range(int(work.counts[fast.REDUCED]) - 1, -1, -1):
        x = choose_back(work, buffer, position)
        choice = int(work.choice[x])
        yield Reduction("back", x, (), _costs(net, x), ((x, choice),))


def _neighbours(net: "Net", x: int) -> tuple[int, ...]:
    found, h = [], int(net.head[x])
    while h >= 0:
        found.append(int(net.node[h ^ 1]))
        h = int(net.following[h])
    return tuple(found)


def _costs(net: "Net", x: int) -> tuple[float, ...]:
    return tuple(net.cost[net.cost_ptr[x] : net.cost_ptr[x + 1]].tolist())
