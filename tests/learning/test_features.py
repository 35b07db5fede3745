"""Features of units, each against a plain recomputation, and the parts that can be left out."""

import math
from dataclasses import replace

import numpy as np
import pytest

from placement.core.graph import Graph, Op, Tensor
from placement.core.problem import own_kernels
from placement.learning.environment import Edges, coarser
from placement.learning.features import (
    degrees,
    fractal_dimensions,
    kind_shares,
    output_shapes,
    positions,
    scaled,
    unit_features,
    waves,
)
from placement.learning.simulated import simulated
from tests.instances import random_problem


def edges_of(*pairs):
    source, target = (np.array(end, dtype=np.int64) for end in zip(*pairs, strict=True))
    return Edges(source, target, np.ones(len(pairs)))


def random_environment(seed, num_ops=14):
    return simulated(random_problem(seed, num_ops=num_ops, with_groups=seed % 2 == 1))


@pytest.mark.parametrize("seed", range(4))
def test_kinds_are_the_mean_of_one_hots_and_degrees_are_counted(seed):
    environment = random_environment(seed)
    kernels = environment.problem.kernels
    kinds = sorted({op.kind for op in kernels.ops})
    shares, counts = kind_shares(environment), degrees(environment.edges, environment.num_units)
    pairs = {
        (int(environment.unit_of_kernel[a]), int(environment.unit_of_kernel[b]))
        for a in range(len(kernels.ops))
        for b in kernels.successors[a]
    }
    for unit in range(environment.num_units):
        members = [
            op.kind
            for op, its in zip(kernels.ops, environment.unit_of_kernel, strict=True)
            if its == unit
        ]
        assert shares[unit].tolist() == [members.count(k) / len(members) for k in kinds]
        between = [(a, b) for a, b in pairs if a != b]
        assert counts[unit].tolist() == [
            sum(b == unit for _, b in between),
            sum(a == unit for a, _ in between),
        ]


def plain_dimension(edges, num, unit, furthest):
    """From all distances by Floyd and Warshall, and numpy's own least squares."""
    distance = np.full((num, num), np.inf)
    np.fill_diagonal(distance, 0)
    distance[edges.source, edges.target] = distance[edges.target, edges.source] = 1
    for k in range(num):
        distance = np.minimum(distance, distance[:, k : k + 1] + distance[k])
    reached = distance[unit][np.isfinite(distance[unit])]
    radii = range(1, min(furthest, int(reached.max())) + 1)
    if len(radii) < 2:
        return 0.0
    counts = [(reached <= r).sum() for r in radii]
    return np.polyfit(np.log(radii), np.log(counts), 1)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("furthest", [3, 16])
def test_fractal_dimensions_are_slopes_of_counts_of_neighbours(seed, furthest):
    environment = random_environment(seed)
    num = environment.num_units
    found = fractal_dimensions(environment.edges, num, furthest)
    plain = [plain_dimension(environment.edges, num, unit, furthest) for unit in range(num)]
    assert found == pytest.approx(plain)


def test_a_line_seen_from_its_end_and_a_star_have_known_dimensions():
    line = edges_of((0, 1), (1, 2))
    # From an end 2 and then 3 units are within 1 and 2 edges.
    ends = math.log(3 / 2) / math.log(2)
    assert fractal_dimensions(line, 3) == pytest.approx([ends, 0.0, ends])
    star = edges_of((0, 1), (0, 2), (0, 3), (0, 4))
    assert fractal_dimensions(star, 5)[0] == 0.0
    assert fractal_dimensions(star, 5)[1] == pytest.approx(math.log(5 / 2) / math.log(2))


def test_positions_are_topological_and_take_the_lower_number_first():
    assert positions(edges_of((3, 0), (0, 2), (3, 1)), 5).tolist() == [1, 2, 3, 0, 4]
    # 1 and 2 wait for each other; the lower one goes first.
    assert positions(edges_of((0, 1), (1, 2), (2, 1), (2, 3)), 4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(4))
def test_every_position_is_taken_once_whatever_waits_for_what(seed):
    edges = random_environment(seed).edges
    found = positions(edges, 14)
    assert sorted(found) == list(range(14))
    if seed % 2 == 0:
        assert (found[edges.source] < found[edges.target]).all()


def test_waves_are_sines_and_cosines_of_growing_wavelength():
    found = waves(np.array([0, 3, 250]))
    for row, position in zip(found, (0, 3, 250), strict=True):
        angles = [position / 10_000 ** (i / 8) for i in range(8)]
        assert row == pytest.approx([*map(math.sin, angles), *map(math.cos, angles)])
    assert len({tuple(row) for row in waves(np.arange(500)).round(6).tolist()}) == 500


def shaped_environment():
    ops = tuple(Op(name, "Conv") for name in "abcd")
    tensors = (
        Tensor("x", None, ("a",), 4, (9, 9)),
        Tensor("a0", "a", ("b",), 4, (1, 3, 8, 8)),
        Tensor("b0", "b", ("c",), 4, (1, 16)),
        Tensor("b1", "b", ("d",), 4, (7,)),
        Tensor("c0", "c", (), 4, None, is_output=True),
        Tensor("d0", "d", (), 4, (1, 2, 3, 4, 5, 6, 7, 8), is_output=True),
    )
    graph = Graph("shaped", ops, tensors)
    problem = random_problem(0, num_ops=4)
    return simulated(replace(problem, graph=graph, kernels=graph, sources=own_kernels(graph)))


def test_shapes_are_of_the_last_tensor_of_a_unit_padded_and_cut():
    environment = shaped_environment()
    assert output_shapes(environment).tolist() == [
        [1, 3, 8, 8, 0, 0],
        [1, 16, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [1, 2, 3, 4, 5, 6],
    ]
    joined = coarser(environment, np.array([0, 0, 1, 1]))
    assert output_shapes(joined).tolist() == [[1, 16, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6]]


def test_columns_are_scaled_and_those_without_differences_are_zero():
    found = scaled(np.array([[1.0, 5.0], [3.0, 5.0]]))
    assert found.tolist() == [[-1.0, 0.0], [1.0, 0.0]]


def test_parts_are_left_out_by_name():
    environment = shaped_environment()
    whole = unit_features(environment)
    assert whole.shape == (4, 1 + 3 + 16 + 6)
    assert whole.dtype == np.float32
    for part, num_columns, columns in (
        ("structure", 3, slice(1, 4)),
        ("id", 16, slice(4, 20)),
        ("shape", 6, slice(20, 26)),
    ):
        assert whole[:, columns].shape[1] == num_columns
        left = unit_features(environment, part)
        assert left.tolist() == np.delete(whole, columns, axis=1).tolist()
