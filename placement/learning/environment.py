"""Environments: what a learner may know of a problem, and what its placements are worth.

An environment has units that move whole, devices, which of them may hold which unit, edges along
which bytes flow, and values of many placements at once. Its devices are the machine's for problems
of execution "op" and "segment" (`simulated.py`), and those of the splits for workloads
(`workload.py`); `Coarse` joins units of another environment into clusters.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.parallel.calls import Call
from placement.parallel.executor import HERE, Executor, Job, num_cores

Bools = NDArray[np.bool_]


class Edges:
    """Pairs of units between which bytes flow, each pair once, (E,)."""

    def __init__(self, source: Ints, target: Ints, num_bytes: Floats) -> None:
        self.source, self.target, self.num_bytes = source, target, num_bytes

    @property
    def num(self) -> int:
        return len(self.source)

    def between(self, cluster: Ints) -> "Edges":
        """The edges between clusters of the units (U,)."""
        num = int(cluster.max(initial=-1)) + 1
        source, target = cluster[self.source], cluster[self.target]
        apart = source != target
        keys, which = np.unique(source[apart] * num + target[apart], return_inverse=True)
        num_bytes = np.bincount(which, self.num_bytes[apart], minlength=keys.size)
        return Edges(keys // num, keys % num, num_bytes.astype(np.float64))


@dataclass(frozen=True, eq=False, kw_only=True)
class Environment(ABC):
    """Units (U) on devices (D).

    `unit_s` and `allowed` are (U, D): seconds of compute, and whether support, pins and the unit's
    own size let it be there. `size_bytes` (U,) are weights, `limit_bytes` (D,) the memory, infinite
    where there is no limit. `unit_of_kernel` (K,) leads to the kernels of the problem. What many
    placements are worth is worked out by the `executor`.
    """

    problem: Problem
    unit_of_kernel: Ints
    unit_s: Floats
    allowed: Bools
    size_bytes: Floats
    limit_bytes: Floats
    edges: Edges
    executor: Executor = HERE

    @property
    def num_units(self) -> int:
        return int(self.allowed.shape[0])

    @property
    def num_devices(self) -> int:
        return int(self.allowed.shape[1])

    @cached_property
    def is_tight(self) -> bool:
        """Whether units that may each be on a device may be too large for it together."""
        together = np.where(self.allowed, self.size_bytes[:, None], 0.0).sum(axis=0)
        return bool((together > self.limit_bytes).any())

    def values_s(self, devices: Ints) -> Floats:
        """Seconds of the objective of each placement (N, U), infinite where one may not be."""
        units = np.arange(self.num_units)
        value_s = self._seconds(np.ascontiguousarray(devices, dtype=np.int64))
        value_s[~self.allowed[units, devices].all(axis=1)] = np.inf
        if self.is_tight:
            for d in np.flatnonzero(np.isfinite(self.limit_bytes)):
                value_s[(devices == d) @ self.size_bytes > self.limit_bytes[d]] = np.inf
        return value_s

    def suited(self, devices: Ints) -> "Environment":
        """This environment with what placements leave open chosen to suit one of them (U,)."""
        return self

    @abstractmethod
    def _seconds(self, devices: Ints) -> Floats:
        """The same for placements whose units are all where they may be."""

    @abstractmethod
    def placement_of(self, devices: Ints) -> Placement:
        """The placement of the problem with each unit on a device (U,)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Coarse(Environment):
    """Clusters of the units of a finer environment, which move as one; made by `coarser`."""

    finer: Environment
    cluster: Ints

    def suited(self, devices: Ints) -> "Environment":
        return replace(self, finer=self.finer.suited(devices[self.cluster]))

    def _seconds(self, devices: Ints) -> Floats:
        # Rows in a row, as all placements are, or what values them would be compiled once more.
        return self.finer._seconds(np.take(devices, self.cluster, axis=1))

    def placement_of(self, devices: Ints) -> Placement:
        return self.finer.placement_of(devices[self.cluster])


def coarser(finer: Environment, cluster: Ints) -> Coarse:
    """The environment of clusters (U,) of units; those that no device may hold stay apart."""
    cluster = _fitting(finer, cluster)
    num = int(cluster.max(initial=-1)) + 1
    unit_s = np.zeros((num, finer.num_devices))
    np.add.at(unit_s, cluster, finer.unit_s)
    return Coarse(
        problem=finer.problem,
        unit_of_kernel=cluster[finer.unit_of_kernel],
        unit_s=unit_s,
        allowed=_allowed_together(finer, cluster),
        size_bytes=np.bincount(cluster, finer.size_bytes, minlength=num).astype(np.float64),
        limit_bytes=finer.limit_bytes,
        executor=finer.executor,
        edges=finer.edges.between(cluster),
        finer=finer,
        cluster=cluster,
    )


def _allowed_together(finer: Environment, cluster: Ints) -> Bools:
    num = int(cluster.max(initial=-1)) + 1
    allowed = np.ones((num, finer.num_devices), dtype=np.bool_)
    np.logical_and.at(allowed, cluster, finer.allowed)
    size_bytes = np.bincount(cluster, finer.size_bytes, minlength=num)
    together: Bools = allowed & (size_bytes[:, None] <= finer.limit_bytes)
    return together


def _fitting(finer: Environment, cluster: Ints) -> Ints:
    """The clusters, numbered by their first unit, without those that fit nowhere as a whole."""
    fits: Bools = np.asarray(_allowed_together(finer, cluster).any(axis=1))
    alone = np.flatnonzero(~fits[cluster])
    apart = cluster.copy()
    apart[alone] = int(cluster.max(initial=-1)) + 1 + np.arange(alone.size)
    _, first, number = np.unique(apart, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    found: Ints = rank[number]
    return found


def on_all_cores(value: Callable[[int, Ints, Floats], None], devices: Ints) -> Floats:
    """Values of placements (N, U), a share of them from each core: value(core, share, values)."""
    num = max(1, min(num_cores(), len(devices)))
    found_s = np.empty(len(devices))
    parts = zip(np.array_split(devices, num), np.array_split(found_s, num), strict=True)
    if num == 1:
        value(0, devices, found_s)
        return found_s
    with ThreadPoolExecutor(num) as pool:
        for done in [pool.submit(value, core, *part) for core, part in enumerate(parts)]:
            done.result()
    return found_s


def valued(
    executor: Executor,
    devices: Ints,
    num_visits: int,
    here: Callable[[Ints], Floats],
    away: Callable[[Ints], Call],
) -> Floats:
    """Values of placements (N, U), each of which takes so many visits, by whoever works them out:
    all of them here, or shares of them by calls."""
    num_parts = min(len(devices), executor.num_parts(len(devices) * num_visits))
    if num_parts < 2:
        return here(devices)
    jobs = [
        Job(here=lambda stop, some=some: here(some), away=partial(away, some))  # type: ignore[misc]
        for some in np.array_split(devices, num_parts)
    ]
    return np.concatenate(executor.each(jobs))
