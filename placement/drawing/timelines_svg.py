"""Timelines as a picture in SVG: rows by device and link, one above the other on one axis of time.

So their lengths compare. What is on the critical path is outlined in red.
"""

import math
from collections.abc import Iterator, Sequence

from placement.core import formatting
from placement.drawing import svg
from placement.drawing.gantt import Bar, Panel, shown

WIDTH, LABELS, RIGHT = 1280.0, 190.0, 24.0
ROW, BAR, HEAD, PANEL_HEAD, AXIS = 28.0, 18.0, 62.0, 30.0, 34.0


def drawing(panels: Sequence[Panel], headline: str, account: str, unit: str) -> str:
    """A whole file; `unit` is the one that steps are told in."""
    ends_s = [bar.end_s for panel in panels for bar in panel.bars]
    longest_s = max([*ends_s, *(panel.end_s for panel in panels)], default=0.0) or 1e-9
    body = [
        svg.fitted(20, 26, headline, 16, WIDTH - 40, font_weight=600),
        svg.fitted(20, 46, f"{account} Outlined in red: the critical path.", 12, WIDTH - 40),
    ]
    top = HEAD
    for panel in panels:
        body += _panel(panel, top, longest_s, unit)
        top += PANEL_HEAD + ROW * len(panel.rows) + AXIS
    return svg.document(WIDTH, top, body, f"{headline}. {account}")


def _panel(panel: Panel, top: float, longest_s: float, unit: str) -> Iterator[str]:
    words = f"{panel.title}: {formatting.seconds(panel.end_s, unit)}"
    yield svg.text(20, top + 18, words, font_size=13, font_weight=600)
    first, bottom = top + PANEL_HEAD, top + PANEL_HEAD + ROW * len(panel.rows)
    yield from _axis(first, bottom, longest_s)
    for number, row in enumerate(panel.rows):
        yield svg.element(
            "svg",
            svg.title(row.about) + svg.fitted(0, ROW / 2 + 4, shown(row.name), 12, LABELS - 40),
            x=20,
            y=first + ROW * number,
            width=LABELS - 30,
            height=ROW,
            overflow="hidden",
        )
    for bar in panel.bars:
        yield _bar(bar, first + ROW * bar.row, longest_s)


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


def _bar(bar: Bar, y: float, longest_s: float) -> str:
    start, end = _x(bar.start_s, longest_s), _x(bar.end_s, longest_s)
    lasts = f"{formatting.seconds(bar.end_s - bar.start_s)} from {formatting.seconds(bar.start_s)}"
    return svg.element(
        "rect",
        svg.title("\n".join((*bar.tip, lasts))),
        x=start,
        y=y + (ROW - BAR) / 2,
        width=max(0.5, end - start),
        height=BAR,
        fill=bar.colour,
        stroke=svg.CRITICAL if bar.path else svg.BACKGROUND,
        stroke_width=1.6 if bar.path else 0.5,
    )


def _x(time_s: float, longest_s: float) -> float:
    return LABELS + (WIDTH - LABELS - RIGHT) * time_s / longest_s
