"""Which segments explain that a measured step differs from its prediction.

A crossing is priced on the link before its reader, though in a run the reader itself may take
longer, because it is the one who finds its caches cold. So both are told of each segment: what it
computes, and what it waits once all that it reads was made. What a segment explains is by how much
the predicted step changes when that segment alone, with its wait, takes what was measured: off the
critical path it explains nothing, however far it is off.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from placement.core.graph import topological_order
from placement.core.timeline import NINE_OF_TEN, Observed, Span, Timeline

# So many segments that are furthest off are tried; each costs a look at the whole step.
MOST_TRIED = 60


@dataclass(frozen=True)
class Difference:
    """A segment as predicted and as measured, in seconds; `span` is the predicted one.

    `explains_s` is by how much the predicted step grows when this segment and its wait take what
    was measured. `is_noise` where the difference is within what its own steps scatter.
    """

    span: Span
    computes: tuple[float, float]
    waits: tuple[float, float]
    explains_s: float
    is_noise: bool

    @property
    def predicted_s(self) -> float:
        return self.computes[0] + self.waits[0]

    @property
    def measured_s(self) -> float:
        return self.computes[1] + self.waits[1]

    @property
    def seconds(self) -> float:
        return self.measured_s - self.predicted_s


@dataclass(frozen=True)
class Explanation:
    """Why a step takes longer or shorter than predicted: segments, the one that explains most
    first, then those that are furthest off.

    `together_s` is by how much the predicted step grows when all segments take what was measured.
    `is_tie` where the step was measured within the range of its prediction.
    """

    rows: tuple[Difference, ...]
    together_s: float
    step_s: float
    is_tie: bool


def explained(
    predicted: Timeline,
    observed: Observed,
    measured_s: float,
    range_s: tuple[float, float] | None = None,
) -> Explanation:
    """What the parts of a run say about the difference of its median step to the prediction.

    A ValueError where run and prediction are of other segments.
    """
    of_segment = {span.segment: i for i, span in enumerate(predicted.spans) if _computes(span)}
    if sorted(of_segment) != list(range(len(observed.computes))):
        raise ValueError("The run has other segments than its prediction; run it again.")
    order, drafts = _in_order(predicted.spans), []
    for segment, position in sorted(of_segment.items()):
        span = predicted.spans[position]
        waited_s = span.start_s - _ready_s(predicted.spans, position)
        computes = (span.duration_s, observed.computes[segment].median_s)
        waits = (max(0.0, waited_s), observed.waits[segment].median_s)
        drafts.append(Difference(span, computes, waits, 0.0, False))
    off = sorted(drafts, key=lambda d: (-abs(d.seconds), d.span.segment))
    lasts_s = [span.duration_s for span in predicted.spans]
    all_measured_s, rows = list(lasts_s), []
    for rank, draft in enumerate(off):
        segment = draft.span.segment
        one_measured_s, explains_s = list(lasts_s), 0.0
        for changed_s in (one_measured_s, all_measured_s):
            _put(changed_s, predicted.spans, of_segment[segment], draft)
        if rank < MOST_TRIED:
            explains_s = _step_s(predicted.spans, order, one_measured_s) - predicted.step_s
        is_noise = abs(draft.seconds) <= _scatter_s(observed, segment)
        rows.append(replace(draft, explains_s=explains_s, is_noise=is_noise))
    rows.sort(key=lambda d: (-abs(d.explains_s), -abs(d.seconds), d.span.segment))
    return Explanation(
        rows=tuple(rows),
        together_s=_step_s(predicted.spans, order, all_measured_s) - predicted.step_s,
        step_s=measured_s - predicted.step_s,
        is_tie=range_s is not None and range_s[0] <= measured_s <= range_s[1],
    )


def _computes(span: Span) -> bool:
    return span.kind == "compute"


def _in_order(spans: Sequence[Span]) -> list[int]:
    """Spans (indices) behind all that had to end before them."""
    readers: list[list[int]] = [[] for _ in spans]
    for i, span in enumerate(spans):
        for before in span.after:
            readers[before].append(i)
    order = topological_order(len(spans), readers)
    assert order is not None, "spans of a prediction wait for each other"
    return order


def _ready_s(spans: Sequence[Span], position: int) -> float:
    """When all that a segment reads was made and its device was free, as predicted."""
    ends_s = [0.0]
    for i in spans[position].after:
        made = [i] if _computes(spans[i]) else [j for j in spans[i].after if _computes(spans[j])]
        ends_s += [spans[j].end_s for j in made]
    return max(ends_s)


def _put(lasts_s: list[float], spans: Sequence[Span], position: int, draft: Difference) -> None:
    """Let a segment, and the transfers that it waits for, take what was measured."""
    lasts_s[position] = draft.computes[1]
    predicted_s, measured_s = draft.waits
    if predicted_s == 0.0:
        lasts_s[position] += measured_s
        return
    ready_s = _ready_s(spans, position)
    for i in spans[position].after:
        # What arrives before nobody waits for, here.
        if not _computes(spans[i]) and spans[i].end_s > ready_s:
            lasts_s[i] *= measured_s / predicted_s


def _step_s(spans: Sequence[Span], order: Sequence[int], lasts_s: Sequence[float]) -> float:
    """The seconds of a step whose spans last so long, who waits for whom unchanged."""
    ends_s = [0.0] * len(spans)
    for i in order:
        ends_s[i] = max((ends_s[j] for j in spans[i].after), default=0.0) + lasts_s[i]
    return max(ends_s, default=0.0)


def _scatter_s(observed: Observed, segment: int) -> float:
    """How far nine in ten steps of a segment are from its median."""
    both = observed.computes[segment].deviation_s, observed.waits[segment].deviation_s
    return NINE_OF_TEN * math.hypot(*both)
