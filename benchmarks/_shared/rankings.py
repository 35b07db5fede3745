"""What a table of placers on cases says: gaps to the best known and to the bound, and how the
automatic one does against the others."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

# Values that differ by less are the same; published ones are rounded to three decimals.
SAME, ROUNDED = 1e-9, 5e-4
CLOSE = 0.02
AUTO = "auto"
# They answer another question: copies of stages reach what one device per op cannot.
APART = ("replicate",)


@dataclass(frozen=True)
class Row:
    """One placer on one case: value and bound in the problem's unit, and seconds of placing.

    `kind` is "constructive", "exact", "search" or "auto". What gives no valid placement has an
    `error` and an infinite value.
    """

    case: str
    placer: str
    kind: str
    value: float
    bound: float
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Line:
    """A placer over its cases; gaps are shares, 0.02 for 2 %. NaN where there is nothing to say."""

    placer: str
    num_cases: int
    num_failed: int
    median_gap: float
    worst_gap: float
    median_bound_gap: float
    median_s: float


def by_case(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each case, in the order of first sight."""
    cases: dict[str, list[Row]] = {}
    for row in rows:
        cases.setdefault(row.case, []).append(row)
    return cases


def gap(value: float, reference: float) -> float:
    """How far a value is above a reference, as a share of it; both zero is no gap."""
    if reference > 0:
        return value / reference - 1.0
    return 0.0 if value <= reference else math.inf


def lines(rows: Sequence[Row]) -> list[Line]:
    """One line per placer: the smallest median gap to the best value of each case first.

    The bound of a case is the best that any placer proved. What answers another question sets
    neither and comes last: below the best by what its copies gain, and above no bound of others.
    """
    asked = [row for row in rows if row.placer not in APART]
    best = {case: _least(found) for case, found in by_case(asked).items()}
    bound = {case: max(r.bound for r in found) for case, found in by_case(asked).items()}
    placers = dict.fromkeys(row.placer for row in rows if row.case in best)
    found = []
    for placer in placers:
        own = [r for r in rows if r.placer == placer and r.case in best]
        valid = [r for r in own if not r.error]
        bounded = [r for r in valid if bound[r.case] > 0 and placer not in APART]
        gaps = [gap(r.value, best[r.case]) for r in valid]
        found.append(
            Line(
                placer,
                len(own),
                len(own) - len(valid),
                _median(gaps),
                max(gaps, default=math.nan),
                _median([gap(r.value, bound[r.case]) for r in bounded]),
                _median([r.seconds for r in valid]),
            )
        )
    return sorted(
        found,
        key=lambda line: (line.placer in APART, math.isnan(line.median_gap), line.median_gap),
    )


def worse_than_constructive(rows: Sequence[Row]) -> list[str]:
    """Cases in which a constructive placer beats the automatic one."""
    return _beaten(rows, lambda row: row.kind == "constructive", SAME)


def not_close_to_single(rows: Sequence[Row]) -> list[str]:
    """Cases in which some other placer is more than 2 % better than the automatic one."""
    return _beaten(rows, lambda row: row.kind != AUTO and row.placer not in APART, CLOSE)


def above_others(rows: Sequence[Row], placer: str, others: Sequence[str]) -> list[str]:
    """Cases in which one of the others is better than a placer."""
    own = [replace(r, kind=AUTO) if r.placer == placer else r for r in rows if r.kind != AUTO]
    named = [r for r in own if r.kind == AUTO or r.placer in others]
    return _beaten(named, lambda row: row.placer in others, SAME)


def num_shared(rows: Sequence[Row], placer: str, others: Sequence[str]) -> int:
    """Cases that a placer and one of the others have."""
    cases = [{r.placer for r in in_case} for in_case in by_case(rows).values()]
    return sum(placer in found and not found.isdisjoint(others) for found in cases)


def share_close(rows: Sequence[Row]) -> float:
    """Share of the automatic placer's cases within 2 % of the best other one."""
    num_cases = sum(row.kind == AUTO for row in rows)
    return 1.0 - len(not_close_to_single(rows)) / num_cases if num_cases else math.nan


def own_bound_gap(rows: Sequence[Row]) -> float:
    """Median gap of the automatic placer to the bound that it proved itself."""
    auto = [r for r in rows if r.kind == AUTO and not r.error and r.bound > 0]
    return _median([gap(r.value, r.bound) for r in auto])


def above_references(
    rows: Sequence[Row], references: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Where the automatic placer is above a published value, by case and its name."""
    return [
        f"{row.case}: {row.value:.3f}, {name} {value:.3f}"
        for row in rows
        if row.kind == AUTO
        for name, value in references.get(row.case, {}).items()
        if not row.value <= value + ROUNDED
    ]


def _beaten(rows: Sequence[Row], other: Callable[[Row], bool], tolerance: float) -> list[str]:
    """Cases where the best of the others is better by more than the tolerance, and by whom."""
    found = []
    for case, in_case in by_case(rows).items():
        auto = [r for r in in_case if r.kind == AUTO]
        rivals = [r for r in in_case if other(r) and not r.error]
        if not auto or not rivals:
            continue
        best = min(rivals, key=lambda r: r.value)
        if not auto[0].value <= best.value * (1 + tolerance):
            share = gap(auto[0].value, best.value)
            found.append(f"{case}: {share:.1%} above {best.placer}")
    return found


def _least(rows: Iterable[Row]) -> float:
    return min((r.value for r in rows if not r.error), default=math.inf)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan
