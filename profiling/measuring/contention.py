"""How much slower two lanes of a CPU are while the other one computes, by the model's own kernels.

Where a runtime finds an order of kernels itself, both lanes run the whole model at once. Where it
keeps the order of a schedule, a list schedule of the model runs on both lanes, and beside it the
same order on one: two whole models at once are in the same phase, and neither reads what the other
wrote, so they lost 9 % where lanes that share a training step lose 13 to 15. Where hardly anything
of a model can run beside something else, whole models are left.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Graph, Ints
from placement.core.machine import Device
from placement.core.schedule import Schedule, Segment
from profiling.backends.base import Compiled
from profiling.devices.lanes import Lane, Lanes, Step
from profiling.measuring.crossings import (
    apart_of,
    in_turns,
    overlaps_s,
    seconds_of,
    way_apart,
    way_on_one,
)
from profiling.measuring.reference import alone, release
from profiling.measuring.siblings import Siblings

BUDGET_S = 1.0
FEWEST_ROUNDS, MOST_ROUNDS = 7, 60
WARMUP = 3
TIMEOUT_S = 120.0
# The percentile that stands for steps beside which nothing else computes.
UNDISTURBED = 25
# Kernels that are beside another for a smaller share of their time say nothing.
LEAST_BESIDE = 0.2
# What takes longer is at most so much of the time beside another.
_MOST_LOST = 0.5


def contention_of_lanes(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    kernel_s: Floats,
    crossing: tuple[float, float] | None,
    beside: Siblings,
) -> float:
    """0.1 where two equal lanes are a tenth slower together than alone.

    `kernel_s` (K,) are seconds of kernels alone, `crossing` what a value takes between the lanes as
    (seconds, bytes per second), None where that is not known.
    """
    if not len(kernel_s):
        return 0.0
    found = None
    if compiled.keeps_order:
        latency_s, bytes_per_s = crossing or (0.0, np.inf)
        order = by_rank(compiled.kernels, kernel_s)
        crossed_s = latency_s + compiled.kernels.arrays.tensor_bytes / bytes_per_s
        lane_of = list_scheduled(compiled.kernels, kernel_s, order, crossed_s)
        found = _of_parts(compiled, pair, feeds, order, lane_of, beside)
    return _of_wholes(compiled, pair, feeds, beside) if found is None else found


def cost_of_rank_order(
    compiled: Compiled,
    device: Device,
    feeds: Mapping[str, Any],
    kernel_s: Floats,
    beside: Siblings,
) -> float:
    """How many times as long a step takes by upward rank as in the model's own order; 1 where the
    runtime finds an order itself.

    Where it keeps that of a schedule, placements on several lanes run by rank, or near it, and lose
    what is in the caches on the way to and fro between branches, while kernels were measured as
    they are declared.
    """
    if not len(kernel_s) or not compiled.keeps_order:
        return 1.0
    names = tuple(op.name for op in compiled.kernels.ops)
    ranked = tuple(names[k] for k in by_rank(compiled.kernels, kernel_s))
    orders = [Schedule((Segment(device.name, order),)) for order in (ranked, names)]
    programs = [compiled.open(schedule, feeds) for schedule in orders]
    lanes = [alone(program, device) for program in programs]
    try:
        by_each = _turns([partial(lane.step, TIMEOUT_S) for lane in lanes], beside)
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
) -> Ints:
    """Kernels (K,) on lane 0 or 1, each in turn where it ends first (Graham, 1969).

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
    return lane_of


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


def _of_wholes(
    compiled: Compiled, pair: Sequence[Device], feeds: Mapping[str, Any], beside: Siblings
) -> float:
    """By steps of the whole model on both lanes at once, and on each alone."""
    names = tuple(op.name for op in compiled.kernels.ops)
    programs = [compiled.open(Schedule((Segment(d.name, names),)), feeds) for d in pair]
    each = [alone(program, device) for device, program in zip(pair, programs, strict=True)]
    lanes = [Lane(device, (i,), ((),)) for i, device in enumerate(pair)]
    together = Lanes(lanes, len(pair), lambda i: programs[i].run(0))
    try:
        both, *by_each = _turns([partial(one.step, TIMEOUT_S) for one in (together, *each)], beside)
    finally:
        release(programs, (together, *each))
    together_s = [[step.end_s[i] - step.start_s[i] for step in both] for i in range(len(pair))]
    return contention_of(together_s, [[step.seconds for step in steps] for steps in by_each])


def _of_parts(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    order: Sequence[int],
    lane_of: Ints,
    beside: Siblings,
) -> float | None:
    """By what kernels take longer on both lanes than on one, of the time for which both computed.

    None where that was too short to say.
    """
    plan = apart_of(compiled.kernels, lane_of, order)
    ways = [way_apart(compiled.kernels, pair, plan, order)]
    ways.append(way_on_one(compiled.kernels, pair[0], order))
    there, here = in_turns(compiled, pair, feeds, TIMEOUT_S, ways, beside=beside)
    there_s, here_s = (
        float(np.percentile([seconds_of(step).sum() for step in steps], UNDISTURBED))
        for steps in (there, here)
    )
    both_s = float(np.median([overlaps_s(step, plan).sum() for step in there]))
    if both_s < LEAST_BESIDE * there_s:
        return None
    lost = min(_MOST_LOST, max(0.0, (there_s - here_s) / both_s))
    return lost / (1.0 - lost)


def _turns(steps: Sequence[Callable[[], Step]], beside: Siblings) -> list[list[Step]]:
    for _ in range(WARMUP):
        taken_s = sum(step().seconds for step in steps)
    rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, int(BUDGET_S / max(taken_s, 1e-6))))
    return beside.in_turns(steps, rounds)
