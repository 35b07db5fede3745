"""What decides the step time: the critical path of a timeline, and the slack beside it."""

from collections.abc import Mapping, Sequence

from placement.core.timeline import Span, Timeline


def critical_path(timeline: Timeline) -> tuple[Span, ...]:
    """Spans from time 0 to the end of the step, without gaps or overlaps.

    Traced back from the span that ends last, each time to the span it had to wait for that ended
    last (ties by order in the timeline). Time in between that no such span explains becomes a
    "wait" span on the device that waited.
    """
    if not timeline.spans:
        return ()
    current = max(range(len(timeline.spans)), key=lambda i: (timeline.spans[i].end_s, -i))
    path: list[Span] = []
    until = timeline.spans[current].end_s
    while True:
        span = timeline.spans[current]
        until = min(until, span.end_s)
        path.append(_cut(span, span.start_s, until))
        before = [i for i in span.after if timeline.spans[i].start_s <= span.start_s]
        if not before:
            break
        current = max(before, key=lambda i: (timeline.spans[i].end_s, -i))
        end_s = timeline.spans[current].end_s
        if end_s < span.start_s:
            path.append(_wait(span, end_s, span.start_s))
        until = min(span.start_s, end_s)
    if path[-1].start_s > 0:
        path.append(_wait(path[-1], 0.0, path[-1].start_s))
    return tuple(reversed([p for p in path if p.end_s > p.start_s] or path[:1]))


def shares(path: tuple[Span, ...]) -> Mapping[str, float]:
    """Seconds of compute, transfer and wait on a critical path."""
    total = {"compute": 0.0, "transfer": 0.0, "wait": 0.0}
    for span in path:
        total[span.kind] += span.duration_s
    return total


def slack_s(spans: Sequence[Span], step_s: float) -> list[float]:
    """Seconds that each span could end later without a longer step, waiting order unchanged.

    `spans` are in order of their start, so that a span comes after those it waits for.
    """
    latest = [step_s] * len(spans)
    for i in reversed(range(len(spans))):
        for before in spans[i].after:
            latest[before] = min(latest[before], latest[i] - spans[i].duration_s)
    return [max(0.0, late - span.end_s) for late, span in zip(latest, spans, strict=True)]


def _cut(span: Span, start_s: float, end_s: float) -> Span:
    return Span(
        span.kind, span.name, span.device, min(start_s, end_s), end_s, span.segment, span.num_bytes
    )


def _wait(span: Span, start_s: float, end_s: float) -> Span:
    return Span("wait", span.name, span.device, start_s, end_s, span.segment)
