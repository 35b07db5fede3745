"""Numbers as people read them: three digits and a fitting unit."""

from placement.core.problem import in_unit


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


def rate(samples_per_s: float | None) -> str:
    """A throughput, with three digits."""
    if samples_per_s is None:
        return "unknown"
    digits = ".3g" if abs(samples_per_s) < 100 else ".0f"
    return f"{samples_per_s:{digits}} samples/s"


def num_bytes(value: float | None) -> str:
    if value is None:
        return "no limit"
    for scale, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value:.0f} B"


def count(value: float) -> str:
    for scale, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{name}"
    return f"{value:.0f}"


def percent(value: float, signed: bool = False) -> str:
    return f"{value:{'+' if signed else ''}.1%}"


def age(seconds_ago: float) -> str:
    """How long ago, in the largest unit that fits."""
    for scale, name in ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute")):
        if seconds_ago >= scale:
            number = int(seconds_ago // scale)
            return f"{number} {name}{'s' if number > 1 else ''} ago"
    return "just now"
