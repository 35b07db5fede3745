"""A timeline: when everything in one step ran, predicted by simulation or measured."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

KINDS = ("compute", "transfer", "wait")
ORIGINS = ("predicted", "measured", "emulated")


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

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "device": self.device,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "segment": self.segment,
            "num_bytes": self.num_bytes,
            "after": list(self.after),
        }


def span_from_json(content: Mapping[str, Any]) -> Span:
    return Span(**{**content, "after": tuple(content["after"])})


@dataclass(frozen=True)
class Timeline:
    """Spans of one step, from the moment its inputs are there (time 0) to its last output."""

    spans: tuple[Span, ...]
    step_s: float
    origin: str
    peak_bytes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "peak_bytes", MappingProxyType(dict(self.peak_bytes)))
        assert self.origin in ORIGINS, self.origin
        assert all(s.kind in KINDS for s in self.spans)

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


def timeline_from_json(content: Mapping[str, Any]) -> Timeline:
    """The timeline of a JSON object; ValueError where a time of it is no finite number."""
    spans = tuple(span_from_json(s) for s in content["spans"])
    for time_s in (content["step_s"], *(t for s in spans for t in (s.start_s, s.end_s))):
        if type(time_s) not in (int, float) or not abs(time_s) <= sys.float_info.max:
            raise ValueError(f"A timeline has the time {time_s!r}, which is no finite number.")
    return Timeline(
        spans,
        content["step_s"],
        content["origin"],
        content.get("peak_bytes", {}),
    )
