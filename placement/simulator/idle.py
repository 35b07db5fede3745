"""When the devices and links of a timeline have nothing to do."""

from placement.core.timeline import Timeline


def idle_s(timeline: Timeline, row: str) -> tuple[tuple[float, float], ...]:
    """Start and end of every stretch of the step in which a device or link does nothing.

    What takes no time does not divide a stretch.

    >>> from placement.core.timeline import Span
    >>> spans = (Span("compute", "a", "cpu:0", 1.0, 2.0), Span("compute", "b", "cpu:0", 1.5, 3.0))
    >>> idle_s(Timeline(spans, 4.0, "predicted"), "cpu:0")
    ((0.0, 1.0), (3.0, 4.0))
    """
    found, free_from_s = [], 0.0
    busy = [s for s in timeline.spans if s.device == row and s.end_s > s.start_s]
    for start_s, end_s in sorted((s.start_s, s.end_s) for s in busy):
        if start_s > free_from_s:
            found.append((free_from_s, start_s))
        free_from_s = max(free_from_s, end_s)
    if free_from_s < timeline.step_s:
        found.append((free_from_s, timeline.step_s))
    return tuple(found)
