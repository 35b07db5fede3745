"""Numbers as people read them: three digits and a fitting unit."""

import importlib
import math

from placement.core.amounts import in_unit

SCALES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


class Drawn:
    """A value that a notebook shows as a picture (`placement/api/notebook.py`).

    What draws stands above what is drawn, so it is found by its name and when it is asked for.
    """

    def _repr_html_(self) -> str:
        return str(importlib.import_module("placement.api.notebook").html_of(self))


def counted(number: int, noun: str, more: str = "") -> str:
    """How many there are of something: "1 op", "2 ops", and `more` where an s is not enough."""
    return f"{number} {noun if number == 1 else more or f'{noun}s'}"


def percent(share: float, signed: bool = False) -> str:
    """A share in percent with at most one digit behind the point, two where it is less than one.

    No zeros at the end: 0%, 0.37%, 14.6%, 83%.
    """
    return f"{round(100 * to_shown(share), 2):{'+' if signed else ''}.10g}%"


def to_shown(share: float) -> float:
    """A share rounded to the digits that `percent` shows, for tables that write it themselves."""
    rounded = round(share, 3 if abs(share) >= 0.01 else 4)
    return rounded if math.isfinite(rounded) and rounded else abs(rounded)


def gap(value: float, bound: float) -> float | None:
    """How far a value is above a proven bound, as a share of it; None where nothing is proven.

    Rounded up to the digits that `percent` shows: it is said as "at most so much above".
    """
    if bound <= 0:
        return None
    above = value / bound - 1
    if above <= 1e-9:
        return 0.0
    digits = 1e3 if above >= 0.01 else 1e4
    return math.ceil(above * digits - 1e-6) / digits


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
    for name, scale in SCALES.items():
        # What three digits round up to a thousand of a unit is one of the next.
        if abs(value) >= 0.9995 * scale:
            number = value / scale
            return f"{number:{'.3g' if abs(number) < 999.5 else '.0f'}} {name}"
    return "0 s" if value == 0 else f"{value / 1e-6:.2g} µs"


def both_seconds(before: float, after: float, unit: str = "s") -> tuple[str, str]:
    """Two times to be compared, in one unit: that of the larger one."""
    larger = max((v for v in (before, after) if math.isfinite(v)), default=0.0)
    if unit != "s" or not larger:
        return seconds(before, unit), seconds(after, unit)
    name = seconds(larger).split()[1]
    numbers = [value / SCALES[name] for value in (before, after)]
    old, new = (f"{n:{'.3g' if abs(n) < 999.5 else '.0f'}} {name}" for n in numbers)
    return old, new


def rate(samples_per_s: float | None) -> str:
    """A throughput, with three digits."""
    if samples_per_s is None:
        return "unknown"
    digits = ".3g" if abs(samples_per_s) < 100 else ".0f"
    return f"{samples_per_s:{digits}} samples/s"


def token_rate(tokens_per_s: float | None) -> str:
    """How fast text is taken in or generated, with three digits."""
    return rate(tokens_per_s).replace("samples/s", "tokens/s")


def num_bytes(value: float | None) -> str:
    if value is None:
        return "no limit"
    for scale, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(value) >= scale:
            return f"{value / scale:{'.3g' if abs(value) < 100 * scale else '.0f'}} {name}"
    return f"{value:.0f} B"


def bandwidth(bytes_per_s: float) -> str:
    """How fast bytes are carried, in the decimal units of data sheets."""
    for scale, name in ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        # What three digits round up to a thousand of a unit is one of the next.
        if bytes_per_s >= 0.9995 * scale:
            number = bytes_per_s / scale
            return f"{number:{'.3g' if number < 999.5 else '.0f'}} {name}"
    return f"{bytes_per_s:.3g} B/s"


def apart(more: float, less: float) -> tuple[str, str]:
    """Two amounts of which the first is larger, in bytes where rounding would make them alike."""
    said = num_bytes(more), num_bytes(less)
    return said if said[0] != said[1] else (f"{more:.0f} B", f"{less:.0f} B")


def count(value: float) -> str:
    for scale, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{name}"
    return f"{value:.0f}"


def flops(value: float) -> str:
    """An amount of arithmetic."""
    return f"{count(value)}{'' if abs(value) >= 1000 else ' '}FLOP"


def loss(value: float | None) -> str:
    """A loss in short; JSON has nothing for one that is no number any more."""
    return "no number" if value is None else f"{value:.4g}"


def age(seconds_ago: float) -> str:
    """How long ago, in the largest unit that fits."""
    for scale, name in ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute")):
        if seconds_ago >= scale:
            return f"{counted(int(seconds_ago // scale), name)} ago"
    return "just now"
