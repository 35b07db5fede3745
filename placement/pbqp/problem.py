"""Partitioned Boolean quadratic problems: one alternative per node, costs on nodes and edges.

Scholz and Eckstein, "Register allocation for irregular architectures", LCTES 2002; Hames and
Scholz, "Nearly optimal register allocation with PBQP", JMLC 2006. Nodes of degree 0, 1 and 2 are
reduced away without loss (R0, RI, RII); what remains is searched exactly where it is small, and
otherwise its node of largest degree is fixed by a local choice (RN), which may cost optimality.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints

# Limits of the exact search on irreducible cores; ten million take a second or so.
EXACT_NODES = 16
MAX_EXPANDED = 10_000_000


@dataclass(frozen=True, eq=False)
class PbqpProblem:
    """Minimise the sum of `costs[x][c_x]` over nodes and `matrix[c_x, c_y]` over edges.

    `costs[x]` is the vector of node x, one entry per alternative, any length of one or more. An
    edge (x, y, matrix) has the alternatives of x as rows and those of y as columns; several edges
    between the same nodes add up. Entries may be infinite (forbidden), not NaN or minus infinity.

        >>> edge = (0, 1, np.array([[2.0, 1.0], [1.0, 4.0]]))
        >>> solve(PbqpProblem((np.array([2.0, 0.0]), np.array([2.0, 4.0])), (edge,))).cost
        3.0
    """

    costs: tuple[Floats, ...]
    edges: tuple[tuple[int, int, Floats], ...] = ()

    def __post_init__(self) -> None:
        sizes = []
        for x, vector in enumerate(self.costs):
            if vector.ndim != 1 or not vector.size:
                raise ValueError(
                    f"Node {x} has costs of shape {vector.shape}; give one cost per alternative."
                )
            sizes.append(vector.size)
            _require_costs(vector, f"Node {x}")
        for e, (x, y, matrix) in enumerate(self.edges):
            if not (0 <= x < len(sizes) and 0 <= y < len(sizes)) or x == y:
                raise ValueError(
                    f"Edge {e} joins nodes {x} and {y} of {len(sizes)}; use two different nodes,"
                    " and add a cost of one node alone to its vector."
                )
            if matrix.shape != (sizes[x], sizes[y]):
                raise ValueError(
                    f"Edge {e} has a matrix of shape {matrix.shape}; nodes {x} and {y} have"
                    f" {sizes[x]} and {sizes[y]} alternatives."
                )
            _require_costs(matrix, f"Edge {e}")


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
    """A problem as flat arrays, for callers that have them already.

    Costs of node x are `costs[cost_ptr[x]:cost_ptr[x + 1]]`; edge e joins `ends[e]` (E, 2), its
    matrix lies row by row in `matrices[matrix_ptr[e]:matrix_ptr[e + 1]]`.
    """

    cost_ptr: Ints
    costs: Floats
    ends: Ints
    matrix_ptr: Ints
    matrices: Floats


def solve(
    problem: PbqpProblem, *, exact_nodes: int = EXACT_NODES, max_expanded: int = MAX_EXPANDED
) -> PbqpSolution:
    """A solution by reduction and, on connected cores of at most `exact_nodes` nodes, by search.

    `max_expanded` limits the partial choices that all searches together may expand; a core beyond
    either limit is left to RN. The time is linear in nodes and edges but for that search, and
    ties take the alternative listed first.
    """
    return solve_packed(pack(problem), exact_nodes=exact_nodes, max_expanded=max_expanded)


def pack(problem: PbqpProblem) -> Packed:
    """The problem as flat arrays, entries as float64."""
    edges = problem.edges
    return Packed(
        cost_ptr=_starts([c.size for c in problem.costs]),
        costs=_joined(problem.costs),
        ends=np.array([(x, y) for x, y, _ in edges], dtype=np.int64).reshape(-1, 2),
        matrix_ptr=_starts([m.size for _, _, m in edges]),
        matrices=_joined([m for _, _, m in edges]),
    )


def solve_packed(
    packed: Packed, *, exact_nodes: int = EXACT_NODES, max_expanded: int = MAX_EXPANDED
) -> PbqpSolution:
    """As `solve`, for arrays that follow the rules of `PbqpProblem`; they are left unchanged."""
    from placement.pbqp.reductions_compiled import reduce_and_choose, total_cost

    choice, num_rn = reduce_and_choose(*packed, exact_nodes, max_expanded)
    cost = float(total_cost(*packed, choice))
    return PbqpSolution(tuple(choice.tolist()), cost, num_rn == 0, int(num_rn))


def _require_costs(values: Floats, owner: str) -> None:
    # The least entry is NaN where one is.
    if not values.min(initial=np.inf) > -np.inf:
        raise ValueError(
            f"{owner} has a cost of NaN or minus infinity; use numbers, inf for what is forbidden."
        )


def _starts(sizes: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _joined(arrays: Sequence[Floats]) -> Floats:
    if not arrays:
        return np.zeros(0)
    return np.concatenate([a.ravel() for a in arrays]).astype(np.float64)
