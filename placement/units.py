"""Numbers as people read them: three digits and a fitting unit."""

from placement.core.problem import in_unit
from placement.core.sizes import num_bytes

__all__ = ["num_bytes", "seconds", "stated"]


def stated(value: float, unit: str) -> str:
    """A time that is a number of `unit` already, as the command line prints it."""
    if unit == "s":
        return seconds(value)
    return f"{value:{'.4g' if abs(value) < 1e4 else '.0f'}} {unit}"


def seconds(value: float | None, unit: str = "s") -> str:
    """A time; where a file states its own `unit`, as a number of that."""
    if value is None:
        return "unknown"
    if unit != "s":
        return stated(in_unit(value, unit), unit)
    for scale, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= scale:
            return f"{value / scale:{'.3g' if abs(value) < 100 else '.0f'}} {name}"
    return "0 s" if value == 0 else f"{value / 1e-6:.2g} µs"
