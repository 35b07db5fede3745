"""A critical path as a walk: where somebody stops who follows it from a step's start to its end.

The spans of a path are no steps for a lecture: one segment may hold a whole network, and some
tensors take no time to speak of. A stop is a stretch of work on one device that is worth a look, a
tensor on its way, or a time in which nothing runs.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span
from placement.costs.op_times import placed_seconds
from placement.drawing import spans
from placement.simulator.path_steps import waits

# Of the whole path: work that takes less is told together with what its device computes next.
LEAST_SHARE = 0.05


@dataclass(frozen=True)
class Stop:
    """Work on a device, a tensor on a link ("src->dst") or a wait, with its source ops by name.

    `queued_for` is the device or link that it waited for although its inputs were there; empty
    where it began as soon as they were.
    """

    kind: str
    place: str
    ops: tuple[str, ...]
    duration_s: float
    name: str
    num_bytes: int = 0
    queued_for: str = ""


def stops(
    problem: Problem, placement: Placement, schedule: Schedule, path: Sequence[Span]
) -> tuple[Stop, ...]:
    """The stops of a critical path of this schedule; their durations add up to the path's."""
    least_s = LEAST_SHARE * sum(span.duration_s for span in path)
    found: list[Stop] = []
    for stop in _pieces(problem, placement, schedule, path):
        last = found[-1] if found else None
        if last is not None and _goes_on(last, stop) and last.duration_s < least_s:
            took_s = last.duration_s + stop.duration_s
            found[-1] = replace(last, ops=(*last.ops, *stop.ops), duration_s=took_s)
        else:
            found.append(stop)
    return tuple(found)


def _goes_on(last: Stop, stop: Stop) -> bool:
    return last.kind == stop.kind == "compute" and last.place == stop.place


def _pieces(
    problem: Problem, placement: Placement, schedule: Schedule, path: Sequence[Span]
) -> Iterator[Stop]:
    """Every kernel of the path, every tensor and every wait, in order."""
    of, op_s = spans.ops_of(problem, schedule), placed_seconds(problem, placement)
    for span, queued in zip(path, waits(problem, schedule, path), strict=True):
        if span.kind != "compute":
            ops = of(span)
            name = spans.name_of(span, ops, problem.graph)
            yield Stop(span.kind, span.device, ops, span.duration_s, name, span.num_bytes, queued)
            continue
        groups = _kernels(problem, schedule, span)
        took_s = _shared_out(span.duration_s, [sum(op_s[i] for i in group) for group in groups])
        for number, (group, seconds) in enumerate(zip(groups, took_s, strict=True)):
            names = tuple(problem.graph.ops[i].name for i in group)
            waited = "" if number else queued
            yield Stop("compute", span.device, names, seconds, span.name, queued_for=waited)


def _kernels(problem: Problem, schedule: Schedule, span: Span) -> list[Sequence[int]]:
    """The source ops of each kernel of a segment, as it runs them; of one alone where none has."""
    kernels = schedule.segments[span.segment].kernels
    groups = [problem.sources[problem.kernels.index[kernel]] for kernel in kernels]
    return [group for group in groups if group] or [()]


def _shared_out(duration_s: float, parts_s: Sequence[float]) -> list[float]:
    """A span's time over its kernels, by what each takes; evenly where that says nothing."""
    total_s = math.fsum(parts_s)
    if not 0 < total_s < math.inf:
        return [duration_s / len(parts_s)] * len(parts_s)
    return [duration_s * (part_s / total_s) for part_s in parts_s]
