"""Numbers as people read them: three digits and a fitting unit."""

from placement.core.formatting import counted, gap, num_bytes, percent, seconds, stated, to_shown

__all__ = [
    "age",
    "count",
    "counted",
    "flops",
    "gap",
    "num_bytes",
    "percent",
    "rate",
    "seconds",
    "stated",
    "to_shown",
]


def rate(samples_per_s: float | None) -> str:
    """A throughput, with three digits."""
    if samples_per_s is None:
        return "unknown"
    digits = ".3g" if abs(samples_per_s) < 100 else ".0f"
    return f"{samples_per_s:{digits}} samples/s"


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
