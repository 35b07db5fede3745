"""Values and what became of them in plain words."""

import math

from placement.core.formatting import gap, percent, seconds


def in_words(value_s: float) -> str:
    """A time, or that there is none."""
    return "no end" if math.isinf(value_s) else seconds(max(0.0, value_s))


def gap_in_words(value_s: float, bound_s: float) -> str:
    """How far a value can be from the best there is, by a proven bound."""
    if math.isinf(value_s):
        return "nothing within all limits yet"
    if value_s <= bound_s * (1 + 1e-9):
        return "proven optimal"
    if bound_s <= 0:
        return "no bound is known"
    return f"at most {percent(gap(value_s, bound_s) or 0.0)} above the optimum"
