"""Coarsening: units that searches move together, so that graphs of 100 000 ops can be searched.

Chains, scope blocks, and clusters by heavy-edge matching, level upon level.
"""

from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints, starts
from placement.core.problem import Problem

# Levels end where this few clusters are left, or where matching stops finding partners.
FEWEST_CLUSTERS = 16
LEAST_REDUCTION = 0.95


class Blocks(NamedTuple):
    """Groups of units (CSR): block b holds `units[ptr[b]:ptr[b + 1]]`."""

    ptr: Ints
    units: Ints

    @property
    def num(self) -> int:
        return self.ptr.size - 1

    def members(self, block: int) -> Ints:
        return self.units[self.ptr[block] : self.ptr[block + 1]]

    def of_units(self, num_units: int) -> tuple[Ints, Ints]:
        """For each unit the blocks that hold it, as CSR."""
        block_of = np.repeat(np.arange(self.num), np.diff(self.ptr))
        order = np.argsort(self.units, kind="stable")
        return starts(np.bincount(self.units, minlength=num_units)), block_of[order]


def unit_edges(problem: Problem) -> tuple[Ints, Ints, Floats]:
    """Pairs of units between which tensors flow, each pair once, and their bytes."""
    arrays, unit_of = problem.kernels.arrays, problem.unit_of_kernel
    tensor_of = np.repeat(np.arange(arrays.producer.size), np.diff(arrays.consumer_ptr))
    made = arrays.producer[tensor_of] >= 0
    source = unit_of[arrays.producer[tensor_of[made]]]
    target = unit_of[arrays.consumers[made]]
    apart = source != target
    keys, which = np.unique(source[apart] * problem.num_units + target[apart], return_inverse=True)
    num_bytes = np.bincount(which, arrays.tensor_bytes[tensor_of[made]][apart], minlength=keys.size)
    ends = np.asarray(keys // problem.num_units), np.asarray(keys % problem.num_units)
    return *ends, num_bytes.astype(np.float64)


def levels(problem: Problem) -> list[Ints]:
    """Clusters of units, finest first: each level says the cluster of every unit (U,)."""
    work_s = np.where(problem.allowed, problem.unit_s, np.inf).min(axis=1)
    return levels_of(*unit_edges(problem), work_s, problem.num_devices)


def levels_of(
    source: Ints, target: Ints, weight: Floats, work_s: Floats, num_devices: int
) -> list[Ints]:
    """The same of any edges between units that work so many seconds each, (U,)."""
    from placement.search.coarsening_compiled import find_chains, match

    # No cluster may become more than a fair part of what one device does.
    most_s = float(work_s.sum()) / (2 * num_devices)
    num = work_s.size
    cluster = np.arange(num)
    found = []
    step = find_chains(num, source, target)
    while True:
        num_before, num = num, int(step.max(initial=-1)) + 1
        cluster = step[cluster]
        if num < num_before:
            found.append(cluster)
        if num <= FEWEST_CLUSTERS or (len(found) > 1 and num > LEAST_REDUCTION * num_before):
            return found
        work_s = np.bincount(step, work_s, minlength=num).astype(np.float64)
        apart = step[source] != step[target]
        keys, which = np.unique(
            step[source[apart]] * num + step[target[apart]], return_inverse=True
        )
        weight = np.bincount(which, weight[apart], minlength=keys.size).astype(np.float64)
        source, target = keys // num, keys % num
        step = match(num, source, target, weight, work_s, most_s)
        if int(step.max(initial=-1)) + 1 == num:
            return found


def scopes(problem: Problem) -> dict[str, Ints]:
    """Units of each scope path that holds some but not all, outer scopes first."""
    members: dict[str, set[int]] = {}
    for i, op in enumerate(problem.graph.ops):
        parts = op.scope.split("/") if op.scope else []
        for n in range(1, len(parts) + 1):
            members.setdefault("/".join(parts[:n]), set()).add(int(problem.unit_of_op[i]))
    ordered = sorted(members, key=lambda path: (path.count("/"), path))
    return {
        path: np.array(sorted(members[path]), dtype=np.int64)
        for path in ordered
        if 1 < len(members[path]) < problem.num_units
    }


def blocks(problem: Problem) -> Blocks:
    """All groups worth moving as one, without repetition: clusters of every level and scopes."""
    groups: dict[tuple[int, ...], None] = {}
    for cluster in levels(problem):
        order = np.argsort(cluster, kind="stable")
        counts = np.bincount(cluster)
        for members in np.split(order, np.cumsum(counts)[:-1]):
            if 1 < members.size < problem.num_units:
                groups.setdefault(tuple(members.tolist()))
    for members in scopes(problem).values():
        groups.setdefault(tuple(members.tolist()))
    units = np.array([u for members in groups for u in members], dtype=np.int64)
    return Blocks(starts([len(members) for members in groups]), units)
