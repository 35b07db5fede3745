"""Hints: the single moves of an op or a block that save most, each valued by its final schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from placement.core.objective import Execution, Objective

if TYPE_CHECKING:
    from placement.core.graph import Ints
    from placement.core.placement import Placement
    from placement.core.problem import Problem

# All of these count visits of kernels and readers of tensors by simulations: about a second each,
# first of final schedules, then of the unmerged ones that rank candidates on large graphs.
MOST_FINAL_VISITS = 240_000
MOST_VISITS = 60_000_000
# Merging segments for the shortest step takes further simulations.
MERGING = 4
# Candidates are ranked by schedules without merging, so a few more than asked for are looked into.
SPARE = 8
# What saves less than this share of the step is noise.
LEAST_SHARE = 1e-4
MOST_CALLS_MOVES = 150


@dataclass(frozen=True)
class Hint:
    """Moving `ops` to `device` makes the step (or the time per sample) `saves_s` shorter.

    With `is_tie` a run may well measure the other way about.
    """

    ops: tuple[str, ...]
    label: str
    device: str
    saves_s: float
    value_s: float
    is_tie: bool = False


@dataclass(frozen=True)
class _Move:
    """Units that go to a device together; a label for people."""

    units: tuple[int, ...]
    device: int
    label: str


def hints(problem: Problem, placement: Placement, most: int = 10) -> tuple[Hint, ...]:
    """The moves that save most, best first; each as if it were the only one.

    A move keeps the placement's order, as an edit by hand does, and is worth what its final
    schedule is worth. Ops that are fused or grouped with others move with them. Where `covers_all`
    says so every move of a unit or of a block is looked at, so that no hint means that no such move
    saves; on larger graphs those are that shorten the unmerged schedule most.
    """
    from placement.schedule.order import moved, spelled_order
    from placement.search.feasible import final_s

    now_s = final_s(problem, placement)
    ordered = replace(placement, order=spelled_order(problem, placement))
    found: list[Hint] = []
    for move in _candidates(problem, ordered, most):
        ops = tuple(problem.graph.ops[i].name for u in move.units for i in problem.ops_of_unit[u])
        device = problem.machine.devices[move.device].name
        value_s = final_s(problem, moved(problem, ordered, dict.fromkeys(ops, device)))
        if value_s < now_s * (1 - LEAST_SHARE):
            saves_s = now_s - value_s if math.isfinite(now_s) else 0.0
            found.append(Hint(ops, move.label, device, saves_s, value_s))
    best = sorted(found, key=lambda hint: (hint.value_s, len(hint.ops)))[:most]
    # What makes everything fit is worth making, whatever it takes.
    return tuple(_with_ties(problem, placement, ordered, best) if math.isfinite(now_s) else best)


def _with_ties(
    problem: Problem, placement: Placement, ordered: Placement, found: Sequence[Hint]
) -> Iterator[Hint]:
    """The moves, each judged as an edit is once it is made: by the ranges of before and after."""
    from placement.schedule.order import moved
    from placement.schedule.simulated import simulate
    from placement.simulator.uncertainty import is_tie

    now = simulate(problem, placement)
    for hint in found:
        if now.range_s is None:
            yield hint
            continue
        after = simulate(problem, moved(problem, ordered, dict.fromkeys(hint.ops, hint.device)))
        tie = is_tie(now.value, now.range_s, after.value, after.range_s)
        yield replace(hint, is_tie=tie)


def covers_all(problem: Problem) -> bool:
    """Whether all moves are looked at: units and blocks, times devices, times a simulation."""
    from placement.search.coarsening import scopes

    visits = len(problem.kernels.ops) + problem.kernels.arrays.consumers.size
    if problem.execution is Execution.SEGMENT and problem.objective is Objective.LATENCY:
        visits *= MERGING
    num_groups = problem.num_units + len(scopes(problem))
    return num_groups * (problem.num_devices - 1) * visits <= MOST_FINAL_VISITS


def _candidates(problem: Problem, placement: Placement, most: int) -> list[_Move]:
    """The moves to look into."""
    no_units = np.zeros(0, dtype=np.int64)
    if covers_all(problem):
        return list(_moves(problem, placement, no_units))
    if problem.execution is Execution.CALL:
        # Calls have a cost model of their own, which no ranking knows.
        return list(islice(_moves(problem, placement, no_units), MOST_CALLS_MOVES))
    return _ranked(problem, placement)[: most + SPARE]


def _ranked(problem: Problem, placement: Placement) -> list[_Move]:
    """Moves that shorten the unmerged schedule, the best first."""
    from placement.search.chain import start_of
    from placement.simulator.evaluator import Evaluator

    start = start_of(problem, placement)
    evaluator = Evaluator(problem, start.order)
    base_s = evaluator.value_s(start.devices)
    visits = len(problem.kernels.ops) + problem.kernels.arrays.consumers.size
    left = max(20, MOST_VISITS // max(1, visits))
    ranked: list[tuple[float, int, _Move]] = []
    for move in _moves(problem, placement, evaluator.critical_units()):
        value_s = evaluator.after_move_s(np.array(move.units), move.device, base_s)
        ranked.append((value_s, len(ranked), move))
        if len(ranked) >= left:
            break
    better = [entry for entry in ranked if entry[0] <= base_s * (1 - LEAST_SHARE)]
    return [move for _, _, move in sorted(better, key=lambda entry: entry[:2])]


def _moves(problem: Problem, placement: Placement, critical: Ints) -> Iterator[_Move]:
    """Every move that is allowed and changes something, those of critical units first."""
    from placement.search.chain import start_of

    devices = start_of(problem, placement).devices
    for units, label in _movable(problem, critical):
        for dest in range(problem.num_devices):
            stays = (devices[units] == dest).all()
            if not stays and problem.allowed[units, dest].all():
                yield _Move(tuple(units.tolist()), dest, label)


def _movable(problem: Problem, critical: Ints) -> Iterator[tuple[Ints, str]]:
    """Units on the critical path, blocks of scopes, then the other units."""
    from placement.drawing.names import names_of
    from placement.search.coarsening import scopes

    names = names_of(problem.graph)

    def single(unit: int) -> tuple[Ints, str]:
        return np.array([unit]), names.shown[problem.ops_of_unit[unit][-1]]

    first = [unit for unit in dict.fromkeys(critical.tolist()) if problem.ops_of_unit[unit]]
    yield from map(single, first)
    blocks = {tuple(units.tolist()): path for path, units in scopes(problem).items()}
    yield from ((np.array(units), path) for units, path in blocks.items())
    others = set(range(problem.num_units)) - set(first)
    yield from (single(unit) for unit in sorted(others) if problem.ops_of_unit[unit])
