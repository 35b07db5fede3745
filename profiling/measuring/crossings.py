"""What a value costs that crosses between two devices, measured with the model's own kernels.

Between lanes of one CPU nothing is copied, and yet a crossing costs: the reader is woken, its first
look at what another core wrote goes through memory that both share, and so do its later ones where
the value is large. How much depends on how kernels read, so each kernel is run where its largest
input was made by the other lane, in turns with all of them on one lane, and what it takes longer is
held against the bytes that crossed. Between hosts a value is sent, by threads that share cores with
the lanes, and the kernel that reads it has slept meanwhile: what it takes longer and what it waited
after the value was made is one sum, of which the mean counts, for what is late once makes all late
that follows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Graph, Ints
from placement.core.machine import Device
from placement.core.schedule import Schedule, Segment
from profiling.backends.base import Carried, Compiled, Program
from profiling.devices.lanes import Lane, Step
from profiling.measuring.links import MOST_BYTES_PER_S
from profiling.measuring.reference import release, safe_step, settled_step
from profiling.measuring.siblings import siblings

BUDGET_S = 2.0
# What crosses between hosts is not measured where that takes longer.
MOST_S = 20.0
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


class Sending(NamedTuple):
    """How many times what a message takes a value takes to cross in a step, and the shares of that
    for which it holds up the lanes of who sends and who receives it."""

    ratio: float
    send: float
    receive: float


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
    compiled: Compiled, pair: Sequence[Device], feeds: Mapping[str, Any], timeout_s: float
) -> tuple[float, float] | None:
    """(latency_s, bytes_per_s) between two equal lanes; None where too little crosses to say."""
    plan = crossings_of(compiled.kernels)
    crossed = np.flatnonzero(plan.num_bytes > 0)
    if len(crossed) < FEWEST_CROSSINGS:
        return None
    names = [op.name for op in compiled.kernels.ops]
    at = [pair[lane].name for lane in plan.lane_of]
    everything = Lane(pair[0], tuple(range(len(names))), ((),) * len(names))
    apart = [_lane(device, number, plan) for number, device in enumerate(pair)]
    there, here = _in_turns(
        compiled, pair, feeds, timeout_s, ((at, apart), ([pair[0].name] * len(names), [everything]))
    )
    longer_s = np.median([_seconds(step) for step in there], axis=0)
    longer_s -= np.median([_seconds(step) for step in here], axis=0)
    handed = [seconds for step in there for seconds in _handed_s(step, plan, at).values()]
    latency_s, s_per_byte = line(plan.num_bytes[crossed], longer_s[crossed])
    latency_s += float(np.median(handed)) if handed else 0.0
    bytes_per_s = min(MOST_BYTES_PER_S, 1.0 / max(s_per_byte, 1e-30))
    return float(f"{latency_s:.4g}"), float(f"{bytes_per_s:.4g}")


def sending(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    timeout_s: float,
    message: tuple[float, float],
    contention: float = 0.0,
) -> Sending | None:
    """What a value costs that crosses between devices of two hosts, beside (seconds, seconds per
    byte) of a message between hosts that do nothing else; on average of both ways, for clocks of
    hosts may differ by more than a crossing takes, which the way back makes up for. Beside each
    other both are slower by `contention`, which is taken off.

    What kernels take longer, which send on what they make, holds up the senders. Where hosts tell
    the time of cores that they used, what crossing took of it beyond that holds up the receivers:
    threads of theirs that take values in run on the cores of the lanes.

    None where too little crosses to say, something may not cross, or it would take too long.
    """
    plan = crossings_of(compiled.kernels)
    made = [t for t in compiled.kernels.tensors if t.producer is not None and t.consumers]
    if np.count_nonzero(plan.num_bytes) < FEWEST_CROSSINGS or not all(
        map(compiled.exchanges, made)
    ):
        return None
    names = [op.name for op in compiled.kernels.ops]
    at = [pair[lane].name for lane in plan.lane_of]
    everything = tuple(range(len(names)))
    alone = [
        ([device.name] * len(names), [Lane(device, everything, ((),) * len(names))])
        for device in pair
    ]
    apart = [_lane(device, number, plan) for number, device in enumerate(pair)]
    there, *here = _in_turns(compiled, pair, feeds, timeout_s, ((at, apart), *alone), MOST_S)
    if not there:
        return None
    alone_s = np.array([np.mean([_seconds(step) for step in steps], axis=0) for steps in here])
    # With what a kernel takes to send on what it makes.
    usual_s = alone_s[plan.lane_of, np.arange(len(names))]
    usual_s += np.mean([_slowed_s(step, plan, contention) for step in there], axis=0)
    longer_s = np.mean([_seconds(step) for step in there], axis=0) - usual_s
    handed: dict[int, list[float]] = {}
    for step in there:
        for k, seconds in _handed_s(step, plan, at).items():
            handed.setdefault(k, []).append(seconds)
    # Of those that waited each time; others were sent while something else was computed. What
    # renews state is sent to all who hold it.
    renewing = {renewal.maker for renewal in compiled.renewals}
    waited = [k for k, s in handed.items() if len(s) == len(there) and names[k] not in renewing]
    ways = [[k for k in waited if plan.lane_of[k] == lane] for lane in (0, 1)]
    if min(map(len, ways)) < FEWEST_CROSSINGS:
        return None
    makers_s = sum(float(np.mean(longer_s[way])) for way in ways)
    taken_s = makers_s + sum(float(np.mean([np.mean(handed[k]) for k in way])) for way in ways)
    said_s = sum(message[0] + message[1] * float(np.mean(plan.num_bytes[way])) for way in ways)
    if not (said_s > 0 and taken_s > 0):
        return None
    ratio, send = taken_s / said_s, min(1.0, max(0.0, makers_s / taken_s))
    crossed = plan.num_bytes[plan.num_bytes > 0]
    whole_s = ratio * float((message[0] + message[1] * crossed).sum())
    used_s = [used for steps in (there, *here) if (used := _mean_processor_s(steps)) is not None]
    if len(used_s) < 3:
        return Sending(ratio, send, 0.0)
    extra_s = used_s[0] - sum(
        alone * float(usual_s[plan.lane_of == lane].sum() / alone_s[lane].sum())
        for lane, alone in enumerate(used_s[1:])
    )
    return Sending(ratio, send, min(1.0, max(send, extra_s / whole_s)) - send)


def _slowed_s(step: Step, plan: Crossings, contention: float) -> Floats:
    """Seconds that each kernel lost because the other lane computed beside it."""
    start_s, end_s = np.array(step.start_s), np.array(step.end_s)
    beside_s = np.zeros(len(plan.lane_of))
    for lane in (0, 1):
        own, other = plan.lane_of == lane, plan.lane_of != lane
        if own.any() and other.any():
            # Seconds that the other lane has computed until each of its borders.
            borders_s = np.stack([start_s[other], end_s[other]], axis=1).ravel()
            lasts_s = np.stack([np.zeros(other.sum()), (end_s - start_s)[other]], axis=1).ravel()
            done_s = np.cumsum(lasts_s)
            until_s = np.interp(end_s[own], borders_s, done_s)
            beside_s[own] = until_s - np.interp(start_s[own], borders_s, done_s)
    return beside_s * contention / (1 + contention)


def _mean_processor_s(steps: Sequence[Step]) -> float | None:
    told = [step.processor_s for step in steps if step.processor_s is not None]
    return float(np.mean(told)) if told else None


def _in_turns(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    timeout_s: float,
    ways: Sequence[tuple[Sequence[str], Sequence[Lane]]],
    most_s: float = math.inf,
) -> list[list[Step]]:
    """Steps, turn by turn, of each way to run the kernels one by one: their devices and lanes.

    None of any where it would take longer than `most_s`.
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
        return siblings(pair).in_turns(step_of_each, rounds)
    finally:
        release(programs, lanes)


def _lane(device: Device, number: int, plan: Crossings) -> Lane:
    own = tuple(np.flatnonzero(plan.lane_of == number).tolist())
    return Lane(device, own, tuple(plan.awaits[k] for k in own))


def _seconds(step: Step) -> Floats:
    found: Floats = np.array(step.end_s) - np.array(step.start_s)
    return found


def _handed_s(step: Step, plan: Crossings, at: Sequence[str]) -> dict[int, float]:
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
