"""Segments: a placement cut into calls, so that the segments never wait for each other in a cycle.

A call hands out its values when it ends and starts when all its inputs are there (the "subgraph
call" of Tarnawski et al., 2020). So the finest useful cut is at every crossing between devices:
before a kernel that waits for another device and after one that another device waits for. Longer
segments save calls but hold values back; neighbours are merged while the simulated step gets no
longer.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from placement._tasks import Tasks, lower
from placement.core.graph import topological_order
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.schedule import Schedule, Segment
from placement.core.timeline import Span
from placement.critical import slack_s
from placement.order import kernel_order
from placement.simulate import run_tasks, spans_of

# Simulations that merging may spend; enough for every pair of a model with a hundred crossings.
MAX_MERGE_SIMULATIONS = 200
# Sums of the same times in another order differ by this much at most.
ROUNDING = 1e-12


def make_schedule(problem: Problem, placement: Placement, *, merge: bool = True) -> Schedule:
    """The schedule of a placement: in its order, cut at crossings, merged where that helps."""
    device_of_kernel = problem.kernel_devices(placement)
    order = kernel_order(problem, placement, device_of_kernel)
    schedule = cut_at_crossings(problem, device_of_kernel.tolist(), order)
    if merge and problem.execution == "segment":
        schedule = merge_neighbours(problem, schedule)
    return schedule


def cut_at_crossings(
    problem: Problem, device_of_kernel: Sequence[int], order: Sequence[int]
) -> Schedule:
    """One segment for every stretch of a device's kernels that no other device interrupts.

    Under execution "op" every kernel is a segment of its own. `order` must be topological.
    """
    kernels, machine = problem.kernels, problem.machine
    if problem.execution == "op":
        return Schedule(
            tuple(
                Segment(machine.devices[device_of_kernel[k]].name, (kernels.ops[k].name,))
                for k in order
            )
        )
    open_segment: dict[int, list[int]] = {}
    arrived: set[tuple[int, int]] = set()
    segments: list[tuple[int, list[int]]] = []
    arrays = kernels.arrays
    in_ptr, in_tensors = arrays.in_ptr.tolist(), arrays.in_tensors.tolist()
    producer = arrays.producer.tolist()
    for k in order:
        d = device_of_kernel[k]
        foreign = [
            t
            for t in in_tensors[in_ptr[k] : in_ptr[k + 1]]
            if producer[t] >= 0 and device_of_kernel[producer[t]] != d and (t, d) not in arrived
        ]
        if foreign or d not in open_segment:
            arrived.update((t, d) for t in foreign)
            open_segment[d] = []
            segments.append((d, open_segment[d]))
        open_segment[d].append(k)
        if any(device_of_kernel[r] != d for r in kernels.successors[k]):
            del open_segment[d]
    return Schedule(
        tuple(
            Segment(machine.devices[d].name, tuple(kernels.ops[k].name for k in members))
            for d, members in segments
        )
    )


def merge_neighbours(problem: Problem, schedule: Schedule) -> Schedule:
    """Merge segments that follow each other on a device while the simulated step gets no longer.

    Pairs whose merging delays nothing by the slack of one simulation are tried together, halved
    when together they are too many.
    """
    tasks = lower(problem, schedule)
    times = run_tasks(problem, tasks)
    budget = MAX_MERGE_SIMULATIONS
    tried: set[tuple[str, str]] = set()
    while budget > 0:
        pairs = [
            (a, b)
            for a, b in _harmless_pairs(
                tasks, spans_of(problem, schedule, tasks, times), times.step_s
            )
            if _pair_names(schedule, a, b) not in tried
        ]
        if not pairs:
            return schedule
        waiting = [pairs]
        improved = False
        while waiting and budget > 0 and not improved:
            batch = waiting.pop()
            budget -= 1
            merged = _merged(schedule, tasks, batch)
            if merged is not None:
                new_tasks = lower(problem, merged)
                new_times = run_tasks(problem, new_tasks)
                if new_times.step_s <= times.step_s * (1 + ROUNDING):
                    schedule, tasks, times = merged, new_tasks, new_times
                    improved = True
                    continue
            if len(batch) == 1:
                tried.add(_pair_names(schedule, *batch[0]))
            else:
                half = len(batch) // 2
                waiting += [batch[half:], batch[:half]]
        if not improved and not waiting:
            return schedule
    return schedule


def _pair_names(schedule: Schedule, a: int, b: int) -> tuple[str, str]:
    return schedule.segments[a].kernels[0], schedule.segments[b].kernels[0]


def _harmless_pairs(tasks: Tasks, spans: Sequence[Span], step_s: float) -> list[tuple[int, int]]:
    """Neighbours (a, b) on a device where b's inputs are there early and a's values can wait."""
    slack = slack_s(spans, step_s)
    span_of = {span.segment: i for i, span in enumerate(spans) if span.kind == "compute"}
    send_slack = [math.inf] * len(tasks.device)
    for i, span in enumerate(spans):
        if span.kind == "transfer" and span.segment >= 0:
            send_slack[span.segment] = min(send_slack[span.segment], slack[i])
    pairs = []
    for a, b in (pair for lane in tasks.lanes for pair in pairwise(lane)):
        first, second = spans[span_of[a]], spans[span_of[b]]
        arrived = [spans[i].end_s for i in second.after if spans[i].kind == "transfer"]
        delay_in = max(0.0, max(arrived, default=0.0) - first.start_s)
        delay_out = delay_in + second.duration_s
        if delay_in <= slack[span_of[a]] and delay_out <= send_slack[a]:
            pairs.append((a, b))
    return pairs


def _merged(schedule: Schedule, tasks: Tasks, pairs: Sequence[tuple[int, int]]) -> Schedule | None:
    """The schedule with the pairs merged, or None if the segments would wait in a cycle."""
    into = list(range(len(schedule.segments)))
    for a, b in sorted(pairs):
        into[b] = into[a]
    members: dict[int, list[str]] = {}
    for lane in tasks.lanes:
        for s in lane:
            members.setdefault(into[s], []).extend(schedule.segments[s].kernels)
    numbers = sorted(members)
    number = {s: i for i, s in enumerate(numbers)}
    successors: list[set[int]] = [set() for _ in numbers]
    for lane in tasks.lanes:
        for a, b in pairwise(lane):
            successors[number[into[a]]].add(number[into[b]])
    for s, reads in enumerate(tasks.reads):
        for i in reads:
            if tasks.transfers[i].segment >= 0:
                successors[number[into[tasks.transfers[i].segment]]].add(number[into[s]])
    for i, after in enumerate(successors):
        after.discard(i)
    order = topological_order(len(numbers), [sorted(a) for a in successors])
    if order is None:
        return None
    return Schedule(
        tuple(
            Segment(schedule.segments[numbers[i]].device, tuple(members[numbers[i]])) for i in order
        )
    )
