"""The timelines as a picture in SVG: rows by device and link, predicted above measured."""

import math
from collections.abc import Iterator
from pathlib import Path

from placement.core import formatting
from placement.core.timeline import Span, Timeline
from placement.drawing import svg
from placement.drawing.colours.painting import colours
from placement.drawing.gantt import KIND_WORDS
from placement.exporters._picture import account, headline
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text
from placement.simulator.critical_path import critical_path

WIDTH, LABELS, RIGHT = 1280.0, 190.0, 24.0
ROW, BAR, HEAD, PANEL_HEAD, AXIS = 28.0, 18.0, 62.0, 30.0, 34.0


class TimelineSvg(Exporter):
    """All timelines on one axis of time, so that their lengths compare; critical path in red."""

    name = "timeline-svg"
    title = "Timeline as SVG"
    summary = "who computes and sends when, sharp at any size"
    suffix = ".svg"

    def export(self, export: Export, path: Path) -> None:
        write_text(path, _drawing(export))


def _drawing(export: Export) -> str:
    found = export.timelines
    longest_s = max(t.step_s for _, t in found)
    longest_s = max([longest_s, *(s.end_s for _, t in found for s in t.spans)]) or 1e-9
    titled, said = headline(export), account(export)
    body = [
        svg.fitted(20, 26, titled, 16, WIDTH - 40, font_weight=600),
        svg.fitted(20, 46, f"{said} Outlined in red: the critical path.", 12, WIDTH - 40),
    ]
    top = HEAD
    for title, timeline in found:
        rows = _rows(export, timeline)
        body += _panel(export, title, timeline, rows, top, longest_s)
        top += PANEL_HEAD + ROW * len(rows) + AXIS
    return svg.document(WIDTH, top, body, f"{titled}. {said}")


def _rows(export: Export, timeline: Timeline) -> list[str]:
    """Devices in their declared order, then the links that carry something, by first use."""
    devices = [d.name for d in export.problem.machine.devices]
    return list(dict.fromkeys([*devices, *(s.device for s in timeline.spans)]))


def _panel(
    export: Export,
    title: str,
    timeline: Timeline,
    rows: list[str],
    top: float,
    longest_s: float,
) -> Iterator[str]:
    words = f"{title}: {formatting.seconds(timeline.step_s, export.problem.unit)}"
    yield svg.text(20, top + 18, words, font_size=13, font_weight=600)
    first, bottom = top + PANEL_HEAD, top + PANEL_HEAD + ROW * len(rows)
    yield from _axis(first, bottom, longest_s)
    at = {row: first + ROW * i for i, row in enumerate(rows)}
    for row, y in at.items():
        yield svg.element(
            "svg",
            svg.title(row) + svg.fitted(0, ROW / 2 + 4, row, 12, LABELS - 40),
            x=20,
            y=y,
            width=LABELS - 30,
            height=ROW,
            overflow="hidden",
        )
    colour = dict(zip(rows, colours(export.problem.machine), strict=False))
    on_path = {(s.kind, s.name, s.device) for s in critical_path(timeline)}
    for span in timeline.spans:
        critical = (span.kind, span.name, span.device) in on_path
        yield _bar(span, at[span.device], colour.get(span.device, svg.LINK), critical, longest_s)


def _axis(top: float, bottom: float, longest_s: float) -> Iterator[str]:
    """Upright lines at round times, with their times below."""
    step_s = _round_step(longest_s)
    for number in range(int(longest_s / step_s + 1e-9) + 1):
        x = _x(number * step_s, longest_s)
        yield svg.element("path", d=f"M{svg.number(x)} {top}V{bottom}", stroke=svg.FRAME)
        yield svg.text(
            x,
            bottom + 16,
            formatting.seconds(number * step_s),
            font_size=11,
            text_anchor="middle",
            fill=svg.FAINT,
        )


def _round_step(longest_s: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that gives four to ten marks."""
    power = 10.0 ** math.floor(math.log10(longest_s / 4))
    return next(power * n for n in (5, 2, 1) if power * n <= longest_s / 4 * (1 + 1e-9))


def _bar(span: Span, y: float, colour: str, critical: bool, longest_s: float) -> str:
    start, end = _x(span.start_s, longest_s), _x(span.end_s, longest_s)
    words = f"{span.name}\n{KIND_WORDS[span.kind]} on {span.device}"
    words += f"\n{formatting.seconds(span.duration_s)} from {formatting.seconds(span.start_s)}"
    if span.kind == "transfer":
        words += f"\n{formatting.num_bytes(span.num_bytes)}"
    return svg.element(
        "rect",
        svg.title(words),
        x=start,
        y=y + (ROW - BAR) / 2,
        width=max(0.5, end - start),
        height=BAR,
        fill=colour,
        stroke=svg.CRITICAL if critical else svg.BACKGROUND,
        stroke_width=1.6 if critical else 0.5,
    )


def _x(time_s: float, longest_s: float) -> float:
    return LABELS + (WIDTH - LABELS - RIGHT) * time_s / longest_s


EXPORTER = TimelineSvg()
