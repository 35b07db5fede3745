"""Greedy fill: units in topological order, one device filled after another.

The baseline of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
Operators", NeurIPS 2020. For latency a device is filled up to its memory. For throughput it is
filled up to a load that all devices share, too; several such loads are tried, since transfers are
known only afterwards. The order is a depth-first one, which keeps neighbours together.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.core.formatting import seconds
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Progress, Report, Step, quiet, setting
from placement.search.feasible import within_memory
from placement.search.step_parts import device_names, table, unit_called
from placement.search.steps import Cell, Kind
from placement.simulator.call_costs import max_load_s

if TYPE_CHECKING:
    from placement.placers._steps.filling import Put


@dataclass(frozen=True, kw_only=True)
class GreedyFill(Placer):
    summary = "Ops in topological order, each device filled to its memory or its share of the load"
    paper = "Tarnawski et al.: Efficient algorithms for device placement, NeurIPS 2020"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    quick_up_to = 3_000
    tells_up_to = 300
    pseudo_code = (
        "for throughput, for many loads from an even share of the work to all of it:",
        "take the ops depth first, so that neighbours stay together",
        "    put each on the device at hand, or the next with room for its weights and its load",
        "of all loads answer the one whose largest load is least; predict it",
    )

    loads: int = setting(120, "Throughput: how many shared loads to try, from an even share to all")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return self._placed(problem, report)[0]

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.filling import walk

        answer, best = self._placed(problem, quiet)
        first = [] if problem.objective is Objective.LATENCY else [_loads(problem, best)]
        puts = _puts(problem, best)
        return walk(problem, puts, first, answer, most, line=2, last_line=3)

    def _placed(self, problem: Problem, report: Report) -> tuple[Placement, "_Way"]:
        """The placement, and the way of filling that it comes from."""
        after = _unit_successors(problem)
        orders = [from_sources(problem, after), from_sinks(problem, after)]
        ways: list[_Way] = []

        def attempt(scale: float) -> Placement:
            ways.append(self._best(problem, orders, scale, report))
            return problem.placement_of(ways[-1].devices)

        return within_memory(problem, attempt), ways[-1]

    def _best(
        self, problem: Problem, orders: Sequence[list[int]], scale: float, report: Report
    ) -> "_Way":
        """The best way to fill devices with a share of their memory."""
        if problem.objective is Objective.LATENCY:
            return _way(problem, orders[0], math.inf, scale)
        fastest_s = np.where(problem.allowed, problem.unit_s, np.inf).min(axis=1, initial=np.inf)
        share_s = float(fastest_s.sum()) / problem.num_devices
        steps = max(1, self.loads)
        tries = [share_s * problem.num_devices ** (step / steps) for step in range(steps)]
        best: _Way | None = None
        for step, most_s in enumerate([*tries, math.inf]):
            for order in orders:
                way = _way(problem, order, most_s, scale)
                if best is None or way.worth < best.worth:
                    best = way
            assert best is not None
            if not report(Progress(best_s=best.worth[1], step=step, of=len(tries))):
                break
        assert best is not None
        return best


class _Way(NamedTuple):
    """A way to fill devices, the device of each unit, and its worth: the bytes that fit nowhere,
    and for throughput the largest load."""

    order: list[int]
    most_s: float
    scale: float
    devices: list[int]
    worth: tuple[float, float]


def _way(problem: Problem, order: list[int], most_s: float, scale: float) -> _Way:
    devices, room = [0] * problem.num_units, [0.0]
    for each in _filling(problem, order, most_s, scale):
        devices[each.unit], room = each.device, each.room
    load_s = 0.0
    if problem.objective is not Objective.LATENCY:
        load_s = max_load_s(problem, np.array(devices)[problem.unit_of_kernel])
    excess_bytes = sum(max(0.0, -r) for r in room)
    return _Way(order, most_s, scale, devices, (excess_bytes, load_s))


def _loads(problem: Problem, best: _Way) -> Step:
    """The step that says which shared load was the best."""
    shared = "no limit" if math.isinf(best.most_s) else seconds(best.most_s, problem.unit)
    why = (
        f"Of all loads and two orders the best is {shared} for each device: with transfers, the"
        f" largest load is {seconds(best.worth[1], problem.unit)} then."
    )
    return Step(line=0, why=why, devices=(-1,) * problem.num_units)


def _puts(problem: Problem, way: _Way) -> Iterator["Put"]:
    from placement.placers._steps.filling import Put

    names = device_names(problem)
    memory = problem.machine.places.weights.tolist()
    room = (way.scale * problem.machine.limit_bytes).tolist()
    left_s = [way.most_s] * problem.num_devices
    for each in _filling(problem, way.order, way.most_s, way.scale):
        op = unit_called(problem, each.unit)
        rows: list[tuple[Cell, ...]] = []
        columns: dict[str, Kind] = {"device": "text"}
        columns |= {"room for weights": "bytes", "own time": "seconds", "load left": "seconds"}
        for d, name in enumerate(names):
            may = bool(problem.allowed[each.unit, d])
            figures = room[memory[d]], float(problem.unit_s[each.unit, d]), left_s[d]
            rows.append((name, *(f if may and math.isfinite(f) else None for f in figures)))
        room, left_s = list(each.room), list(each.left_s)
        yield Put(
            each.unit,
            each.device,
            _why(problem, each, op, names),
            (table(f"Room for {op}", columns, rows, (each.device,)),),
        )


class _Filled(NamedTuple):
    """A unit that was put on a device, and what is left: bytes by memory, seconds by device.

    `at_hand` is the device at hand before; `fits` whether any had room.
    """

    unit: int
    device: int
    at_hand: int
    fits: bool
    room: list[float]
    left_s: list[float]


def _filling(problem: Problem, order: list[int], most_s: float, scale: float) -> Iterator[_Filled]:
    """Units in an order, each on a device.

    Within a share `scale` of memory and `most_s` of compute on each device.

    A unit that the device at hand may not run goes to the next one that may, which closes nothing.
    What fits nowhere goes to the last device that may run it.
    """
    allowed, unit_s, num_devices = problem.allowed, problem.unit_s, problem.num_devices
    sizes = np.zeros(problem.num_units)
    np.add.at(sizes, problem.unit_of_kernel, problem.kernels.arrays.resident_bytes)
    size = sizes.tolist()
    room = (scale * problem.machine.limit_bytes).tolist()
    memory = problem.machine.places.weights.tolist()
    left_s = [most_s] * num_devices
    at_hand = 0

    def has_room(unit: int, d: int) -> bool:
        fits = size[unit] <= room[memory[d]] and unit_s[unit, d] <= left_s[d]
        return bool(fits and allowed[unit, d])

    for unit in order:
        ring = chain(range(at_hand, num_devices), range(at_hand))
        d = next((e for e in ring if has_room(unit, e)), -1)
        fits = d >= 0
        if not fits:
            d = int(np.flatnonzero(allowed[unit])[-1])
        was_at_hand = at_hand
        if allowed[unit, at_hand]:
            at_hand = max(at_hand, d)
        room[memory[d]] -= size[unit]
        left_s[d] -= float(unit_s[unit, d])
        yield _Filled(unit, d, was_at_hand, fits, room, left_s)


def _why(problem: Problem, each: _Filled, op: str, names: Sequence[str]) -> str:
    device, at_hand = names[each.device], names[each.at_hand]
    if not each.fits:
        return f"No device that may run {op} has room for it; {device} is the last of them."
    if each.device == each.at_hand:
        return f"{op} goes to {device}, which is at hand and has room for it."
    if not problem.allowed[each.unit, each.at_hand]:
        return f"{at_hand}, which is at hand, may not run {op}, so it goes to {device}."
    return f"{at_hand}, which is at hand, has no room for {op}, so it goes to {device}."


def _unit_successors(problem: Problem) -> list[set[int]]:
    unit = problem.unit_of_kernel.tolist()
    after: list[set[int]] = [set() for _ in range(problem.num_units)]
    for k, readers in enumerate(problem.kernels.successors):
        after[unit[k]].update(unit[r] for r in readers if unit[r] != unit[k])
    return after


def from_sources(problem: Problem, after: list[set[int]]) -> list[int]:
    """Reverse postorder of a depth-first search, units visited in the order of their last ops."""
    rank = _rank_of_last_op(problem)
    return _postorder([sorted(a, key=rank.__getitem__) for a in after], rank)[::-1]


def from_sinks(problem: Problem, after: list[set[int]]) -> list[int]:
    """Postorder of a search against the edges, last units first: every unit as late as possible."""
    rank = [-r for r in _rank_of_last_op(problem)]
    before: list[list[int]] = [[] for _ in after]
    for u in sorted(range(len(after)), key=rank.__getitem__):
        for v in after[u]:
            before[v].append(u)
    return _postorder(before, rank)


def _rank_of_last_op(problem: Problem) -> list[int]:
    last = [max(ops, default=-1) for ops in problem.ops_of_unit]
    rank = [0] * len(last)
    for position, unit in enumerate(sorted(range(len(last)), key=lambda u: (last[u], u))):
        rank[unit] = position
    return rank


def _postorder(neighbours: list[list[int]], rank: list[int]) -> list[int]:
    """Each node after those that it leads to (but for cycles), starting from small ranks."""
    seen = [False] * len(neighbours)
    order: list[int] = []
    for root in sorted(range(len(neighbours)), key=rank.__getitem__):
        stack = [] if seen[root] else [(root, iter(neighbours[root]))]
        seen[root] = True
        while stack:
            node, rest = stack[-1]
            following = next((v for v in rest if not seen[v]), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen[following] = True
                stack.append((following, iter(neighbours[following])))
    return order


PLACER = GreedyFill
