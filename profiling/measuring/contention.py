"""How much slower two lanes of a CPU are while the other one computes, by the model's own kernels.

Where a runtime finds an order of kernels itself, both lanes run the whole model at once. Where it
keeps the order of a schedule, two whole models in step with each other are always in the same phase
and share nothing, so the model itself is scheduled on both lanes, and the same segments in turns
with it on each of them alone.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Graph, Ints
from placement.core.machine import Device
from placement.core.schedule import Schedule, Segment
from profiling.backends.base import Carried, Compiled, Program
from profiling.devices import heap
from profiling.devices.lanes import Lane, Lanes, Step
from profiling.devices.native import NativeCalls, share_cores
from profiling.measuring.crossings import (
    crossings_between,
    in_turns,
    overlaps_s,
    seconds_of,
    way_on_both,
    way_on_one,
)
from profiling.measuring.reference import alone, release, safe_step
from profiling.measuring.siblings import Siblings

# Of whole models.
BUDGET_S = 1.0
FEWEST_ROUNDS, MOST_ROUNDS = 7, 60
WARMUP = 3
TIMEOUT_S = 120.0
# The percentile that stands for steps beside which nothing else computes.
UNDISTURBED = 25
# Kernels that are beside another for a smaller share of their time say nothing.
LEAST_BESIDE = 0.3
# So much of the time beside another may be lost, as between hosts: 0.9 is a contention of nine.
MOST_LOST = 0.9


def contention_of_wholes(
    compiled: Compiled, pair: Sequence[Device], feeds: Mapping[str, Any], beside: Siblings
) -> float:
    """0.1 where two equal lanes are a tenth slower together than alone, by steps of the whole model
    on both at once and on each alone."""
    names = tuple(op.name for op in compiled.kernels.ops)
    if not names:
        return 0.0
    programs, lanes = list[Program](), list[Carried | Lanes]()
    try:
        for device in pair:
            programs.append(compiled.open(Schedule((Segment(device.name, names),)), feeds))
            lanes.append(alone(programs[-1], device))
        lanes.insert(0, _on_each(pair, programs))
        together, *by_each = _turns([partial(one.step, TIMEOUT_S) for one in lanes], beside)
    finally:
        release(programs, lanes)
    together_s = [[step.end_s[i] - step.start_s[i] for step in together] for i in range(len(pair))]
    return contention_of(together_s, [[step.seconds for step in steps] for steps in by_each])


def _on_each(pair: Sequence[Device], programs: Sequence[Program]) -> Lanes:
    """Lanes of which each runs the one segment of its own program, as lanes of a placement do."""
    lanes = programs[0].pinned([Lane(device, (i,), ((),)) for i, device in enumerate(pair)])
    calls = [program.native for program in programs if program.native is not None]
    native = None
    if len(calls) == len(programs) and not share_cores(pair):
        rows = np.concatenate([own.arguments for own in calls])
        native = NativeCalls(calls[0].function, rows, calls[0].error)
    return Lanes(
        lanes,
        len(pair),
        lambda i: programs[i].run(0),
        rest=programs[0].rest,
        native=native,
        is_repeatable=all(program.is_repeatable for program in programs),
    )


def contention_of_parts(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    kernel_s: Floats,
    crossing: tuple[float, float] | None,
    beside: Siblings,
) -> float | None:
    """The same by what segments of one model on both lanes take longer than each on its lane alone,
    of the time for which both lanes computed; None where that would be too short to say.

    `kernel_s` (K,) are seconds of kernels alone, `crossing` what a value takes between the lanes as
    (seconds, bytes per second), None where that is not known: it is no contention.
    """
    kernels, (latency_s, bytes_per_s) = compiled.kernels, crossing or (0.0, np.inf)
    order = by_rank(kernels, kernel_s)
    crossed_s = latency_s + kernels.arrays.tensor_bytes / bytes_per_s
    lane_of, step_s = list_scheduled(kernels, kernel_s, order, crossed_s)
    # At any time one lane computes or both do.
    if 2.0 * (float(kernel_s.sum()) - step_s) <= LEAST_BESIDE * float(kernel_s.sum()):
        return None
    plan = crossings_between(kernels, *cut(kernels, lane_of, order))
    ways = [way_on_both(kernels, pair, plan)]
    ways += [way_on_one(kernels, device, plan) for device in pair]
    there, *here = in_turns(compiled, pair, feeds, TIMEOUT_S, ways, beside=beside)
    there_s, *here_s = (np.median(list(map(seconds_of, steps)), axis=0) for steps in (there, *here))
    longer_s = there_s - np.choose(plan.lane_of, here_s) - plan.num_bytes / bytes_per_s
    beside_s = np.median([overlaps_s(step, plan) for step in there], axis=0)
    counts = beside_s > 0.0
    if not counts.any():
        return None
    lost = min(MOST_LOST, max(0.0, float(longer_s[counts].sum() / beside_s[counts].sum())))
    return lost / (1.0 - lost)


def cost_of_rank_order(
    compiled: Compiled,
    device: Device,
    feeds: Mapping[str, Any],
    kernel_s: Floats,
    beside: Siblings,
) -> float:
    """How many times as long a step takes by upward rank as in the model's own order, where the
    runtime keeps the order of a schedule.

    Placements on several lanes run by rank, or near it, and lose what is in the caches on the way
    to and fro between branches, while kernels were measured as they are declared.
    """
    names = tuple(op.name for op in compiled.kernels.ops)
    ranked = tuple(names[k] for k in by_rank(compiled.kernels, kernel_s))
    programs, lanes = list[Program](), list[Carried]()
    try:
        for order in (ranked, names):
            programs.append(compiled.open(Schedule((Segment(device.name, order),)), feeds))
            lanes.append(alone(programs[-1], device))
        pairs = zip(lanes, programs, strict=True)
        by_each = _turns([partial(safe_step, *one, TIMEOUT_S) for one in pairs], beside)
    finally:
        release(programs, lanes)
    ranked_s, declared_s = ([step.seconds for step in steps] for steps in by_each)
    return slower(ranked_s, declared_s)


def by_rank(kernels: Graph, kernel_s: Floats) -> list[int]:
    """Kernels by falling upward rank on one device, where nothing is sent: makers before readers.

    Of equal ones those that are declared first come first, as they do everywhere.
    """
    ranks = kernel_s.tolist()
    for k in reversed(range(len(ranks))):
        ranks[k] += max((ranks[reader] for reader in kernels.successors[k]), default=0.0)
    return sorted(range(len(ranks)), key=lambda k: -ranks[k])


def list_scheduled(
    kernels: Graph, kernel_s: Floats, order: Sequence[int], crossed_s: Floats
) -> tuple[Ints, float]:
    """Kernels (K,) on lane 0 or 1, each in turn where it finishes earliest behind all before it
    (HEFT's rule without insertion; Topcuoglu et al., 2002), and the seconds of the step.

    `crossed_s` (T,) is what each tensor takes to the other lane.
    """
    arrays = kernels.arrays
    lane_of, end_s, free_s = np.zeros(len(order), dtype=np.int64), kernel_s.tolist(), [0.0, 0.0]
    for k in order:
        read = arrays.in_tensors[arrays.in_ptr[k] : arrays.in_ptr[k + 1]].tolist()
        made = [(int(arrays.producer[t]), float(crossed_s[t])) for t in read]
        start_s = [
            max(
                free_s[lane],
                *(end_s[p] + (s if lane_of[p] != lane else 0.0) for p, s in made if p >= 0),
                0.0,
            )
            for lane in (0, 1)
        ]
        lane = lane_of[k] = int(start_s[1] < start_s[0])
        end_s[k] = free_s[lane] = start_s[lane] + kernel_s[k]
    return lane_of, max(free_s)


def cut(kernels: Graph, lane_of: Ints, order: Sequence[int]) -> tuple[list[tuple[int, ...]], Ints]:
    """Segments (S,) of kernels that follow each other on a lane, and their lanes (S,).

    As in a placement they begin where something of the other lane is read, and end where something
    is made that the other lane reads.
    """
    arrays = kernels.arrays
    made_s, lanes = list[list[int]](), list[int]()
    under_way: dict[int, list[int]] = {}
    for k in order:
        lane, read = int(lane_of[k]), arrays.in_tensors[arrays.in_ptr[k] : arrays.in_ptr[k + 1]]
        makers = arrays.producer[read]
        if lane not in under_way or any(lane_of[p] != lane for p in makers if p >= 0):
            made_s.append([])
            lanes.append(lane)
            under_way[lane] = made_s[-1]
        under_way[lane].append(k)
        if any(lane_of[reader] != lane for reader in kernels.successors[k]):
            del under_way[lane]
    return list(map(tuple, made_s)), np.array(lanes, dtype=np.int64)


def contention_of(
    together_s: Sequence[Sequence[float]], alone_s: Sequence[Sequence[float]]
) -> float:
    """How much slower lanes are together than alone, by lane the seconds of some steps each.

    >>> round(contention_of([[11, 11, 11, 30, 30]], [[10, 10, 10, 10, 30]]), 6)
    0.1
    """
    by_lane = [slower(*both) for both in zip(together_s, alone_s, strict=True)]
    return max(0.0, float(np.mean(by_lane)) - 1.0)


def slower(seconds: Sequence[float], than_s: Sequence[float]) -> float:
    """How many times as long steps take as others.

    Of both the first quartile: what else computes, the page that shows this too, is oftener on one
    of two cores than on one, and a median would count it as contention.
    """
    return float(np.percentile(seconds, UNDISTURBED) / np.percentile(than_s, UNDISTURBED))


def _turns(steps: Sequence[Callable[[], Step]], beside: Siblings) -> list[list[Step]]:
    *_, taken_s = heap.warming(lambda: sum(step().seconds for step in steps), WARMUP)
    rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, int(BUDGET_S / max(taken_s, 1e-6))))
    return beside.in_turns(steps, rounds)
