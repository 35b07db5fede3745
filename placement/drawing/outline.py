"""A timeline in outline: where its bars are and nothing of what they stand for.

What is drawn over another timeline for a comparison, so that only rows and times matter.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from placement.core.timeline import Timeline
from placement.drawing.gantt import shown

# A gap narrower than this share of the step is narrower than a pixel.
LEAST_GAP = 1 / 2000


@dataclass(frozen=True)
class Outline:
    """Stretches in which a row is busy, as (start, end) in seconds, by its name as it is shown."""

    end_s: float
    busy: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]

    def to_data(self) -> dict[str, Any]:
        """What the browser draws."""
        rows = [[name, [list(stretch) for stretch in stretches]] for name, stretches in self.busy]
        return {"end_s": self.end_s, "rows": rows}


def outline(timeline: Timeline, devices: Collection[str]) -> Outline:
    """Bars of devices each for itself, unless they touch and are too short to be told apart."""
    grain_s = timeline.step_s * LEAST_GAP
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in devices}
    for span in sorted(timeline.spans, key=lambda s: (s.start_s, s.end_s)):
        stretches = rows.setdefault(span.device, [])
        if stretches and _are_one(stretches[-1], (span.start_s, span.end_s), grain_s):
            stretches[-1] = stretches[-1][0], max(stretches[-1][1], span.end_s)
        else:
            stretches.append((span.start_s, span.end_s))
    return Outline(
        timeline.step_s,
        tuple((shown(name), tuple(stretches)) for name, stretches in rows.items()),
    )


def _are_one(before: tuple[float, float], after: tuple[float, float], grain_s: float) -> bool:
    """Whether two stretches that follow each other look like one: hardly a gap, and both short."""
    short = before[1] - before[0] < 4 * grain_s and after[1] - after[0] < 4 * grain_s
    return short and after[0] - before[1] < grain_s
