"""Hints: the single moves of an op or a block that save most, found by incremental simulation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placement.core.graph import Ints
    from placement.core.placement import Placement
    from placement.core.problem import Problem

# Moves to look at, by visits of kernels and tensors: a fraction of a second.
MOST_VISITS = 60_000_000
# Candidates are ranked by schedules without merging, so a few more than asked for are looked into.
SPARE = 8
# Final schedules have another order and merged segments: so few moves are all looked into.
FEW = 18
# What saves less than this share of the step is noise.
LEAST_SHARE = 1e-4
MOST_CALLS_MOVES = 150


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
    if problem.execution == "call":
        # Calls have a cost model of their own, by which each move is valued.
        ranked = _all_moves(problem, placement)
    else:
        ranked = _ranked(problem, placement)[: most + SPARE]
    for units, dest, label in ranked:
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


def _all_moves(problem: Problem, placement: Placement) -> list[tuple[list[int], int, str]]:
    """The first moves (units, device, label) of scopes and units, as many as are soon valued."""
    from placement.placers._chain import start_of

    devices = start_of(problem, placement).devices
    nothing = np.zeros(0, dtype=np.int64)
    moves = (
        (units.tolist(), dest, label)
        for units, label in _movable(problem, nothing)
        for dest in range(problem.num_devices)
        if (devices[units] != dest).any() and problem.allowed[units, dest].all()
    )
    return list(islice(moves, MOST_CALLS_MOVES))


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
    for units, label in _movable(problem, evaluator.critical_units()):
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


def _movable(problem: Problem, critical: Ints) -> Iterator[tuple[Ints, str]]:
    """Units on the critical path, blocks of scopes, then the other units."""
    from placement.placers._coarsen import scopes

    def single(units: Iterable[int]) -> Iterator[tuple[Ints, str]]:
        for unit in units:
            ops = problem.ops_of_unit[unit]
            if ops:
                yield np.array([unit]), problem.graph.ops[ops[-1]].name

    first = list(dict.fromkeys(critical.tolist()))
    yield from single(first)
    for path, units in scopes(problem).items():
        yield units, path
    yield from single(sorted(set(range(problem.num_units)) - set(first)))
