"""Stages of a pipeline: few calls per sample, and how many samples apart the calls may run.

Software pipelining: in each round every device runs its segments once, each for the sample that has
got so far. A segment that reads what another device makes works one sample behind it, so that no
device waits for another within a round. M. Lam, "Software pipelining: an effective scheduling
technique for VLIW machines", PLDI 1988.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator.condensed import condense, ready_to_run
from placement.simulator.executions import lower
from placement.simulator.flat import Flat
from placement.simulator.lowering import stages_of
from placement.simulator.throughput import largest_load_s


@dataclass(frozen=True, eq=False)
class Cut:
    """Kernels in segments: `segment_of` (K,) and the segments in running order."""

    device_of_kernel: Ints
    kernels_in_order: Ints
    segment_of: Ints
    order: Ints


# Sums of the same times in another order differ by this much at most.
ROUNDING = 1e-12


def fewest_calls(flat: Flat, cut: Cut) -> Cut:
    """The same placement with the least largest load: as few calls as data allow, by turns.

    Of equal loads the one with the fewest segments. They run in an order of their own: how long one
    sample takes is no matter.
    """
    from placement.simulator.compiled.stages import longest_calls

    found = []
    for turns in _turns(cut, flat.call_s.size):
        segment_of = longest_calls(flat, cut.device_of_kernel, cut.kernels_in_order, turns)
        found.append(
            replace(cut, segment_of=segment_of, order=np.arange(segment_of.max(initial=-1) + 1))
        )
    found.append(cut)
    largest_s = [_largest_load_s(flat, candidate) for candidate in found]
    limit_s = min(largest_s) * (1 + ROUNDING)
    least = [c for c, value_s in zip(found, largest_s, strict=True) if value_s <= limit_s]
    return min(least, key=lambda c: c.order.size)


def _turns(cut: Cut, num_devices: int) -> Iterator[Ints]:
    """Orders in which devices take turns: as declared, from each of them on, then there and back.

    A training step goes forward along the pipeline and then backward, where some values skip
    stages; the pipeline begins with the device that runs first.
    """
    declared = np.arange(num_devices)
    for first in range(num_devices):
        yield np.roll(declared, -first)
    begins = np.full(num_devices, cut.kernels_in_order.size)
    position = np.arange(cut.kernels_in_order.size)
    np.minimum.at(begins, cut.device_of_kernel[cut.kernels_in_order], position)
    there = np.argsort(begins, kind="stable")
    yield np.concatenate([there, there[-2:0:-1]])


def in_stages(
    problem: Problem, schedule: Schedule, most: int | None = None
) -> tuple[Schedule, tuple[int, ...]]:
    """The schedule with its segments in order of their stages, and the stage of each.

    With `most`, neighbouring stages are joined until there are no more than that; those of one
    stage wait for each other again. A sample meets the segments of a device in schedule order.
    """
    stage = stages_of(lower(problem, schedule))
    num = max(stage, default=0) + 1
    kept = num if most is None else min(num, most)
    order = sorted(range(len(stage)), key=lambda s: (stage[s], s))
    segments = tuple(schedule.segments[s] for s in order)
    return Schedule(segments), tuple(stage[s] * kept // num for s in order)


def _largest_load_s(flat: Flat, cut: Cut) -> float:
    condensed = condense(flat, cut.device_of_kernel, cut.segment_of, cut.order.size)
    return largest_load_s(condensed.flat, ready_to_run(condensed, cut.order))
