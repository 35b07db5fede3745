"""What the scripts share: their options, figures with their spread, and tables."""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
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


def parser(doc: str | None, **defaults: float | str) -> argparse.ArgumentParser:
    """Options of a script that says what it does: `--json`, and one for each default."""
    made = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    made.add_argument("--json", action="store_true", help="print one JSON value instead of a table")
    for name, default in defaults.items():
        flag = f"--{name.replace('_', '-')}"
        made.add_argument(flag, type=type(default), default=default, help=f"default: {default}")
    return made


def named(doc: str | None, names: Iterable[str], **defaults: float | str) -> argparse.Namespace:
    """The options of a script about several models, as `names`; of all of them where none is."""
    made, every = parser(doc, **defaults), list(names)
    made.add_argument("names", nargs="*", default=every, help=f"default: {', '.join(every)}")
    return made.parse_args()


def parts(text: str) -> list[str]:
    """The parts of an option that takes several, by comma."""
    return [part for part in text.split(",") if part]


def numbers(text: str) -> list[int]:
    """The same of one that takes numbers, such as seeds."""
    return [int(part) for part in parts(text)]


def table(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows below headings; how each cell is written stands beside its heading (`str.format`)."""
    line = f"| {' | '.join(columns.values())} |"
    head = (f"| {' | '.join(columns)} |", "|" + "---|" * len(columns))
    return "\n".join((*head, *(line.format_map(row) for row in rows)))


def by_name(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows whose keys are the headings."""
    return table({key: f"{{{key}}}" for row in rows[:1] for key in row}, rows)


def show(as_json: bool, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    print(json.dumps(rows) if as_json else table(columns, rows))


FIGURES = {
    "what": "{what}",
    "median": "{median:.4g} {unit}",
    "spread": "{low:.4g} to {high:.4g}",
    "wanted": "{wanted}",
}


def show_figures(as_json: bool, figures: Iterable[Figure]) -> None:
    show(as_json, FIGURES, [asdict(figure) for figure in figures])


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
