"""What runs before what on one device, changed by hand, and nothing else with it.

All lanes but one keep their sequence, so the new order exists just if data and sequences together
have no cycle: then every topological order of both is one. An order that would need another lane to
change is refused, like one that data forbid.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import NamedTuple

from placement.core.placement import Placement
from placement.core.problem import Execution, Problem
from placement.schedule.order import kernel_order, spelled_order


class Wait(NamedTuple):
    """Op `later` waits for op `earlier`: by the order on `lane`, or by data where that is empty."""

    later: str
    earlier: str
    lane: str = ""


class Blocked(ValueError):
    """No order is like this one, because of a wait."""

    def __init__(self, wait: Wait) -> None:
        super().__init__(f"{wait.later!r} cannot run before {wait.earlier!r}.")
        self.wait = wait


def run_before(
    problem: Problem, placement: Placement, ops: Collection[str], before: Collection[str]
) -> tuple[str, ...]:
    """The order of all ops in which some run on their device right before others, or at its end.

    Both are on one device; without any `before` it is the end. What is asked for already gives the
    order that the placement has. A ValueError says why it cannot be; `Blocked`, what waits for
    what.
    """
    devices = problem.kernel_devices(placement)
    engine: list[int] = problem.machine.places.engine[devices].tolist()
    order = kernel_order(problem, placement, devices)
    lanes: dict[int, list[int]] = {}
    for k in order:
        lanes.setdefault(engine[k], []).append(k)
    moving = _kernels(problem, ops)
    lane = next((engine[k] for k in order if k in moving), -1)
    was = lanes.get(lane, [])
    moving &= set(was)
    goal = _kernels(problem, before) - moving
    rest = [k for k in was if k not in moving]
    at = next((i for i, k in enumerate(rest) if k in goal), len(rest))
    wanted = [*rest[:at], *(k for k in was if k in moving), *rest[at:]]
    if wanted == was:
        return spelled_order(problem, placement)
    lanes[lane] = wanted
    # First without the other lanes, so that where data alone forbid it they are the reason.
    for sequences in ([wanted], list(lanes.values())):
        found = _topological(problem, sequences, order)
        if len(found) < len(order):
            raise Blocked(_wait(problem, sequences, wanted, set(order) - set(found), engine))
    changed = problem.ops_in_order(found)
    after = kernel_order(problem, replace(placement, order=changed), devices)
    if [k for k in after if engine[k] == lane] == was:
        raise ValueError(
            "These ops share their kernels with those that they would pass; the order stays."
        )
    return changed


def in_sequence(problem: Problem, placement: Placement) -> Placement:
    """The placement with the problem's pinned sequences in its order, and little else changed.

    Of a sequence count the ops that the placement has on its device. A ValueError says where
    sequences and data contradict each other.
    """
    lanes = list(_pinned_lanes(problem, placement).values())
    order = kernel_order(problem, placement, problem.kernel_devices(placement)) if lanes else []
    at = {k: i for i, k in enumerate(order)}
    if all(at[a] < at[b] for lane in lanes for a, b in pairwise(lane)):
        return placement
    found = _topological(problem, lanes, order)
    if len(found) < len(order):
        raise ValueError("The orders that are pinned contradict each other; let one of them go.")
    return replace(placement, order=problem.ops_in_order(found))


def broken_sequences(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """The devices on which a placement runs ops in another order than the pinned one."""
    lanes = _pinned_lanes(problem, placement)
    order = kernel_order(problem, placement, problem.kernel_devices(placement)) if lanes else []
    at = {k: i for i, k in enumerate(order)}
    broken = (any(at[a] > at[b] for a, b in pairwise(lane)) for lane in lanes.values())
    return tuple(device for device, is_broken in zip(lanes, broken, strict=True) if is_broken)


def _pinned_lanes(problem: Problem, placement: Placement) -> dict[str, list[int]]:
    """By device the kernels of its pinned sequence; one whose calls are found has no order."""
    if problem.execution is Execution.CALL:
        return {}
    return {device: _lane(problem, placement, device, ops) for device, ops in problem.sequences}


def _lane(problem: Problem, placement: Placement, device: str, ops: Sequence[str]) -> list[int]:
    """Kernels of a sequence's ops on its device; one of several ops stands where its last does."""
    index = problem.graph.index
    rank = {index[op]: i for i, op in enumerate(ops) if placement.device_of[op] == device}
    last = {
        k: max(rank[i] for i in sources if i in rank)
        for k, sources in enumerate(problem.sources)
        if not rank.keys().isdisjoint(sources)
    }
    return sorted(last, key=lambda k: (last[k], k))


def _kernels(problem: Problem, ops: Collection[str]) -> set[int]:
    """Kernels that do the work of ops, with the runtime's own ones that only serve these."""
    index = {problem.graph.index[name] for name in ops if name in problem.graph.index}
    found = {k for k, sources in enumerate(problem.sources) if not index.isdisjoint(sources)}
    for k in range(len(problem.sources) - 1, -1, -1):
        readers = problem.kernels.successors[k]
        if not problem.sources[k] and readers and found.issuperset(readers):
            found.add(k)
    return found


def _topological(
    problem: Problem, lanes: Iterable[Sequence[int]], order: Sequence[int]
) -> list[int]:
    """An order along data and lanes, as near to the one before as can be; what is on a cycle and
    what comes after it is left out."""
    after = [list(readers) for readers in problem.kernels.successors]
    for a, b in chain.from_iterable(map(pairwise, lanes)):
        after[a].append(b)
    position = {k: i for i, k in enumerate(order)}
    num_before = Counter(chain.from_iterable(after))
    ready = [i for k, i in position.items() if not num_before[k]]
    heapq.heapify(ready)
    found = []
    while ready:
        k = order[heapq.heappop(ready)]
        found.append(k)
        for reader in after[k]:
            num_before[reader] -= 1
            if not num_before[reader]:
                heapq.heappush(ready, position[reader])
    return found


def _wait(
    problem: Problem,
    lanes: Iterable[Sequence[int]],
    wanted: Sequence[int],
    left: set[int],
    engine: Sequence[int],
) -> Wait:
    """What stands against a sequence, of the kernels that no order was found for.

    They hold a cycle. Off the lane it goes from one of the lane's kernels to another, and once at
    least to one that the sequence has earlier.
    """
    steps = chain.from_iterable(map(pairwise, lanes))
    before = {b: a for a, b in steps if a in left and b in left}
    for a in sorted(left):
        for b in left.intersection(problem.kernels.successors[a]):
            before[b] = a
    walked: dict[int, None] = {}
    k = min(left)
    while k not in walked:
        walked[k] = None
        k = before[k]
    cycle = list(walked)
    cycle = cycle[cycle.index(k) :][::-1]
    at = {k: i for i, k in enumerate(wanted)}
    start = next(i for i, k in enumerate(cycle) if k in at)
    cycle = [*cycle[start:], *cycle[: start + 1]]
    by_data = problem.kernels.successors
    earlier, lane = cycle[0], ""
    for a, b in pairwise(cycle):
        if b not in at and b not in by_data[a] and not lane:
            lane = problem.machine.devices[engine[b]].name
        if b in at:
            if at[b] < at[earlier]:
                return Wait(_op(problem, b), _op(problem, earlier), lane)
            earlier, lane = b, ""
    raise AssertionError("a cycle that no sequence breaks")


def _op(problem: Problem, kernel: int) -> str:
    """What people know a kernel by: its first op."""
    sources = problem.sources[kernel]
    return problem.graph.ops[sources[0]].name if sources else problem.kernels.ops[kernel].name
