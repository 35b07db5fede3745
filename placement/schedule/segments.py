"""Segments: a placement cut into calls, so that the segments never wait for each other in a cycle.

A call hands out its values when it ends and starts when all its inputs are there (the "subgraph
call" of Tarnawski et al., 2020). So the finest useful cut is at every crossing between devices:
before a kernel that waits for another device and after one that another device waits for. Longer
segments save calls but hold values back; neighbours are merged while the simulated step gets no
longer.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.core.schedule import Schedule, Segment
from placement.schedule.calls import make_call_schedule
from placement.schedule.order import kernel_order
from placement.schedule.stages import ROUNDING, Cut, fewest_calls
from placement.simulator.condensed import Condensed, condense, ready_to_run
from placement.simulator.flat import Flat, flatten
from placement.simulator.run_state import RunState
from placement.simulator.throughput import value_of_run_s

# Simulations that merging may spend; enough for every pair of a model with a hundred crossings.
MAX_MERGE_SIMULATIONS = 200
# Graphs so large that those would take seconds get fewer: this many visits of kernels together.
MAX_MERGE_VISITS = 1_000_000


def make_schedule(problem: Problem, placement: Placement, *, merge: bool = True) -> Schedule:
    """The schedule of a placement: in its order, cut at crossings, merged where that helps.

    On one device alone an open order is the model's own.
    """
    if problem.execution is Execution.CALL:
        return make_call_schedule(problem, placement)
    cut, merged = cuts_of(problem, placement, merge=merge)
    if _order_is_free(problem, placement, cut):
        declared = replace(merged, kernels_in_order=np.arange(merged.kernels_in_order.size))
        return _within_memory(problem, declared, merged, cut)
    return _within_memory(problem, merged, cut)


def cuts_of(problem: Problem, placement: Placement, *, merge: bool = True) -> tuple[Cut, Cut]:
    """A placement cut at every crossing, and the same with neighbours merged where that helps."""
    device_of_kernel = problem.kernel_devices(placement)
    order = np.array(kernel_order(problem, placement, device_of_kernel), dtype=np.int64)
    cut = _cut(flatten(problem), device_of_kernel, order)
    if not merge or problem.execution is not Execution.SEGMENT:
        return cut, cut
    return cut, _MERGED[problem.objective](flatten(problem), cut)


def _order_is_free(problem: Problem, placement: Placement, cut: Cut) -> bool:
    """Whether nobody has said in what order kernels run, and no other device waits for any.

    Each segment then runs them as they are declared, in which order they were measured, too: it
    reads what has just been written, where ranks go to and fro between branches.
    """
    if problem.execution is not Execution.SEGMENT or placement.order or problem.sequences:
        return False
    return bool((cut.device_of_kernel == cut.device_of_kernel[:1]).all())


def cut_value_s(problem: Problem, cut: Cut) -> float:
    """Seconds of the objective of a placement that is cut into segments."""
    condensed, state, step_s = _simulated(flatten(problem), cut)
    return value_of_run_s(problem, condensed.flat, state, step_s)


def _cut(flat: Flat, device_of_kernel: Ints, order: Ints) -> Cut:
    from placement.simulator.compiled.segments import cut

    position = np.empty(order.size, dtype=np.int64)
    position[order] = np.arange(order.size)
    segment_of = cut(flat, np.ascontiguousarray(device_of_kernel), order, position)
    return Cut(device_of_kernel, order, segment_of, np.arange(segment_of.max(initial=-1) + 1))


def _schedule(problem: Problem, cut: Cut) -> Schedule:
    """The same as names; kernels of a segment in running order."""
    kernels, devices = problem.kernels.ops, problem.machine.devices
    members: list[list[int]] = [[] for _ in cut.order]
    for k, s in zip(
        cut.kernels_in_order.tolist(), cut.segment_of[cut.kernels_in_order].tolist(), strict=True
    ):
        members[s].append(k)
    return Schedule(
        tuple(
            Segment(
                devices[cut.device_of_kernel[members[s][0]]].name,
                tuple(kernels[k].name for k in members[s]),
            )
            for s in cut.order.tolist()
        )
    )


def merge_neighbours(flat: Flat, cut: Cut) -> Cut:
    """Merge segments that follow each other on a device while the simulated step gets no longer.

    Pairs whose merging delays nothing by the slack of one simulation are tried together, halved
    when together they are too many.
    """
    from placement.simulator.compiled.segments import harmless_pairs

    visits = flat.consumers.size + cut.segment_of.size
    budget = max(1, min(MAX_MERGE_SIMULATIONS, MAX_MERGE_VISITS // max(1, visits)))
    condensed, state, step_s = _simulated(flat, cut)
    tried: set[tuple[int, int]] = set()
    while budget > 0:
        head = _first_kernels(cut)
        pairs = [
            (a, b)
            for a, b in harmless_pairs(condensed.flat, state, step_s).tolist()
            if (head[a], head[b]) not in tried
        ]
        waiting, improved = [pairs] if pairs else [], False
        while waiting and budget > 0 and not improved:
            batch = waiting.pop()
            budget -= 1
            merged = _merged(condensed, cut, batch)
            if merged is not None:
                found = _simulated(flat, merged)
                if found[2] <= step_s * (1 + ROUNDING):
                    cut, (condensed, state, step_s), improved = merged, found, True
                    continue
            if len(batch) == 1:
                tried.add((head[batch[0][0]], head[batch[0][1]]))
            else:
                half = len(batch) // 2
                waiting += [batch[half:], batch[:half]]
        if not improved and not waiting:
            return cut
    return cut


_MERGED = {Objective.LATENCY: merge_neighbours, Objective.THROUGHPUT: fewest_calls}


def _first_kernels(cut: Cut) -> list[int]:
    """The kernel that each segment starts with: its name for as long as it stays unmerged."""
    head = np.empty(cut.order.size, dtype=np.int64)
    backwards = cut.kernels_in_order[::-1]
    head[cut.segment_of[backwards]] = backwards
    found: list[int] = head.tolist()
    return found


def _simulated(flat: Flat, cut: Cut) -> tuple[Condensed, RunState, float]:
    from placement.simulator.compiled.run import run_whole

    condensed = condense(flat, cut.device_of_kernel, cut.segment_of, cut.order.size)
    state = ready_to_run(condensed, cut.order)
    return condensed, state, run_whole(condensed.flat, state)


def _merged(condensed: Condensed, cut: Cut, pairs: Sequence[tuple[int, int]]) -> Cut | None:
    """The cut with the pairs merged, or None if the segments would wait in a cycle."""
    from placement.simulator.compiled.segments import merged_order

    into = np.arange(cut.order.size)
    for a, b in sorted(pairs, key=lambda pair: pair[1]):
        into[b] = into[a]
    kept, into = np.unique(into, return_inverse=True)
    order = merged_order(condensed.flat, condensed.device, cut.order, into, kept.size)
    if order.size < kept.size:
        return None
    return Cut(cut.device_of_kernel, cut.kernels_in_order, into[cut.segment_of], order)


def _within_memory(problem: Problem, cut: Cut, *instead: Cut) -> Schedule:
    """The schedule of a cut, unless it needs memory that one of the others does not."""
    from placement.core.violations import violations
    from placement.simulator.evaluator import can_overflow

    schedule, others = _schedule(problem, cut), [one for one in instead if one is not cut]
    if others and can_overflow(problem) and violations(problem, schedule):
        for other in (_schedule(problem, one) for one in others):
            if not violations(problem, other):
                return other
    return schedule
