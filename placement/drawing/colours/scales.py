"""Continuous colour scales: into which of a few equal steps a value falls."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_DECADES = 6


@dataclass(frozen=True)
class Scale:
    """Steps from `low` to `high` of the same width, or of the same factor if `logarithmic`.

    The last step has its upper edge inside; values beyond an end count to the step there.
    """

    low: float
    high: float
    num_steps: int
    logarithmic: bool = False

    def edges(self) -> tuple[float, ...]:
        """The `num_steps + 1` borders of the steps."""
        share = np.linspace(0.0, 1.0, self.num_steps + 1)
        if self.logarithmic:
            return tuple(float(v) for v in self.low * (self.high / self.low) ** share)
        return tuple(float(v) for v in self.low + (self.high - self.low) * share)

    def steps(self, values: ArrayLike) -> NDArray[np.int64]:
        """The step of each value; -1 for what is not above zero, or not finite."""
        given = np.asarray(values, dtype=np.float64)
        known = np.isfinite(given) & (given > 0)
        inner = np.asarray(self.edges()[1:-1])
        found = np.searchsorted(inner, np.where(known, given, 0.0), side="right")
        return np.where(known, found, -1).astype(np.int64)


def linear(values: ArrayLike, num_steps: int) -> Scale | None:
    """A scale from zero to the largest value; None where nothing is above zero."""
    known = _positive(values)
    return Scale(0.0, float(known.max()), num_steps) if known.size else None


def logarithmic(values: ArrayLike, num_steps: int) -> Scale | None:
    """A scale from the least to the largest value above zero, over six decades at most.

    A few tiny values would otherwise leave the rest without any difference.
    """
    known = _positive(values)
    if not known.size:
        return None
    high = float(known.max())
    low = max(float(known.min()), high / 10**MOST_DECADES)
    # All values alike: any range that ends there shows them as the most there is.
    return Scale(low if low < high else high / 10, high, num_steps, logarithmic=True)


def _positive(values: ArrayLike) -> NDArray[np.float64]:
    given = np.asarray(values, dtype=np.float64)
    return given[np.isfinite(given) & (given > 0)]
