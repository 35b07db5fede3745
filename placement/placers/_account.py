"""Values and what became of them in plain words."""

import math

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def in_words(seconds: float) -> str:
    """Three digits and a unit: 21.3 ms."""
    if seconds <= 0 or math.isinf(seconds):
        return "0 s" if seconds <= 0 else "no end"
    size, unit = next((u for u in UNITS if seconds >= 0.9995 * u[0]), UNITS[-1])
    digits = max(0, 2 - math.floor(math.log10(max(seconds / size, 1e-9)) + 1e-3))
    return f"{seconds / size:.{digits}f} {unit}"


def gap_in_words(value_s: float, bound_s: float) -> str:
    """How far a value can be from the best there is, by a proven bound."""
    if math.isinf(value_s):
        return "nothing within all limits yet"
    if value_s <= bound_s * (1 + 1e-9):
        return "proven optimal"
    if bound_s <= 0:
        return "no bound is known"
    return f"at most {math.ceil(1000 * (value_s / bound_s - 1) - 1e-6) / 10:g} % above the optimum"
