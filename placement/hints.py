"""Hints: the single moves of an op or a block that save most, found by incremental simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placement.core.graph import Ints
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.engine.evaluator import Evaluator

# Moves to look at, by visits of kernels and tensors: a fraction of a second.
MOST_VISITS = 60_000_000
# Candidates are ranked by schedules without merging, so a few more than asked for are looked into.
SPARE = 8
# Final schedules have another order and merged segments: so few moves are all looked into.
FEW = 18
# What saves less than this share of the step is noise.
LEAST_SHARE = 1e-4


@dataclass(frozen=True)
class Hint:
    """Moving `ops` to `device` makes the step (or the time per sample) `saves_s` shorter."""

    ops: tuple[str, ...]
    label: str
    device: str
    saves_s: float
    value_s: float


def hints(problem: Problem, placement: Placement, most: int = 10) -> tuple[Hint, ...]:
    """The moves that save most, best first; each as if it were the only one.

    A move gives up what the placement says about order, as an edit by hand does. Ops that are
    fused or grouped with others move with them. On graphs so large that looking at all moves takes
    long, those at the critical path come first.
    """
    from placement.placers._candidates import final_s

    now_s = final_s(problem, placement)
    found: list[Hint] = []
    for units, dest, label in _ranked(problem, placement)[: most + SPARE]:
        ops = tuple(problem.graph.ops[i].name for u in units for i in problem.ops_of_unit[u])
        device = problem.machine.devices[dest].name
        value_s = final_s(problem, moved(placement, ops, device))
        if value_s < now_s * (1 - LEAST_SHARE):
            saves_s = now_s - value_s if math.isfinite(now_s) else 0.0
            found.append(Hint(ops, label, device, saves_s, value_s))
    return tuple(sorted(found, key=lambda hint: (hint.value_s, len(hint.ops)))[:most])


def moved(placement: Placement, ops: Sequence[str], device: str) -> Placement:
    """The placement with some ops on another device and no order of its own."""
    from placement.core.placement import Placement

    device_of = {**placement.device_of, **dict.fromkeys(ops, device)}
    return Placement(placement.graph, placement.machine, device_of)


def _ranked(problem: Problem, placement: Placement) -> list[tuple[list[int], int, str]]:
    """Moves (units, device, label) that shorten the unmerged schedule, the best first."""
    from placement.core.placement import Placement
    from placement.engine.evaluator import Evaluator
    from placement.placers._chain import start_of

    start = start_of(problem, Placement(placement.graph, placement.machine, placement.device_of))
    evaluator = Evaluator(problem, start.order)
    base_s = evaluator.value_s(start.devices)
    visits = len(problem.kernels.ops) + problem.kernels.arrays.consumers.size
    left = max(20, MOST_VISITS // max(1, visits))
    ranked: list[tuple[float, int, list[int], int, str]] = []
    for units, label in _movable(problem, evaluator):
        for dest in range(problem.num_devices):
            kept = start.devices[units]
            if (kept == dest).all() or not problem.allowed[units, dest].all():
                continue
            left -= 1
            value_s = evaluator.after_move_s(units, dest, base_s)
            ranked.append((value_s, len(ranked), units.tolist(), dest, label))
        if left <= 0:
            break
    limit_s = np.inf if len(ranked) <= FEW else base_s * (1 - LEAST_SHARE)
    ranked = [move for move in ranked if move[0] <= limit_s]
    return [move[2:] for move in sorted(ranked, key=lambda move: move[:2])]


def _movable(problem: Problem, evaluator: Evaluator) -> Iterator[tuple[Ints, str]]:
    """Single units, those on the critical path first, and the blocks of scopes."""
    from placement.placers._coarsen import scopes

    critical = dict.fromkeys(evaluator.critical_units().tolist())
    rest = [u for u in range(problem.num_units) if u not in critical]
    for path, units in scopes(problem).items():
        yield units, path
    for unit in [*critical, *rest]:
        ops = problem.ops_of_unit[unit]
        if ops:
            yield np.array([unit]), problem.graph.ops[ops[-1]].name
