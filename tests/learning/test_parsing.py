"""Parsing into clusters, against its definition in plain Python."""

import random

import numpy as np
import pytest

from placement.learning.compiled.parsing import parsed


def by_definition(pairs, scores, allowed):
    """Each unit's best edge; then sets that are joined edge by edge, the best edge first."""
    num = len(allowed)
    kept = []
    for unit in range(num):
        own = [e for e, pair in enumerate(pairs) if unit in pair]
        kept.append(max(own, key=lambda e: (scores[e], -e), default=-1))
    sets = [{unit} for unit in range(num)]
    for e in sorted(set(kept) - {-1}, key=lambda e: (-scores[e], e)):
        one, other = (next(s for s in sets if unit in s) for unit in pairs[e])
        together = np.logical_and.reduce([allowed[unit] for unit in one | other])
        if one is not other and together.any():
            sets.remove(other)
            one |= other
    sets.sort(key=min)
    return [next(i for i, s in enumerate(sets) if unit in s) for unit in range(num)], kept


def parse(pairs, scores, allowed):
    source, target = (np.array([p[i] for p in pairs], dtype=np.int64) for i in (0, 1))
    cluster, kept = parsed(source, target, np.array(scores, dtype=np.float64), allowed)
    return cluster.tolist(), kept.tolist()


@pytest.mark.parametrize("seed", range(30))
def test_clusters_are_those_of_the_definition(seed):
    rng = random.Random(seed)
    num = rng.randrange(1, 12)
    pairs = [(a, b) for a in range(num) for b in range(a + 1, num) if rng.random() < 0.25]
    # Few different scores, so that many are equal.
    scores = [rng.randrange(4) / 4 for _ in pairs]
    allowed = np.ones((num, 3), dtype=np.bool_)
    if seed % 2:
        for unit in range(num):
            allowed[unit, rng.sample(range(3), rng.randrange(3))] = False
    assert parse(pairs, scores, allowed) == by_definition(pairs, scores, allowed)


def test_one_pass_does_not_make_one_cluster_of_a_connected_graph():
    anywhere = np.ones((4, 2), dtype=np.bool_)
    cluster, kept = parse([(0, 1), (1, 2), (2, 3)], [0.9, 0.1, 0.8], anywhere)
    assert cluster == [0, 0, 1, 1]
    assert kept == [0, 0, 2, 2]
    assert parse([], [], anywhere)[0] == [0, 1, 2, 3]


def test_units_that_share_no_device_stay_apart():
    allowed = np.array([[True, False], [True, True], [False, True]])
    assert parse([(0, 1), (1, 2)], [0.5, 0.9], allowed)[0] == [0, 1, 1]
