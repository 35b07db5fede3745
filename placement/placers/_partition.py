"""Placement by graph partitioners: parts of even work and few transfers, and what they leave open.

Partitioners know neither directions nor memory, pins or unlike devices. So the fastest device, the
two fastest, and so on get one part each, the rules are restored, and the best of these placements
is taken.
"""

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers.base import Progress, Report
from placement.search.feasible import final_s, require_room_for_weights
from placement.search.rule_repair import by_the_rules

# Weights are whole numbers that add up to about this.
TOTAL = 1e6


class UnitGraph(NamedTuple):
    """Units (U) with whole weights and undirected edges as CSR rows, each edge in both rows."""

    weight: Ints
    ptr: Ints
    neighbour: Ints
    edge_weight: Ints


# Part of each unit, given a graph and the share of the work that each part should have.
Partition = Callable[[UnitGraph, list[float]], Ints]


def library(name: str) -> ModuleType:
    """An optional library; ValueError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ValueError(
            f"The library {name!r} is not installed; needs: pip install {name}."
        ) from None


class Cut(NamedTuple):
    """What came of a partition: the `part` of each unit (U,), the device and the share of the work
    of each part, and the placement by the rules with its seconds, or why there is none."""

    by: str
    part: Ints
    used: Ints
    shares: Floats
    placement: Placement | None
    value_s: float
    refusal: ValueError | None

    @property
    def devices(self) -> Ints:
        """The device of each unit (U,) before any rule is looked at."""
        found: Ints = self.used[self.part]
        return found


def partitioned(problem: Problem, partitions: Mapping[str, Partition], report: Report) -> Placement:
    """The best placement whose parts come from partitioners; ValueError if memory is too small."""
    found: list[Cut] = []
    for num, cuts in enumerate(rounds(problem, unit_graph(problem), partitions), 1):
        found += cuts
        best_s = min(cut.value_s for cut in found)
        is_any = any(cut.placement is not None for cut in found)
        if is_any and not report(Progress(best_s, step=num, of=problem.num_devices)):
            break
    return best_of(found)


def best_of(cuts: Sequence[Cut]) -> Placement:
    """The best placement, the first of equals; the first refusal where there is none."""
    placements = [cut for cut in cuts if cut.placement is not None]
    if not placements:
        refusal = next(cut.refusal for cut in cuts)
        assert refusal is not None
        raise refusal
    best = min(placements, key=lambda cut: cut.value_s).placement
    assert best is not None
    return best


def rounds(
    problem: Problem, graph: UnitGraph, partitions: Mapping[str, Partition]
) -> Iterator[list[Cut]]:
    """What comes of a part for the fastest device, the two fastest, and so on."""
    require_room_for_weights(problem)
    speed = speeds(problem)
    fastest = np.argsort(-speed, kind="stable")
    for num in range(1, problem.num_devices + 1):
        used = fastest[:num]
        shares = speed[used] / speed[used].sum()
        if num > 1 and shares[-1] * graph.weight.sum() < graph.weight.max():
            # The largest unit exceeds a fair share: more devices would not lower the largest load.
            break
        parts = {"": np.zeros(problem.num_units, dtype=np.int64)}
        if num > 1 and problem.num_units > 1:
            parts = {by: divide(graph, shares.tolist()) for by, divide in partitions.items()}
        yield [_cut(problem, by, part, used, shares) for by, part in parts.items()]


def _cut(problem: Problem, by: str, part: Ints, used: Ints, shares: Floats) -> Cut:
    try:
        placement = by_the_rules(problem, used[part])
    except ValueError as error:
        return Cut(by, part, used, shares, None, math.inf, error)
    return Cut(by, part, used, shares, placement, final_s(problem, placement), None)


def unit_graph(problem: Problem) -> UnitGraph:
    """Units weighted by least seconds, edges by mean seconds to move what passes between them."""
    seconds = np.where(problem.allowed, problem.unit_s, np.inf).min(axis=1, initial=np.inf)
    rows: list[dict[int, float]] = [{} for _ in range(problem.num_units)]
    for u, v, edge_s in _edges(problem):
        rows[u][v] = rows[u].get(v, 0.0) + edge_s
        rows[v][u] = rows[v].get(u, 0.0) + edge_s
    flat = [(v, row[v]) for row in rows for v in sorted(row)]
    edge_weight = _whole(np.array([edge_s for _, edge_s in flat], dtype=np.float64))
    return UnitGraph(
        np.maximum(1, _whole(seconds)),
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        np.array([v for v, _ in flat], dtype=np.int64),
        np.maximum(1, edge_weight),
    )


def _edges(problem: Problem) -> Iterator[tuple[int, int, float]]:
    """Pairs of units and the seconds of a tensor that goes from one to the other, once each."""
    costs, arrays, unit = problem.costs, problem.kernels.arrays, problem.unit_of_kernel
    pairs = max(1, problem.num_devices * (problem.num_devices - 1))
    latency_s, s_per_byte = costs.latency_s.sum() / pairs, costs.s_per_byte.sum() / pairs
    for t, producer in enumerate(arrays.producer.tolist()):
        if producer >= 0:
            consumers = arrays.consumers[arrays.consumer_ptr[t] : arrays.consumer_ptr[t + 1]]
            for v in np.unique(unit[consumers]).tolist():
                if v != unit[producer]:
                    seconds = float(latency_s + arrays.tensor_bytes[t] * s_per_byte)
                    yield int(unit[producer]), v, seconds


def speeds(problem: Problem) -> Floats:
    """Speed of each device (D,): the least time of all it may run over its own time for it."""
    unit_s = np.where(problem.allowed, problem.unit_s, 0.0)
    least = np.where(problem.allowed, problem.unit_s, np.inf).min(axis=1, initial=np.inf)
    work = (least[:, None] * problem.allowed).sum(axis=0)
    own = unit_s.sum(axis=0)
    relative: Floats = np.divide(work, own, out=np.full(len(own), 1e-9), where=own > 0)
    return np.maximum(relative, 1e-9)


def _whole(values: Floats) -> Ints:
    return np.rint(values * (TOTAL / max(float(values.sum()), 1e-300))).astype(np.int64)
