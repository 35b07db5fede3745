"""Clock times of a step as spans: what the simulator writes too, so that one can compare."""

from collections.abc import Iterator, Mapping
from typing import Any

from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span, Timeline
from placement.simulator.lowering import Tasks
from profiling.devices.lanes import Step


def span_events(schedule: Schedule, step: Step, number: int) -> Iterator[dict[str, Any]]:
    """Events of one step: its segments in order of start, then the step itself."""
    order = sorted(range(len(schedule.segments)), key=lambda i: (step.start_s[i], i))
    for i in order:
        segment = schedule.segments[i]
        yield {
            "event": "span",
            "step": number,
            "kind": "compute",
            "name": segment.kernels[0],
            "device": segment.device,
            "segment": i,
            "start_s": step.start_s[i] - step.began_s,
            "end_s": step.end_s[i] - step.began_s,
        }
    yield {"event": "step", "index": number, "seconds": step.seconds}


def measured_timeline(
    problem: Problem, schedule: Schedule, tasks: Tasks, step: Step, peak_bytes: Mapping[str, int]
) -> Timeline:
    """The timeline of a measured step; each span lists what had to end before it.

    A transfer between devices that share memory is the hand-over: from the producer's end to the
    moment the waiting thread ran again, without length if nobody waited. Others have the times that
    a device has told of its copies.
    """
    names = [d.name for d in problem.machine.devices]
    drafts: list[tuple[float, int, int, float]] = []
    for i, move in enumerate(tasks.transfers):
        start = step.end_s[move.segment] if move.segment >= 0 else step.began_s
        end = step.resumed_s.get((move.segment, names[move.dst]), start)
        tensor = problem.kernels.tensors[move.tensor]
        start, end = step.copied_s.get((tensor.name, names[move.dst]), (start, end))
        drafts.append((start, 0, i, max(start, end)))
    drafts += [(t, 1, i, step.end_s[i]) for i, t in enumerate(step.start_s)]
    drafts.sort(key=lambda d: (d[0], d[3], d[1], d[2]))
    position = {(kind, i): p for p, (_, kind, i, _) in enumerate(drafts)}
    previous = {s: lane[j - 1] for lane in tasks.lanes for j, s in enumerate(lane) if j}
    spans = []
    after: tuple[tuple[int, int], ...]
    for start, kind, i, end in drafts:
        times = (start - step.began_s, end - step.began_s)
        if kind == 0:
            move = tasks.transfers[i]
            tensor = problem.kernels.tensors[move.tensor]
            device = f"{names[move.src]}->{names[move.dst]}"
            after = ((1, move.segment),) if move.segment >= 0 else ()
            details = ("transfer", tensor.name, device, *times, move.segment, tensor.num_bytes)
        else:
            segment = schedule.segments[i]
            before = (previous[i],) if i in previous else ()
            own = dict.fromkeys((*before, *tasks.local_reads[i]))
            after = (*((1, s) for s in own), *((0, r) for r in tasks.reads[i]))
            details = ("compute", segment.kernels[0], segment.device, *times, i, 0)
        spans.append(Span(*details, tuple(position[a] for a in after)))
    return Timeline(tuple(spans), step.seconds, "measured", peak_bytes)
