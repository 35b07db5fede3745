"""Greedy fill: units in topological order, one device filled after another.

The baseline of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
Operators", NeurIPS 2020. For latency a device is filled up to its memory. For throughput it is
filled up to a load that all devices share, too; several such loads are tried, since transfers are
known only afterwards. The order is a depth-first one, which keeps neighbours together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.placers.base import Placer, Progress, Report, quiet, setting
from placement.search.feasible import within_memory
from placement.simulator.call_costs import max_load_s


@dataclass(frozen=True, kw_only=True)
class GreedyFill(Placer):
    summary = "Ops in topological order, each device filled to its memory or its share of the load"
    paper = "Tarnawski et al.: Efficient algorithms for device placement, NeurIPS 2020"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    quick_up_to = 3_000

    loads: int = setting(120, "Throughput: how many shared loads to try, from an even share to all")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        after = _unit_successors(problem)
        orders = [from_sources(problem, after), from_sinks(problem, after)]
        return within_memory(
            problem,
            lambda scale: problem.placement_of(self._devices(problem, orders, scale, report)),
        )

    def _devices(
        self, problem: Problem, orders: Sequence[list[int]], scale: float, report: Report
    ) -> list[int]:
        """Device of each unit with a share of the devices' memory."""
        if problem.objective is Objective.LATENCY:
            return _filled(problem, orders[0], math.inf, scale)[0]
        fastest_s = np.where(problem.allowed, problem.unit_s, np.inf).min(axis=1, initial=np.inf)
        share_s = float(fastest_s.sum()) / problem.num_devices
        steps = max(1, self.loads)
        tries = [share_s * problem.num_devices ** (step / steps) for step in range(steps)]
        best, chosen = (math.inf, math.inf), [0] * problem.num_units
        for step, most_s in enumerate([*tries, math.inf]):
            for order in orders:
                devices, excess_bytes = _filled(problem, order, most_s, scale)
                value = max_load_s(problem, np.array(devices)[problem.unit_of_kernel])
                if (excess_bytes, value) < best:
                    best, chosen = (excess_bytes, value), devices
            if not report(Progress(best_s=best[1], step=step, of=len(tries))):
                break
        return chosen


def _filled(
    problem: Problem, order: list[int], most_s: float, scale: float
) -> tuple[list[int], float]:
    """A device per unit, and the bytes that fit nowhere.

    Within a share `scale` of memory and `most_s` of compute on each device.

    A unit that the device at hand may not run goes to the next one that may, which closes nothing.
    What fits nowhere goes to the last device that may run it.
    """
    allowed, unit_s = problem.allowed.tolist(), problem.unit_s.tolist()
    sizes = np.zeros(problem.num_units)
    np.add.at(sizes, problem.unit_of_kernel, problem.kernels.arrays.resident_bytes)
    size = sizes.tolist()
    room = (scale * problem.machine.limit_bytes).tolist()
    memory = problem.machine.places.weights.tolist()
    left_s = [most_s] * problem.num_devices
    chosen, at_hand = [0] * problem.num_units, 0
    for unit in order:
        may = [d for d, ok in enumerate(allowed[unit]) if ok]
        fitting = [d for d in may if size[unit] <= room[memory[d]] and unit_s[unit][d] <= left_s[d]]
        d = ([d for d in fitting if d >= at_hand] or fitting or may[-1:])[0]
        if at_hand in may:
            at_hand = max(at_hand, d)
        chosen[unit] = d
        room[memory[d]] -= size[unit]
        left_s[d] -= unit_s[unit][d]
    return chosen, sum(max(0.0, -r) for r in room)


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
