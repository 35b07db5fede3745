"""Amounts: their type and how large one may be, units of time, and memory as people read it."""

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


def num_bytes(value: float | None) -> str:
    if value is None:
        return "no limit"
    for scale, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(value) >= scale:
            return f"{value / scale:{'.3g' if abs(value) < 100 * scale else '.0f'}} {name}"
    return f"{value:.0f} B"


def apart(more: float, less: float) -> tuple[str, str]:
    """Two amounts of which the first is larger, in bytes where rounding would make them alike."""
    said = num_bytes(more), num_bytes(less)
    return said if said[0] != said[1] else (f"{more:.0f} B", f"{less:.0f} B")
