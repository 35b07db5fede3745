"""What a value costs that crosses between two lanes of a CPU, by the model's own kernels.

Nothing is copied there, and yet a crossing costs: the reader is woken, its first look at what
another core wrote goes through memory that both share, and so do its later ones where the value is
large. How much depends on how kernels read, so each kernel is run where its largest input was made
by the other lane, in turns with all of them on one lane, and what it takes longer is held against
the bytes that crossed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Graph, Ints
from placement.core.machine import Device
from placement.core.schedule import Schedule, Segment
from profiling.backends.base import Carried, Compiled, Program
from profiling.devices.lanes import Lane, Step
from profiling.measuring.links import MOST_BYTES_PER_S
from profiling.measuring.reference import release, safe_step, settled_step
from profiling.measuring.siblings import Siblings, siblings

BUDGET_S = 2.0
FEWEST_ROUNDS, MOST_ROUNDS = 7, 40
WARMUP = 3
# Fewer than these say nothing about a line.
FEWEST_CROSSINGS = 8
_FITS = 12


@dataclass(frozen=True, eq=False)
class Crossings:
    """Kernels (K,) on two lanes such that much crosses between them.

    `lane_of` (K,) is 0 or 1, `num_bytes` (K,) what a kernel is the first on its lane to read of
    what the other lane made, `awaits` the kernels that make it.
    """

    lane_of: Ints
    num_bytes: Floats
    awaits: tuple[tuple[int, ...], ...]


def crossings_of(kernels: Graph) -> Crossings:
    """Each kernel on the lane that did not make its largest input."""
    arrays, num = kernels.arrays, len(kernels.ops)
    lane_of, num_bytes = np.zeros(num, dtype=np.int64), np.zeros(num)
    awaits: list[tuple[int, ...]] = []
    read: set[tuple[int, int]] = set()
    awaited: set[tuple[int, int]] = set()
    for k in range(num):
        inputs = arrays.in_tensors[arrays.in_ptr[k] : arrays.in_ptr[k + 1]]
        made = [int(t) for t in inputs if arrays.producer[t] >= 0]
        if made:
            largest = max(made, key=lambda t: float(arrays.tensor_bytes[t]))
            lane_of[k] = 1 - lane_of[arrays.producer[largest]]
        lane = int(lane_of[k])
        there = [t for t in made if lane_of[arrays.producer[t]] != lane]
        num_bytes[k] = sum(float(arrays.tensor_bytes[t]) for t in there if (t, lane) not in read)
        read.update((t, lane) for t in there)
        new = {int(arrays.producer[t]) for t in there}
        awaits.append(tuple(sorted(p for p in new if (p, lane) not in awaited)))
        awaited.update((p, lane) for p in new)
    return Crossings(lane_of, num_bytes, tuple(awaits))


def crossing_cost(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    timeout_s: float,
    beside: Siblings | None = None,
) -> tuple[float, float] | None:
    """(latency_s, bytes_per_s) between two equal lanes; None where too little crosses to say."""
    plan = crossings_of(compiled.kernels)
    crossed = np.flatnonzero(plan.num_bytes > 0)
    if len(crossed) < FEWEST_CROSSINGS:
        return None
    names = [op.name for op in compiled.kernels.ops]
    at = [pair[lane].name for lane in plan.lane_of]
    everything = Lane(pair[0], tuple(range(len(names))), ((),) * len(names))
    apart = [lane_of_kernels(device, number, plan) for number, device in enumerate(pair)]
    ways = ((at, apart), ([pair[0].name] * len(names), [everything]))
    there, here = in_turns(compiled, pair, feeds, timeout_s, ways, beside=beside)
    longer_s = np.median([seconds_of(step) for step in there], axis=0)
    longer_s -= np.median([seconds_of(step) for step in here], axis=0)
    handed = [seconds for step in there for seconds in handed_s(step, plan, at).values()]
    latency_s, s_per_byte = line(plan.num_bytes[crossed], longer_s[crossed])
    latency_s += float(np.median(handed)) if handed else 0.0
    bytes_per_s = min(MOST_BYTES_PER_S, 1.0 / max(s_per_byte, 1e-30))
    return float(f"{latency_s:.4g}"), float(f"{bytes_per_s:.4g}")


def in_turns(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    timeout_s: float,
    ways: Sequence[tuple[Sequence[str], Sequence[Lane]]],
    most_s: float = math.inf,
    beside: Siblings | None = None,
) -> list[list[Step]]:
    """Steps, turn by turn, of each way to run the kernels one by one: their devices and lanes.

    None of any where it would take longer than `most_s`. `beside` looks at the cores of the pair.
    """
    names = [op.name for op in compiled.kernels.ops]
    programs, lanes = list[Program](), list[Carried]()
    try:
        for at, carried in ways:
            segments = tuple(Segment(on, (name,)) for on, name in zip(at, names, strict=True))
            programs.append(compiled.open(Schedule(segments), feeds))
            lanes.append(programs[-1].carried(carried, len(names)))
        taken_s = 0.0
        for number in range(WARMUP):
            taken_s = sum(
                safe_step(lane, program, timeout_s).seconds
                for lane, program in zip(lanes, programs, strict=True)
            )
            # The first step makes channels, and says little of those that follow.
            if number and taken_s * (WARMUP + 2 * FEWEST_ROUNDS) > most_s:
                return [[] for _ in ways]
        rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, int(BUDGET_S / max(2 * taken_s, 1e-6))))
        pairs = zip(lanes, programs, strict=True)
        step_of_each = [partial(settled_step, lane, program, timeout_s) for lane, program in pairs]
        return (beside or siblings(pair)).in_turns(step_of_each, rounds)
    finally:
        release(programs, lanes)


def lane_of_kernels(device: Device, number: int, plan: Crossings) -> Lane:
    own = tuple(np.flatnonzero(plan.lane_of == number).tolist())
    return Lane(device, own, tuple(plan.awaits[k] for k in own))


def seconds_of(step: Step) -> Floats:
    found: Floats = np.array(step.end_s) - np.array(step.start_s)
    return found


def handed_s(step: Step, plan: Crossings, at: Sequence[str]) -> dict[int, float]:
    """By kernel from the end of one that another lane slept or tried for to its own start."""
    found = {}
    for k, producers in enumerate(plan.awaits):
        if producers:
            last = max(producers, key=lambda p: step.end_s[p])
            if (last, at[k]) in step.resumed_s:
                found[k] = step.start_s[k] - step.end_s[last]
    return found


def line(num_bytes: Floats, longer_s: Floats) -> tuple[float, float]:
    """(seconds, seconds per byte), none negative, of the line that comes closest to what is longer.

    Least squares reweighted (Huber), so that a few disturbed kernels count little.

    >>> line(np.array([0.0, 1e6, 2e6]), np.array([1e-5, 6e-5, 11e-5]))
    (1e-05, 5e-11)
    """
    weights = np.ones_like(num_bytes)
    constant = slope = 0.0
    for _ in range(_FITS):
        mean_x, mean_y = (np.average(values, weights=weights) for values in (num_bytes, longer_s))
        from_mean = num_bytes - mean_x
        varies = float((weights * from_mean**2).sum())
        slope = float((weights * from_mean * (longer_s - mean_y)).sum()) / varies if varies else 0.0
        slope, constant = max(0.0, slope), float(mean_y - slope * mean_x)
        if slope == 0.0 or constant < 0.0:
            square = float((weights * num_bytes**2).sum())
            through = float((weights * num_bytes * longer_s).sum()) / square if square else 0.0
            slope, constant = (
                (0.0, max(0.0, float(mean_y))) if slope == 0.0 else (max(0.0, through), 0.0)
            )
        error = np.abs(constant + slope * num_bytes - longer_s)
        typical = max(1.4826 * float(np.median(error)), 1e-9)
        weights = np.minimum(1.0, 1.345 * typical / np.maximum(error, 1e-12))
    return float(f"{constant:.6g}"), float(f"{slope:.6g}")
