"""Genetic search over clusters, level by level from coarse to fine.

A placement is a string of devices, one per cluster of units; strings are crossed, mutated and kept
by tournament, then split into the clusters of the next finer level. Holland, "Adaptation in Natural
and Artificial Systems", 1975; the levels are those of multilevel partitioning (Karypis and Kumar,
1998). Populations are simulated over all cores, here or elsewhere.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.placers._multistart import names_of, starts
from placement.placers.base import Placer, Progress, Report, Step, quiet, setting
from placement.search.chain import start_of
from placement.search.coarsening import levels
from placement.search.feasible import best_of, limit_bytes
from placement.simulator.evaluator import values_s

# Simulations that a search may spend when nobody limits it, by visits of kernels and tensors.
DEFAULT_VISITS = 60_000_000


@dataclass(frozen=True, kw_only=True)
class Genetic(Placer):
    summary = "Crosses and mutates a population of placements, from coarse clusters to single ops"
    paper = "Holland: Adaptation in Natural and Artificial Systems, 1975"
    objectives = tuple(Objective)
    all_cores: ClassVar[bool] = True
    pseudo_code = (
        "join the ops to fewer and fewer clusters; begin with the fewest",
        "fill the population: the placements of quick methods, or of the level before, and mutants",
        "a child of two winners of a draw: each cluster from one of them; some change their device",
        "keep the best of parents and children",
        "split the clusters, and go on with what was found",
        "answer the best of the last population and of the starts",
    )

    max_iterations: int = setting(
        0, "Generations of each level; 0 takes as many as a few seconds allow, by the graph's size"
    )
    population: int = setting(40, "Placements in a generation", low=4)
    mutation: float = setting(
        0.02, "Share of clusters that change device at random in a child", low=0.0, high=1.0
    )
    start: str = setting("heft,single", "Placers to start from, separated by commas")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        evolution, best_s = Evolution(self, problem), math.inf
        for level in range(evolution.num_levels):
            bests_s = [float(each.value_s.min()) for each in evolution.generations(level)]
            if not bests_s:
                continue
            best_s = min(best_s, *bests_s)
            of = evolution.num_levels
            if not report(Progress(best_s=best_s, step=level + 1, of=of)):
                break
        return evolution.answer()

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.genetic import walk

        return walk(problem, Evolution(self, problem), most)

    def most_generations(self, problem: Problem, num_levels: int) -> int:
        """Generations of one level, where no time limit ends them."""
        if self.max_iterations:
            return self.max_iterations
        if self.time_limit_s is not None:
            return 1 << 40
        visits = len(problem.kernels.ops) + problem.kernels.arrays.consumers.size
        budget = DEFAULT_VISITS // (visits * self.population * num_levels)
        return max(2, min(budget, problem.num_units * problem.num_devices // num_levels, 200))


class Bred(NamedTuple):
    """A generation (N, U) with the seconds of each (N,); the best first, once it was selected."""

    level: int
    number: int
    num_clusters: int
    devices: Ints
    value_s: Floats


class Evolution:
    """The course of a search from coarse clusters to single units."""

    def __init__(self, placer: Genetic, problem: Problem) -> None:
        begun_s = time.perf_counter()
        self.placer, self.problem = placer, problem
        self.starts = starts(problem, names_of(placer.start))
        first = [start_of(problem, placement) for placement in self.starts]
        self.order = first[0].order
        self._rng = np.random.default_rng(placer.seed)
        self.levels = [*reversed(levels(problem)), np.arange(problem.num_units)]
        self.num_levels = len(self.levels)
        self._clock = _Clock(begun_s, placer.time_limit_s, self.num_levels)
        self._found = np.stack([start.devices for start in first])

    def generations(self, level: int) -> Iterator[Bred]:
        """What a level begins with, and each generation of it; nothing where time is over."""
        if level and self._clock.is_over(level):
            return
        placer, cluster = self.placer, self.levels[level]
        own = _Generation(self.problem, cluster, self.order, self._rng, placer)
        self._found = own.populated(self._found, placer.population)
        value_s = own.values_s(self._found)
        yield Bred(level, 0, own.num_clusters, self._found, value_s)
        for number in range(placer.most_generations(self.problem, self.num_levels)):
            if self._clock.is_over(level):
                return
            children = own.children(self._found, value_s)
            self._found, value_s = _survivors(
                np.vstack([self._found, children]),
                np.concatenate([value_s, own.values_s(children)]),
                placer.population,
            )
            yield Bred(level, number + 1, own.num_clusters, self._found, value_s)

    def answer(self) -> Placement:
        """The best of the starts and of what was found, by its final schedule."""
        order = self.order.tolist()
        ends = [self.problem.placement_of(units, order) for units in self._found[:3]]
        return best_of(self.problem, [*self.starts, *ends])


class _Clock:
    """Shares a time limit among the levels."""

    def __init__(self, begun_s: float, limit_s: float | None, num_levels: int) -> None:
        self._begun_s, self._limit_s = begun_s, limit_s
        self._num_levels = num_levels

    def is_over(self, level: int) -> bool:
        if self._limit_s is None:
            return False
        share = (time.perf_counter() - self._begun_s) / max(1e-9, self._limit_s)
        return share >= (level + 1) / self._num_levels


class _Generation:
    """Placements (N, U) whose units move by clusters (U,), and what they are worth."""

    def __init__(
        self,
        problem: Problem,
        cluster: Ints,
        order: Ints,
        rng: np.random.Generator,
        placer: Genetic,
    ) -> None:
        self.problem, self.cluster, self.order = problem, cluster, order
        self.rng, self.mutation, self._executor = rng, placer.mutation, placer.executor
        self.num_clusters = int(cluster.max(initial=-1)) + 1
        self._fallback = np.where(problem.allowed, problem.unit_s, np.inf).argmin(axis=1)
        self._bytes = np.bincount(
            problem.unit_of_kernel,
            problem.kernels.arrays.resident_bytes,
            minlength=problem.num_units,
        )

    def allowed(self, devices: Ints) -> Ints:
        """The same with units that may not run where they are on their fastest device."""
        may = self.problem.allowed[np.arange(self.problem.num_units), devices]
        return np.where(may, devices, self._fallback)

    def populated(self, found: Ints, population: int) -> Ints:
        """The placements found so far, and mutants of them up to the population."""
        rows = [*found[:population]]
        while len(rows) < population:
            parent = found[len(rows) % len(found)]
            share = min(1.0, 0.02 * 2 ** (len(rows) % 6))
            rows.append(self._mutant(parent, share))
        return np.stack([self.allowed(row) for row in rows])

    def children(self, found: Ints, value_s: Floats) -> Ints:
        """As many children as parents: two tournaments, uniform crossing by cluster, mutation."""
        num = len(found)
        pairs = self.rng.integers(num, size=(num, 2, 2))
        one, other = pairs[..., 0], pairs[..., 1]
        better = np.where(value_s[one] <= value_s[other], one, other)
        from_first = self.rng.random((num, self.num_clusters)) < 0.5
        crossed = np.where(from_first[:, self.cluster], found[better[:, 0]], found[better[:, 1]])
        return np.stack([self.allowed(self._mutant(row, self.mutation)) for row in crossed])

    def _mutant(self, devices: Ints, share: float) -> Ints:
        changes = self.rng.random(self.num_clusters) < share
        if not changes.any():
            changes[self.rng.integers(self.num_clusters)] = True
        dest = self.rng.integers(self.problem.num_devices, size=self.num_clusters)
        return np.where(changes[self.cluster], dest[self.cluster], devices)

    def values_s(self, placements: Ints) -> Floats:
        """Seconds of each, infinite where weights exceed a device's memory."""
        limits = limit_bytes(self.problem)
        value_s = values_s(self.problem, self.order, placements, self._executor)
        for i, devices in enumerate(placements):
            held = np.bincount(devices, self._bytes, minlength=limits.size)
            if (held > limits).any():
                value_s[i] = np.inf
        return value_s


def _survivors(placements: Ints, value_s: Floats, population: int) -> tuple[Ints, Floats]:
    """The best of all, each placement once, in order of value and then of age."""
    _, unique = np.unique(placements, axis=0, return_index=True)
    kept = np.sort(unique)
    kept = kept[np.argsort(value_s[kept], kind="stable")][:population]
    while len(kept) < population:
        kept = np.concatenate([kept, kept])[:population]
    return placements[kept], value_s[kept]


PLACER = Genetic
