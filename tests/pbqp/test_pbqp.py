"""The PBQP solver against brute force, worked reductions, and programs on chains and trees."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from placement.pbqp.problem import KINDS, Packed, reductions, solve_packed


class PbqpProblem(NamedTuple):
    """Costs by node, and edges (x, y, matrix), as a person writes them down."""

    costs: tuple
    edges: tuple = ()


def packed_of(problem):
    edges, matrices = problem.edges, [m.ravel() for _, _, m in problem.edges]
    return Packed(
        cost_ptr=np.cumsum([0, *(c.size for c in problem.costs)]),
        costs=np.concatenate([*problem.costs, np.zeros(0)]),
        ends=np.array([(x, y) for x, y, _ in edges], dtype=np.int64).reshape(-1, 2),
        matrix_ptr=np.cumsum([0, *(m.size for m in matrices)]),
        matrices=np.concatenate([*matrices, np.zeros(0)]),
    )


def solve(problem, **limits):
    return solve_packed(packed_of(problem), **limits)


def cost_of(problem, choice):
    """The objective, from its definition."""
    total = sum(float(c[i]) for c, i in zip(problem.costs, choice, strict=True))
    return total + sum(float(m[choice[x], choice[y]]) for x, y, m in problem.edges)


def least_cost(problem):
    """By brute force: one axis of the sum per node."""
    num_nodes = len(problem.costs)
    total = np.zeros([c.size for c in problem.costs])
    for x, vector in enumerate(problem.costs):
        total = total + vector.reshape([-1 if a == x else 1 for a in range(num_nodes)])
    for x, y, matrix in problem.edges:
        upright = matrix if x < y else matrix.T
        total = total + upright.reshape(
            [n if a in (x, y) else 1 for a, n in enumerate(total.shape)]
        )
    return float(total.min())


def random_pbqp(rng, num_nodes, *, density, forbidden=0.0, most=4):
    """Small integers, so that sums are exact; parallel and reversed edges happen."""
    sizes = rng.integers(1, most + 1, num_nodes)

    def entries(*shape):
        values = rng.integers(-9, 10, shape).astype(float)
        values[rng.random(shape) < forbidden] = np.inf
        return values

    pairs = [
        (int(x), int(y))
        for x, y in itertools.permutations(range(num_nodes), 2)
        if rng.random() < density / 2
    ]
    return PbqpProblem(
        tuple(entries(n) for n in sizes),
        tuple((x, y, entries(sizes[x], sizes[y])) for x, y in pairs),
    )


def test_without_the_heuristic_the_answer_is_the_brute_force_optimum():
    rng = np.random.default_rng(1)
    num_exact = num_heuristic = num_infeasible = 0
    for case in range(2000):
        problem = random_pbqp(
            rng,
            int(rng.integers(2, 9)),
            density=(0.3, 0.6, 1.0, 1.6)[case % 4],
            forbidden=(0.0, 0.1, 0.4)[case % 3],
            most=2 + case % 3,
        )
        best = least_cost(problem)
        exact, reduced = solve(problem), solve(problem, exact_nodes=0)
        for found in (exact, reduced):
            assert found.cost == cost_of(problem, found.choice), case
            assert found.optimal == (found.num_rn == 0), case
            assert not found.optimal or found.cost == best, case
        assert exact.optimal, case
        assert reduced.cost >= best, case
        num_exact += reduced.optimal
        num_heuristic += not reduced.optimal
        num_infeasible += exact.cost == np.inf
    assert min(num_exact, num_heuristic, num_infeasible) > 50


@pytest.mark.parametrize("num_nodes", [9, 10, 11, 12])
def test_the_search_solves_dense_cores(num_nodes):
    rng = np.random.default_rng(num_nodes)
    for _ in range(10):
        costs = tuple(rng.integers(0, 50, 2).astype(float) for _ in range(num_nodes))
        pairs = itertools.combinations(range(num_nodes), 2)
        edges = tuple((x, y, rng.integers(0, 50, (2, 2)).astype(float)) for x, y in pairs)
        problem = PbqpProblem(costs, edges)
        found = solve(problem)
        assert found.optimal
        assert found.cost == least_cost(problem)


def test_a_search_that_is_cut_off_says_so():
    rng = np.random.default_rng(0)
    pairs = itertools.combinations(range(10), 2)
    edges = tuple((x, y, rng.random((3, 3))) for x, y in pairs)
    problem = PbqpProblem(tuple(rng.random((10, 3))), edges)
    cut = solve(problem, max_expanded=5)
    assert not cut.optimal and cut.num_rn > 0
    assert cut.cost == pytest.approx(cost_of(problem, cut.choice))
    assert cut.cost >= solve(problem).cost


def test_the_worked_reductions():
    """RI leaves [3, 7] on the neighbour; RII leaves [[5, 4], [4, 3]] between the neighbours."""
    first = (0, 1, np.array([[2.0, 1.0], [1.0, 4.0]]))
    for j, wanted in enumerate((3.0, 7.0)):
        fixed = np.array([2.0, 4.0])
        fixed[1 - j] = np.inf
        assert solve(PbqpProblem((np.array([2.0, 0.0]), fixed), (first,))).cost == wanted
    edges = (
        (0, 1, np.array([[2.0, 2.0], [1.0, 4.0]])),
        (1, 2, np.array([[2.0, 1.0], [1.0, 4.0]])),
    )
    table = np.empty((2, 2))
    for j, k in itertools.product(range(2), repeat=2):
        ends = np.full((2, 2), np.inf)
        ends[0, j] = ends[1, k] = 0.0
        table[j, k] = solve(PbqpProblem((ends[0], np.array([1.0, 3.0]), ends[1]), edges)).cost
    assert table.tolist() == [[5.0, 4.0], [4.0, 3.0]]


def test_the_reductions_that_are_told_are_those_of_the_solver():
    rng, kinds = np.random.default_rng(7), set()
    for case in range(120):
        problem = random_pbqp(rng, int(rng.integers(1, 9)), density=0.8)
        limits = {"exact_nodes": 0 if case % 2 else 16}
        solution = solve(problem, **limits)
        told = list(reductions(packed_of(problem), **limits))
        kinds |= {step.kind for step in told}
        choices = [pair for step in told for pair in step.choices]
        assert sorted(choices) == list(enumerate(solution.choice))
        assert sum(step.kind == "RN" for step in told) == solution.num_rn
        for step in told:
            degree = {"R0": 0, "RI": 1, "RII": 2}.get(step.kind)
            assert degree in (None, len(step.neighbours))
            assert step.kind not in ("core", "RN") or len(step.neighbours) > 2
    assert kinds == set(KINDS)


def test_the_costs_that_are_told_are_those_of_the_worked_reduction():
    problem = PbqpProblem(
        (np.array([2.0, 0.0]), np.array([2.0, 4.0])), ((0, 1, np.array([[2.0, 1.0], [1.0, 4.0]])),)
    )
    first, second, *back = reductions(packed_of(problem))
    assert (first.kind, first.node, first.neighbours) == ("RI", 0, (1,))
    assert (second.kind, second.costs) == ("R0", (3.0, 7.0))
    assert [step.choices for step in back] == [((1, 0),), ((0, 1),)]


def test_edges_that_are_a_row_plus_a_column_are_no_obstacle():
    rng = np.random.default_rng(5)
    num_nodes = 40
    edges = tuple(
        (x, y, rng.random((4, 1)) + rng.random((1, 4)))
        for x, y in itertools.combinations(range(num_nodes), 2)
    )
    found = solve(PbqpProblem(tuple(rng.random((num_nodes, 4))), edges), exact_nodes=0)
    assert found.optimal


def test_huge_costs_do_not_drown_small_ones():
    """Alternative 2 is all but forbidden; the others differ by a millionth."""
    matrix = np.array([[0.0, 2e-6], [1e-6, 0.0], [1e12, 1e12]])
    costs = (np.array([5e-7, 0.0, 0.0]), np.array([0.0, 2e-6]))
    problem = PbqpProblem(costs, ((0, 1, matrix),))
    assert solve(problem).cost == least_cost(problem) == 5e-7


def chain_cost(costs, matrices):
    best = costs[0]
    for vector, matrix in zip(costs[1:], matrices, strict=True):
        best = (best[:, None] + matrix).min(axis=0) + vector
    return best.min()


def tree_cost(costs, parents, matrices):
    """`parents[x - 1] < x`: leaves first is falling order."""
    best = costs.copy()
    for x in range(len(costs) - 1, 0, -1):
        best[parents[x - 1]] += (matrices[x - 1] + best[x]).min(axis=1)
    return best[0].min()


def test_long_chains_and_large_trees_are_exact():
    rng = np.random.default_rng(2)
    size = 10_000
    costs, matrices = rng.random((size, 4)), rng.random((size - 1, 4, 4))
    chain = tuple((x, x + 1, m) for x, m in enumerate(matrices))
    found = solve(PbqpProblem(tuple(costs), chain))
    assert found.optimal
    assert found.cost == pytest.approx(chain_cost(costs, matrices), rel=1e-12)
    parents = [int(rng.integers(x)) for x in range(1, size)]
    tree = tuple((p, x, m) for x, (p, m) in enumerate(zip(parents, matrices, strict=True), 1))
    found = solve(PbqpProblem(tuple(costs), tree))
    assert found.optimal
    assert found.cost == pytest.approx(tree_cost(costs, parents, matrices), rel=1e-12)


def test_forbidden_pairs_colour_a_graph_or_say_that_it_cannot_be():
    """A cycle of five takes three colours; two are too few."""
    different = {n: np.where(np.eye(n, dtype=bool), np.inf, 0.0) for n in (2, 3)}
    ring = [(x, (x + 1) % 5) for x in range(5)]
    for colours, wanted in ((3, 0.0), (2, np.inf)):
        edges = tuple((x, y, different[colours]) for x, y in ring)
        found = solve(PbqpProblem((np.zeros(colours),) * 5, edges))
        assert found.optimal
        assert found.cost == wanted
    forbidden = solve(PbqpProblem((np.array([np.inf, np.inf]), np.array([1.0]))))
    assert forbidden.cost == np.inf


def test_ties_take_the_first_alternative():
    assert solve(PbqpProblem((np.zeros(3), np.zeros(2)))).choice == (0, 0)
    assert solve(PbqpProblem(())).choice == ()
