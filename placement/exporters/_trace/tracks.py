"""A step as tracks of slices for trace viewers: one per device, one per link, none overlapping.

What overlaps on one device or link (a CPU of any width in workloads, links without contention) is
spread over several tracks of the same name, because viewers draw slices of one track nested.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from placement.core.timeline import Span, Timeline
from placement.exporters.base import Export
from placement.simulator.critical_path import critical_path


@dataclass(frozen=True)
class Slice:
    """One span in whole nanoseconds; `index` is its place in the timeline."""

    index: int
    name: str
    kind: str
    start_ns: int
    end_ns: int
    num_bytes: int
    kernels: tuple[str, ...]
    critical: bool


@dataclass(frozen=True)
class Track:
    """Slices one after the other."""

    name: str
    slices: tuple[Slice, ...]


@dataclass(frozen=True)
class Step:
    """A timeline's tracks, devices first, in declared order.

    `arrows` lead from a slice to one on another track that waited for it, as span indices.
    """

    title: str
    tracks: tuple[Track, ...]
    arrows: tuple[tuple[int, int], ...]


def steps(export: Export) -> tuple[Step, ...]:
    """The predicted step, and the measured one where there is one."""
    return tuple(
        _step(f"{title} step, {export.problem.graph.name}", export, timeline)
        for title, timeline in export.timelines
    )


def _step(title: str, export: Export, timeline: Timeline) -> Step:
    tracks = _tracks(export, timeline)
    track_of = {one.index: n for n, track in enumerate(tracks) for one in track.slices}
    arrows = (
        (before, index)
        for index, span in enumerate(timeline.spans)
        for before in span.after
        if before in track_of and track_of[before] != track_of[index]
    )
    return Step(title, tracks, tuple(arrows))


def nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def _tracks(export: Export, timeline: Timeline) -> tuple[Track, ...]:
    on_path = {(s.kind, s.name, s.device) for s in critical_path(timeline)}
    rows: dict[str, list[Slice]] = {d.name: [] for d in export.problem.machine.devices}
    for index, span in enumerate(timeline.spans):
        rows.setdefault(span.device, []).append(
            Slice(
                index,
                span.name,
                span.kind,
                nanoseconds(span.start_s),
                max(nanoseconds(span.start_s), nanoseconds(span.end_s)),
                span.num_bytes,
                kernels_of(export, span),
                (span.kind, span.name, span.device) in on_path,
            )
        )
    return tuple(
        Track(name if number == 0 else f"{name} ({number + 1})", lane)
        for name, slices in rows.items()
        for number, lane in enumerate(_lanes(slices))
    )


def kernels_of(export: Export, span: Span) -> tuple[str, ...]:
    """What a compute span runs; nothing where it is of another schedule than the predicted one."""
    segments = export.simulated.schedule.segments
    if span.kind != "compute" or not 0 <= span.segment < len(segments):
        return ()
    segment = segments[span.segment]
    same = segment.device == span.device and segment.kernels[0] == span.name
    return segment.kernels if same else ()


def _lanes(slices: Sequence[Slice]) -> list[tuple[Slice, ...]]:
    """Slices in as few rows without overlap as there must be, at least one."""
    lanes: list[list[Slice]] = [[]]
    for one in sorted(slices, key=lambda s: (s.start_ns, s.end_ns, s.index)):
        free = next((row for row in lanes if not row or row[-1].end_ns <= one.start_ns), None)
        if free is None:
            lanes.append([one])
        else:
            free.append(one)
    return [tuple(row) for row in lanes]
