"""Clusters of units as an environment: what they may, weigh, send and are worth."""

from dataclasses import replace

import numpy as np
import pytest

from placement.learning.environment import Edges, coarser
from placement.learning.simulated import simulated
from placement.learning.training import at_random
from placement.search.coarsening import levels
from tests.instances import random_problem


def ten(**more):
    """Ten ops on three devices, each a unit."""
    return simulated(random_problem(1, num_ops=10, num_devices=3, **more))


def test_clusters_are_worth_what_their_units_are():
    for seed in range(6):
        problem = random_problem(seed, num_ops=20, num_devices=3, with_groups=True, with_gaps=True)
        environment = simulated(problem)
        for cluster in levels(problem):
            coarse = coarser(environment, cluster)
            devices = at_random(coarse, 8, np.random.default_rng(seed))
            finer = devices[:, coarse.cluster]
            assert coarse.values_s(devices).tolist() == environment.values_s(finer).tolist()
            placement = environment.placement_of(finer[0])
            assert coarse.placement_of(devices[0]) == placement
            kernels = problem.kernel_devices(placement)
            assert devices[0][coarse.unit_of_kernel].tolist() == kernels.tolist()


def test_seconds_and_bytes_of_a_cluster_are_sums_and_edges_within_it_are_gone():
    environment = ten()
    cluster = np.array([0, 0, 1, 1, 1, 2, 3, 3, 3, 3])
    coarse = coarser(environment, cluster)
    for c in range(4):
        members = np.flatnonzero(cluster == c)
        assert coarse.unit_s[c].tolist() == environment.unit_s[members].sum(axis=0).tolist()
        assert coarse.size_bytes[c] == environment.size_bytes[members].sum()
    expected: dict[tuple[int, int], float] = {}
    edges = environment.edges
    for a, b, num_bytes in zip(edges.source, edges.target, edges.num_bytes, strict=True):
        pair = (int(cluster[a]), int(cluster[b]))
        if pair[0] != pair[1]:
            expected[pair] = expected.get(pair, 0.0) + num_bytes
    pairs = zip(coarse.edges.source.tolist(), coarse.edges.target.tolist(), strict=True)
    assert dict(zip(pairs, coarse.edges.num_bytes.tolist(), strict=True)) == expected


def test_edges_by_hand():
    edges = Edges(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), np.array([1.0, 2.0, 4.0, 8.0]))
    between = edges.between(np.array([0, 1, 1, 0]))
    assert (between.source.tolist(), between.target.tolist()) == ([0, 1], [1, 0])
    assert between.num_bytes.tolist() == [3.0, 12.0]
    assert edges.between(np.zeros(4, dtype=np.int64)).num == 0


def test_a_cluster_may_be_where_all_its_units_may():
    environment = ten()
    environment.allowed[:] = True
    environment.allowed[0, 0] = environment.allowed[1, 1] = False
    coarse = coarser(environment, np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 1]))
    assert coarse.allowed.tolist() == [[False, False, True], [True, True, True]]


@pytest.mark.parametrize("by", ["support", "size"])
def test_clusters_that_fit_nowhere_come_apart_and_the_others_stay(by):
    environment = ten()
    if by == "support":
        environment.allowed[2] = [True, False, False]
        environment.allowed[4] = [False, True, False]
    else:
        sizes = np.ones(10)
        sizes[[2, 4]] = 6.0
        environment = replace(environment, size_bytes=sizes, limit_bytes=np.full(3, 9.0))
    coarse = coarser(environment, np.array([5, 5, 2, 2, 2, 9, 9, 9, 9, 9]))
    # Numbered by their first unit: {0, 1}, then 2, 3 and 4 alone, then the last five.
    assert coarse.cluster.tolist() == [0, 0, 1, 2, 3, 4, 4, 4, 4, 4]
    assert coarse.allowed.any(axis=1).all()


def test_memory_of_clusters_together_is_looked_at():
    environment = replace(ten(), size_bytes=np.ones(10), limit_bytes=np.array([4.0, 4.0, np.inf]))
    assert environment.is_tight
    coarse = coarser(environment, np.arange(10) // 2)
    devices = np.random.default_rng(0).integers(3, size=(200, 5))
    held = [[2 * int((row == d).sum()) for d in range(3)] for row in devices]
    fits = [h[0] <= 4 and h[1] <= 4 for h in held]
    assert np.isfinite(coarse.values_s(devices)).tolist() == fits
    assert 0 < sum(fits) < 200
    assert not replace(environment, limit_bytes=np.array([10.0, 10.0, np.inf])).is_tight
