"""What a value costs that crosses between two lanes of a CPU, by the model's own kernels.

Nothing is copied there, and yet a crossing costs: the reader is woken, its first look at what
another core wrote goes through memory that both share, and so do its later ones where the value is
large. Kernels behind the first one take longer, too, probably for what the lane had in its caches
is gone: so segments of several kernels, as placements have them, alternate between both lanes. The
same segments run on each lane alone as well, the three programs in turns, and what a segment takes
longer than on its own lane alone is held against the bytes that crossed. Where too few segments
would cross, single kernels do, each where its largest input was not made.
"""

import itertools
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
from profiling.devices import heap
from profiling.devices.lanes import Lane, Step
from profiling.measuring.links import MOST_BYTES_PER_S
from profiling.measuring.reference import release, settled_step, turn_s
from profiling.measuring.siblings import Siblings, siblings

BUDGET_S = 2.0
FEWEST_ROUNDS, MOST_ROUNDS = 7, 40
WARMUP = 3
# A schedule, and the lanes that carry it.
Way = tuple[Schedule, Sequence[Lane]]
# Fewer than these say nothing about a line.
FEWEST_CROSSINGS = 8
# On average of segments that are drawn: with 8 and 16 a call costs more, up to twice as much, with
# 2 less, and placements' calls are in between.
KERNELS_PER_SEGMENT = 4
_FITS = 12


@dataclass(frozen=True, eq=False)
class Crossings:
    """Segments (S,) on two lanes, in an order in which they may run, and what crosses.

    `lane_of` (S,) is 0 or 1, `num_bytes` (S,) what a segment is the first on its lane to read of
    what the other lane made, `awaits` the segments that make it.
    """

    kernels: tuple[tuple[int, ...], ...]
    lane_of: Ints
    num_bytes: Floats
    awaits: tuple[tuple[int, ...], ...]


def crossings_of(kernels: Graph) -> Crossings:
    """A segment for each kernel, on the lane that did not make its largest input."""
    arrays, num = kernels.arrays, len(kernels.ops)
    lane_of = np.zeros(num, dtype=np.int64)
    for k in range(num):
        inputs = arrays.in_tensors[arrays.in_ptr[k] : arrays.in_ptr[k + 1]]
        made = [int(t) for t in inputs if arrays.producer[t] >= 0]
        if made:
            largest = max(made, key=lambda t: float(arrays.tensor_bytes[t]))
            lane_of[k] = 1 - lane_of[arrays.producer[largest]]
    return crossings_between(kernels, [(k,) for k in range(num)], lane_of)


def crossings_of_segments(kernels: Graph) -> Crossings:
    """Segments of some kernels each, as placements have them, by turns on both lanes."""
    num = len(kernels.ops)
    borders = itertools.pairwise((*drawn_borders(num), num))
    segments = [tuple(range(first, last)) for first, last in borders]
    return crossings_between(kernels, segments, np.arange(len(segments)) % 2)


def drawn_borders(num: int) -> list[int]:
    """Where segments of some kernels begin, always the same for a number of kernels.

    >>> drawn_borders(20)
    [0, 2, 3, 11, 13, 15]
    """
    drawn = np.random.default_rng(0).random(num) < 1.0 / KERNELS_PER_SEGMENT
    return [0, *(int(k) for k in np.flatnonzero(drawn) if k > 0)]


def crossings_between(
    kernels: Graph, segments: Sequence[tuple[int, ...]], lane_of: Ints
) -> Crossings:
    """Of segments (S,) of kernels in an order in which they may run, on these lanes (S,)."""
    arrays = kernels.arrays
    segment_of = {k: s for s, own in enumerate(segments) for k in own}
    num_bytes, awaits = np.zeros(len(segments)), list[tuple[int, ...]]()
    read, awaited = set[tuple[int, int]](), set[tuple[int, int]]()
    for s, own in enumerate(segments):
        lane, makers = int(lane_of[s]), set[int]()
        for k in own:
            for t in arrays.in_tensors[arrays.in_ptr[k] : arrays.in_ptr[k + 1]].tolist():
                producer = int(arrays.producer[t])
                if producer < 0 or lane_of[segment_of[producer]] == lane:
                    continue
                makers.add(segment_of[producer])
                if (t, lane) not in read:
                    num_bytes[s] += float(arrays.tensor_bytes[t])
                    read.add((t, lane))
        awaits.append(tuple(sorted(maker for maker in makers if (maker, lane) not in awaited)))
        awaited.update((maker, lane) for maker in makers)
    return Crossings(tuple(segments), lane_of, num_bytes, tuple(awaits))


def crossing_cost(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    timeout_s: float,
    beside: Siblings | None = None,
) -> tuple[float, float] | None:
    """(latency_s, bytes_per_s) between two equal lanes; None where too little crosses to say.

    Segments of some kernels cross, and by least squares all of them together count, also those that
    were disturbed; where they are too few, single kernels do, of which a few that were disturbed
    count little. Neither lane is taken for as fast as the other: what others do beside them may
    slow one of two equal ones.
    """
    kernels, plan = compiled.kernels, crossings_of_segments(compiled.kernels)
    by_segment = _num_crossings(plan) >= FEWEST_CROSSINGS
    if not by_segment:
        plan = crossings_of(kernels)
        if _num_crossings(plan) < FEWEST_CROSSINGS:
            return None
    crossed = np.flatnonzero(plan.num_bytes > 0)
    ways = [way_on_both(kernels, pair, plan)]
    ways += [way_on_one(kernels, device, plan) for device in pair]
    there, *here = in_turns(compiled, pair, feeds, timeout_s, ways, beside=beside)
    there_s, *here_s = (np.median(list(map(seconds_of, steps)), axis=0) for steps in (there, *here))
    longer_s = there_s - np.choose(plan.lane_of, here_s)
    through = straight_line if by_segment else line
    latency_s, s_per_byte = through(plan.num_bytes[crossed], longer_s[crossed])
    latency_s += _handed_s([handed_s(step, plan, pair) for step in there], by_segment)
    bytes_per_s = min(MOST_BYTES_PER_S, 1.0 / max(s_per_byte, 1e-30))
    return float(f"{latency_s:.4g}"), float(f"{bytes_per_s:.4g}")


