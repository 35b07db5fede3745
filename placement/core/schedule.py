"""A schedule: who runs what in which order, without times."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from placement.core.decoding import shown


@dataclass(frozen=True)
class Segment:
    """Kernels that one device runs in one call, in the order it runs them."""

    device: str
    kernels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.kernels:
            raise ValueError(f"A segment on {shown(self.device)} has no kernels; leave it out.")


@dataclass(frozen=True)
class Schedule:
    """Segments in an order that respects all data; each device runs its own in this order."""

    segments: tuple[Segment, ...]

    @cached_property
    def segment_of(self) -> dict[str, int]:
        """Index of the segment that runs each kernel."""
        return {kernel: i for i, s in enumerate(self.segments) for kernel in s.kernels}

    def to_json(self) -> dict[str, Any]:
        return {
            "segments": [{"device": s.device, "kernels": list(s.kernels)} for s in self.segments]
        }
