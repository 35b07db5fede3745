"""Parsing of a graph into clusters by the scores of its edges (compiled)."""

import numpy as np

from placement.compiled.jit import inner, jit
from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.environment import Bools


@inner
def _root(parent: Ints, i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@jit
def parsed(source: Ints, target: Ints, score: Floats, allowed: Bools) -> tuple[Ints, Ints]:
    """Cluster of each unit (U,), numbered by first member, and the edge it keeps, -1 for none.

    A unit keeps the best of its edges, the first of equals. Units that kept edges connect are a
    cluster; edges that would leave it without an allowed device (U, D) connect nothing, of which
    the best are looked at first.
    """
    num_units = allowed.shape[0]
    kept = np.full(num_units, -1, np.int64)
    for e in range(source.size):
        for unit in (source[e], target[e]):
            if kept[unit] < 0 or score[e] > score[kept[unit]]:
                kept[unit] = e
    parent, joint = np.arange(num_units), allowed.copy()
    for e in np.argsort(-score, kind="mergesort"):
        a, b = source[e], target[e]
        if kept[a] != e and kept[b] != e:
            continue
        a, b = _root(parent, a), _root(parent, b)
        if a != b and (joint[a] & joint[b]).any():
            first, last = min(a, b), max(a, b)
            parent[last] = first
            joint[first] &= joint[last]
    cluster, number, num = np.empty(num_units, np.int64), np.full(num_units, -1, np.int64), 0
    for unit in range(num_units):
        root = _root(parent, unit)
        if number[root] < 0:
            number[root] = num
            num += 1
        cluster[unit] = number[root]
    return cluster, kept
