"""Partitioned Boolean quadratic problems: one alternative per node, costs on nodes and edges.

Scholz and Eckstein, "Register allocation for irregular architectures", LCTES 2002; Hames and
Scholz, "Nearly optimal register allocation with PBQP", JMLC 2006. Nodes of degree 0, 1 and 2 are
reduced away without loss (R0, RI, RII); what remains is searched exactly where it is small, and
otherwise its node of largest degree is fixed by a local choice (RN), which may cost optimality.
"""

from dataclasses import dataclass
from typing import NamedTuple

from placement.core.costs import Floats
from placement.core.graph import Ints

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
