"""Features of units and groups against a plain reading of the graph."""

import numpy as np
import pytest

from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Machine
from placement.core.problem import Problem, own_kernels
from placement.learning.environment import coarser
from placement.learning.planner_features import (
    NUM_NEIGHBOURS,
    group_features,
    kind_counts,
    neighbours,
    op_features,
    output_shapes,
    scaled_features,
)
from placement.learning.simulated import simulated
from tests.instances import random_problem


def five():
    """a -> b, c; b, c -> d; d -> e, with two outputs of a."""
    kinds = {"a": "In", "b": "Mul", "c": "Mul", "d": "Add", "e": "Out"}
    ops = tuple(Op(name, kind) for name, kind in kinds.items())
    tensors = (
        Tensor("x", None, ("a",), 4, (9, 9)),
        Tensor("ab", "a", ("b",), 8, (2, 3)),
        Tensor("ac", "a", ("c",), 8, None),
        Tensor("bd", "b", ("d",), 8, (1, 2, 3, 4, 5, 6)),
        Tensor("cd", "c", ("d",), 8, (7,)),
        Tensor("de", "d", ("e",), 8, ()),
        Tensor("y", "e", (), 8, (5, 6), is_output=True),
    )
    graph = Graph("five", ops, tensors)
    machine = Machine("one", (Device("cpu:0"), Device("cpu:1")), ())
    links = np.zeros((2, 2))
    costs = Costs(np.ones((5, 2)), np.zeros(2), links, links, "given")
    return simulated(Problem(graph, machine, costs, graph, own_kernels(graph), execution="op"))


def padded(values, length, padding):
    return [*values, *[padding] * (length - len(values))]


def shape_row(*shapes):
    cells = [padded(shape, 5, -1) for shape in shapes]
    return [size for cell in padded(cells, 5, [-1] * 5) for size in cell]


def test_op_features_of_a_graph_by_hand():
    rows = op_features(five())
    assert rows.shape == (5, 46)
    kinds = [0, 1, 1, 2, 3]
    shapes = [
        shape_row((2, 3), ()),
        shape_row((1, 2, 3, 4, 5)),
        shape_row((7,)),
        shape_row(()),
        shape_row((5, 6)),
    ]
    around = [[2, 3], [4, -1], [4, -1], [5, -2, -3], [-4]]
    for u in range(5):
        assert rows[u].tolist() == [kinds[u], *shapes[u], *padded(around[u], 20, 0)], u


def test_a_cluster_has_the_commonest_type_and_tells_of_what_leaves_it():
    environment = coarser(five(), np.array([0, 1, 1, 1, 2]))
    assert kind_counts(environment).tolist() == [[1, 0, 0, 0], [0, 2, 1, 0], [0, 0, 0, 1]]
    assert op_features(environment)[:, 0].tolist() == [0, 1, 3]
    assert output_shapes(environment)[1].tolist() == shape_row(())
    assert neighbours(environment)[:, :2].tolist() == [[2, 0], [3, -1], [-2, 0]]


def test_group_features_by_hand():
    rows = group_features(five(), np.array([0, 1, 0, 1, 1]), 3)
    between = [[1, 2, 0], [0, 2, 0], [0, 0, 0]]
    kinds = [[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]]
    shapes = [[0] * 25 for _ in range(3)]
    shapes[0][:2] = [2 + 7, 3]
    shapes[1][:5] = [1 + 5, 2 + 6, 3, 4, 5]
    for g in range(3):
        row = [*between[g], *(between[h][g] for h in range(3)), *kinds[g], *shapes[g]]
        assert rows[g].tolist() == pytest.approx([value / (max(row) + 1) for value in row]), g


@pytest.mark.parametrize("seed", range(4))
def test_group_features_against_sums_op_by_op(seed):
    environment = simulated(random_problem(seed, num_ops=30, with_groups=True))
    chance = np.random.default_rng(seed)
    groups = chance.integers(4, size=environment.num_units)
    rows = group_features(environment, groups, 5)
    kernels, unit_of = environment.problem.kernels, environment.unit_of_kernel
    pairs = set()
    for tensor in kernels.tensors:
        for consumer in tensor.consumers if tensor.producer else ():
            maker, reader = (unit_of[kernels.index[name]] for name in (tensor.producer, consumer))
            if maker != reader:
                pairs.add((maker, reader))
    names = list(dict.fromkeys(op.kind for op in kernels.ops))
    for g in range(5):
        to = [sum(groups[a] == g and groups[b] == h for a, b in pairs) for h in range(5)]
        fro = [sum(groups[a] == h and groups[b] == g for a, b in pairs) for h in range(5)]
        inside = [op.kind for k, op in enumerate(kernels.ops) if groups[unit_of[k]] == g]
        row = [*to, *fro, *(inside.count(name) for name in names), *[0] * 25]
        assert rows[g].tolist() == pytest.approx([value / (max(row) + 1) for value in row])


def test_no_more_neighbours_are_told_than_there_is_room_for():
    ops = tuple(Op(f"o{i}", "A") for i in range(30))
    tensors = (Tensor("t", "o0", tuple(op.name for op in ops[1:]), 8),)
    graph = Graph("star", ops, tensors)
    costs = Costs(np.ones((30, 1)), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), "given")
    machine = Machine("one", (Device("cpu:0"),), ())
    environment = simulated(
        Problem(graph, machine, costs, graph, own_kernels(graph), execution="op")
    )
    assert neighbours(environment)[0].tolist() == list(range(2, 2 + NUM_NEIGHBOURS))


def test_scaled_features_are_of_like_size_whatever_the_unit_of_time():
    problem = random_problem(3, num_ops=30, num_devices=3, with_gaps=True)
    rows = scaled_features(simulated(problem))
    assert np.isfinite(rows).all()
    assert np.abs(rows).max() < 10
    one = scaled_features(simulated(random_problem(0, num_ops=1)))
    assert np.isfinite(one).all()
