"""Amounts: their type and how large one may be, and units of time."""

from typing import TYPE_CHECKING

# Beyond this a number is a mistake; sums and products below it stay far from overflow.
MOST = 1e18
# Seconds in each unit that a file may state its times in.
UNIT_S = {"s": 1.0, "ms": 1e-3}

if TYPE_CHECKING:
    Bytes = int
else:
    # Workload files state times as sizes, with fractions; only who decodes values must know.
    Bytes = int | float


def is_amount(value: float) -> bool:
    """Whether a number is finite, not negative and not too large (which NaN is not either)."""
    return 0 <= value <= MOST


def in_unit(seconds: float, unit: str) -> float:
    """A time as a number of the unit that a problem states."""
    return seconds / UNIT_S[unit]
