"""Heavy-edge matching: neighbours that exchange most become one (compiled)."""

import numpy as np

from placement.compiled.jit import jit
from placement.core.costs import Floats
from placement.core.graph import Ints


@jit
def match(
    num_nodes: int, source: Ints, target: Ints, weight: Floats, work_s: Floats, most_s: float
) -> Ints:
    """Cluster of each node (N,), numbered by first member; clusters hold one or two nodes.

    Nodes are taken in order, each with its heaviest unmatched neighbour whose work with its own is
    at most `most_s`; ties go to the lower number. Karypis and Kumar, SIAM J. Sci. Comput. 1998.
    """
    ptr = np.zeros(num_nodes + 1, dtype=np.int64)
    for i in range(source.size):
        ptr[source[i] + 1] += 1
        ptr[target[i] + 1] += 1
    ptr = np.cumsum(ptr)
    place, other = ptr.copy(), np.empty(2 * source.size, dtype=np.int64)
    heavy = np.empty(2 * source.size)
    for i in range(source.size):
        a, b = source[i], target[i]
        other[place[a]], heavy[place[a]] = b, weight[i]
        other[place[b]], heavy[place[b]] = a, weight[i]
        place[a] += 1
        place[b] += 1
    cluster = np.full(num_nodes, -1, dtype=np.int64)
    num_clusters = 0
    for a in range(num_nodes):
        if cluster[a] >= 0:
            continue
        best, best_weight = -1, -1.0
        for j in range(ptr[a], ptr[a + 1]):
            b = other[j]
            if cluster[b] >= 0 or b == a or work_s[a] + work_s[b] > most_s:
                continue
            if heavy[j] > best_weight or (heavy[j] == best_weight and b < best):
                best, best_weight = b, heavy[j]
        cluster[a] = num_clusters
        if best >= 0:
            cluster[best] = num_clusters
        num_clusters += 1
    return cluster


@jit
def find_chains(num_nodes: int, source: Ints, target: Ints) -> Ints:
    """Cluster of each node (N,): the only reader of an only maker belongs to its chain.

    Nodes must be numbered so that edges go up; edges from a node to a lower one break chains.
    """
    readers, makers = np.zeros(num_nodes, dtype=np.int64), np.zeros(num_nodes, dtype=np.int64)
    maker = np.full(num_nodes, -1, dtype=np.int64)
    for i in range(source.size):
        readers[source[i]] += 1
        makers[target[i]] += 1
        maker[target[i]] = source[i]
    cluster = np.empty(num_nodes, dtype=np.int64)
    num_clusters = 0
    for b in range(num_nodes):
        a = maker[b]
        if makers[b] == 1 and 0 <= a < b and readers[a] == 1:
            cluster[b] = cluster[a]
        else:
            cluster[b] = num_clusters
            num_clusters += 1
    return cluster
