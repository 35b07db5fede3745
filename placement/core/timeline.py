"""A timeline: when everything in one step ran, predicted by simulation or measured; idle times, and
what the parts of a measured step took over all steps."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from placement.core.amounts import MOST, is_amount
from placement.core.decoding import decode, shown
from placement.core.formatting import Drawn
from placement.core.graph import topological_order

KINDS = ("compute", "transfer", "wait")
ORIGINS = ("predicted", "measured", "emulated")
# Of a normal distribution: standard deviations from the middle to the 95th percentile, and how much
# more a median scatters than a mean.
NINE_OF_TEN, OF_MEDIAN = 1.645, 1.2533


@dataclass(frozen=True)
class Span:
    """One stretch of work.

    `device` is a device name for compute and "src->dst" for a transfer. `name` is the segment's
    first kernel or the tensor. `segment` is the segment's index (the producer's, for a transfer;
    -1 for a model input). `after` lists the indices of the spans that had to end before.
    """

    kind: str
    name: str
    device: str
    start_s: float
    end_s: float
    segment: int = -1
    num_bytes: int = 0
    after: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"A span has kind {shown(self.kind)}; use one of {KINDS}.")
        for name, time_s in (("start_s", self.start_s), ("end_s", self.end_s)):
            # What no device can run never ends, as predicted.
            if not abs(time_s) <= MOST and time_s != math.inf:
                raise ValueError(f"A span has {name} {time_s}; use seconds, at most {MOST:g}.")
        if not is_amount(self.num_bytes):
            raise ValueError(f"A span has num_bytes {self.num_bytes!s:.20}; use 0 to {MOST:g}.")

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "after": list(self.after)}


@dataclass(frozen=True)
class Timeline(Drawn):
    """Spans of one step, from the moment its inputs are there (time 0) to its last output."""

    spans: tuple[Span, ...]
    step_s: float
    origin: str
    peak_bytes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "peak_bytes", MappingProxyType(dict(self.peak_bytes)))
        if self.origin not in ORIGINS:
            raise ValueError(f"A timeline has origin {shown(self.origin)}; use one of {ORIGINS}.")
        if not is_amount(self.step_s) and self.step_s != math.inf:
            raise ValueError(f"A timeline has step_s {self.step_s}; use 0 to {MOST:g} seconds.")

    def busy_s(self) -> dict[str, float]:
        """Seconds of compute by device and of transfer by link."""
        busy: dict[str, float] = {}
        for span in self.spans:
            busy[span.device] = busy.get(span.device, 0.0) + span.duration_s
        return busy

    @property
    def transfer_bytes(self) -> int:
        return sum(s.num_bytes for s in self.spans if s.kind == "transfer")

    def to_json(self) -> dict[str, Any]:
        return {
            "origin": self.origin,
            "step_s": self.step_s,
            "peak_bytes": dict(self.peak_bytes),
            "spans": [s.to_json() for s in self.spans],
        }


def require_complete(timeline: Timeline) -> None:
    """ValueError where a timeline cannot be shown: something never ends, or waits for itself.

    What never ends may be predicted, but nothing has shown it.
    """
    times_s = {
        f"spans[{i}].{name}": getattr(span, name)
        for i, span in enumerate(timeline.spans)
        for name in ("start_s", "end_s")
    }
    for place, time_s in {"step_s": timeline.step_s, **times_s}.items():
        if math.isinf(time_s):
            raise ValueError(f"timeline.{place} is {time_s}; use seconds, at most {MOST:g}.")
    _require_order([span.after for span in timeline.spans])


@dataclass(frozen=True)
class _RunFile:
    timeline: Timeline


def timeline_of_run(content: Any) -> Timeline:
    """The measured timeline in the JSON object that `run --json` prints."""
    timeline = decode(content, _RunFile, remedy="write one with run --json").timeline
    require_complete(timeline)
    return timeline


def _require_order(after: Sequence[Sequence[int]]) -> None:
    """ValueError where spans wait for others that are not there, or in a circle for themselves.

    `after` lists for each span the indices of those that had to end before.
    """
    readers: list[list[int]] = [[] for _ in after]
    for i, befores in enumerate(after):
        for before in befores:
            if not 0 <= before < len(after):
                raise ValueError(
                    f"spans[{i}] waits for span {before!s:.20}, which is not there; run it again."
                )
            readers[before].append(i)
    if topological_order(len(after), readers) is None:
        raise ValueError("Spans of the timeline wait for each other; run it again.")


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


@dataclass(frozen=True)
class PartTime:
    """Seconds of a part of a step: the median, and what nine in ten steps are between."""

    median_s: float
    low_s: float
    high_s: float

    def __post_init__(self) -> None:
        for name, time_s in vars(self).items():
            if not is_amount(time_s):
                raise ValueError(f"A part of a step has {name} {time_s!s:.20}; run it again.")

    @property
    def deviation_s(self) -> float:
        return max(0.0, self.high_s - self.low_s) / (2 * NINE_OF_TEN)


@dataclass(frozen=True)
class Observed:
    """The parts of a schedule over `num_steps` steps, by segment.

    `computes` is the segment itself. `waits` lasts from the moment when the segments that it reads
    from, and the one before it on its device, had ended until it began: what a hand-over took, as
    far as it was waited for. `beside` is how many other host devices computed meanwhile, on
    average.
    """

    num_steps: int
    computes: tuple[PartTime, ...]
    waits: tuple[PartTime, ...]
    beside: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.computes) == len(self.waits) == len(self.beside):
            raise ValueError("Parts of a run do not match each other; run it again.")
        if self.num_steps < 1 or not all(map(is_amount, self.beside)):
            raise ValueError("Parts of a run were not measured in any step; run it again.")

    def error_s(self, segment: int) -> float:
        """How uncertain the seconds of a segment and of its wait are, as a standard deviation."""
        both = self.computes[segment].deviation_s, self.waits[segment].deviation_s
        return OF_MEDIAN * math.hypot(*both) / math.sqrt(self.num_steps)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
