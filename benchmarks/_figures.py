"""Figures with their spread, and the tables they are printed in."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from profiling.measuring.timing import Sample, ratio_interval


@dataclass(frozen=True)
class Figure:
    """A median with its limits: percentiles 5 and 95 of a time, 95 % bootstrap ones of a ratio."""

    what: str
    unit: str
    median: float
    low: float
    high: float
    wanted: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def line(self) -> str:
        return (
            f"| {self.what} | {self.median:.4g} {self.unit} |"
            f" {self.low:.4g} to {self.high:.4g} | {self.wanted} |"
        )


HEADER = ("| what | median | spread | wanted |", "|---|---|---|---|")


def time_of(what: str, sample: Sample, unit: str, scale: float, wanted: str = "") -> Figure:
    """The seconds of a sample as a number of `unit`, of which a second has `scale`."""
    low, high = sample.p5_s * scale, sample.p95_s * scale
    return Figure(what, unit, sample.median_s * scale, low, high, wanted)


def ratio_of(
    what: str, over: Sequence[float], under: Sequence[float], wanted: str = "", scale: float = 1.0
) -> Figure:
    """Median of one over that of the other, times `scale`."""
    ratio, low, high = (scale * x for x in ratio_interval(over, under, seed=0))
    return Figure(what, "x", ratio, low, high, wanted)


def table(figures: Iterable[Figure]) -> str:
    return "\n".join((*HEADER, *(figure.line for figure in figures)))