def _num_crossings(plan: Crossings) -> int:
    return int((plan.num_bytes > 0).sum())


def _handed_s(steps: Sequence[Mapping[int, float]], by_segment: bool) -> float:
    """What a hand-over takes, of those by segment of some steps: the median of all, or the mean of
    each segment's median, where half of the steps had one."""
    if not by_segment:
        handed = [seconds for step in steps for seconds in step.values()]
        return float(np.median(handed)) if handed else 0.0
    of_each: dict[int, list[float]] = {}
    for k, seconds in (pair for step in steps for pair in step.items()):
        of_each.setdefault(k, []).append(seconds)
    medians = [np.median(own) for own in of_each.values() if 2 * len(own) >= len(steps)]
    return float(np.mean(medians)) if medians else 0.0


def in_turns(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    timeout_s: float,
    ways: Sequence[Way],
    most_s: float = math.inf,
    beside: Siblings | None = None,
) -> list[list[Step]]:
    """Steps, turn by turn, of each way to run the segments.

    None of any where it would take longer than `most_s`. `beside` looks at the cores of the pair.
    """
    programs, lanes = list[Program](), list[Carried]()
    try:
        for schedule, carried in ways:
            programs.append(compiled.open(schedule, feeds))
            lanes.append(programs[-1].carried(carried, len(schedule.segments)))
        pairs = list(zip(lanes, programs, strict=True))
        taken_s = 0.0
        turn = partial(turn_s, pairs, timeout_s)
        for number, taken_s in enumerate(heap.warming(turn, WARMUP)):
            # The first step makes channels, and says little of those that follow.
            if number and taken_s * (WARMUP + 2 * FEWEST_ROUNDS) > most_s:
                return [[] for _ in ways]
        rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, int(BUDGET_S / max(2 * taken_s, 1e-6))))
        step_of_each = [partial(settled_step, lane, program, timeout_s) for lane, program in pairs]
        return (beside or siblings(pair)).in_turns(step_of_each, rounds)
    finally:
        release(programs, lanes)


def way_on_both(kernels: Graph, pair: Sequence[Device], plan: Crossings) -> Way:
    lanes = []
    for number, device in enumerate(pair):
        own = tuple(np.flatnonzero(plan.lane_of == number).tolist())
        lanes.append(Lane(device, own, tuple(plan.awaits[s] for s in own)))
    return _schedule(kernels, plan, [pair[lane] for lane in plan.lane_of]), lanes


def way_on_one(kernels: Graph, device: Device, plan: Crossings) -> Way:
    """The same segments in the same order on one lane."""
    num = len(plan.kernels)
    lane = Lane(device, tuple(range(num)), ((),) * num)
    return _schedule(kernels, plan, [device] * num), [lane]


def _schedule(kernels: Graph, plan: Crossings, at: Sequence[Device]) -> Schedule:
    names = [tuple(kernels.ops[k].name for k in own) for own in plan.kernels]
    pairs = zip(at, names, strict=True)
    return Schedule(tuple(Segment(device.name, own) for device, own in pairs))


def seconds_of(step: Step) -> Floats:
    found: Floats = np.array(step.end_s) - np.array(step.start_s)
    return found


def overlaps_s(step: Step, plan: Crossings) -> Floats:
    """Of each segment (S,) the seconds for which the other lane computed, too."""
    start_s, end_s = np.array(step.start_s), np.array(step.end_s)
    found = np.zeros(len(plan.lane_of))
    for lane in (0, 1):
        own, other = plan.lane_of == lane, plan.lane_of != lane
        if own.any() and other.any():
            # Seconds that the other lane has computed until each of its borders.
            borders_s = np.stack([start_s[other], end_s[other]], axis=1).ravel()
            lasts_s = np.stack([np.zeros(other.sum()), (end_s - start_s)[other]], axis=1).ravel()
            done_s = np.cumsum(lasts_s)
            until_s = np.interp(end_s[own], borders_s, done_s)
            found[own] = until_s - np.interp(start_s[own], borders_s, done_s)
    return found


def handed_s(step: Step, plan: Crossings, pair: Sequence[Device]) -> dict[int, float]:
    """By segment from the end of one that another lane slept or tried for to its own start."""
    found = {}
    for k, producers in enumerate(plan.awaits):
        if producers:
            last = max(producers, key=lambda p: step.end_s[p])
            if (last, pair[plan.lane_of[k]].name) in step.resumed_s:
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


def straight_line(num_bytes: Floats, longer_s: Floats) -> tuple[float, float]:
    """The same by least squares, so that all crossings together take what they took, or nothing.

    >>> straight_line(np.array([0.0, 1e6, 2e6]), np.array([1e-5, 9e-5, 11e-5]))
    (2e-05, 5e-11)
    """
    from_mean = num_bytes - num_bytes.mean()
    varies = float((from_mean**2).sum())
    slope = max(0.0, float((from_mean * longer_s).sum()) / varies) if varies else 0.0
    constant = float(longer_s.mean() - slope * num_bytes.mean())
    if constant < 0.0:
        total = float(num_bytes.sum())
        slope = max(0.0, float(longer_s.sum()) / total) if total else 0.0
        constant = 0.0
    return float(f"{constant:.6g}"), float(f"{slope:.6g}")
