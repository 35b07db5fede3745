"""What a table of learned placers says: medians and worst seeds beside what learns nothing."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CONTROLS = ("random_search", "mutation")
# What a learner has to be below, and what its answer may stand beside.
LISTS, CANDIDATES = ("single", "heft", "peft"), ("single", "heft")
# Cases with less to gain than this count for nothing.
LEAST_GAIN = 0.05
MANY_DEVICES = 5


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run and what it came to; a learner's value is its own, without candidates.

    A control that stands beside a learner has its name as `beside`, and its settings, seed and
    limit. What searches has a `limit_s`. What gives no valid placement has an `error` and an
    infinite value.
    """

    case: str
    placer: str
    settings: str = ""
    seed: int = 0
    limit_s: float = 0.0
    beside: str = ""
    value_ms: float = math.inf
    seconds: float = 0.0
    evaluations: int = 0
    num_units: int = 0
    num_devices: int = 0
    error: str = ""

    @property
    def key(self) -> tuple[str, str, str, int, float, str]:
        """What tells a run from every other."""
        return self.case, self.placer, self.settings, self.seed, self.limit_s, self.beside


@dataclass(frozen=True)
class Standard:
    """What is known of a case: the best value there is, and those of placers that do not search."""

    best: float
    lists: float
    candidates: float

    @property
    def gain(self) -> float:
        """How far the best known is below placers that do not search, as a share of these."""
        return 1.0 - self.best / self.lists if 0 < self.lists < math.inf else 0.0

    @property
    def counts(self) -> bool:
        return self.gain >= LEAST_GAIN


@dataclass(frozen=True)
class Line:
    """The seeds of a learner on a case; gaps are shares above the best known, 0.02 for 2 %.

    Controls are medians over the same seeds, with the evaluations of each.
    """

    case: str
    placer: str
    settings: str
    limit_s: float
    num_seeds: int
    num_devices: int
    median: float
    worst: float
    with_candidates: float
    seconds: float
    evaluations: float
    median_gap: float
    worst_gap: float
    lists: float
    random_search: float
    mutation: float


def standards(rows: Iterable[Row], published: Mapping[str, float]) -> dict[str, Standard]:
    """What is known of each case: by any row, and by what was published."""
    found = {}
    rows = list(rows)
    for case in dict.fromkeys(row.case for row in rows):
        of_case = [row for row in rows if row.case == case]
        alone = {row.placer: row.value_ms for row in of_case if row.placer in LISTS}
        found[case] = Standard(
            best=min([published.get(case, math.inf), *(row.value_ms for row in of_case)]),
            lists=min(alone.values(), default=math.inf),
            candidates=min((alone.get(name, math.inf) for name in CANDIDATES), default=math.inf),
        )
    return found


def lines(rows: Sequence[Row], known: Mapping[str, Standard]) -> list[Line]:
    """A line for each case and learner with its settings, in the order of first sight."""
    groups: dict[tuple[str, str, str, float], list[Row]] = {}
    controls: dict[tuple[str, str, str, float], list[Row]] = {}
    for row in rows:
        if row.beside:
            key = row.case, row.beside, row.settings, row.limit_s
            controls.setdefault(key, []).append(row)
        elif row.limit_s and row.placer != "auto":
            key = row.case, row.placer, row.settings, row.limit_s
            groups.setdefault(key, []).append(row)
    return [
        _line(of_key, controls.get(key, []), known[of_key[0].case])
        for key, of_key in groups.items()
    ]


def _line(own: Sequence[Row], controls: Sequence[Row], standard: Standard) -> Line:
    values = [row.value_ms for row in own]
    median, worst = _median(values), max(values)
    return Line(
        case=own[0].case,
        placer=own[0].placer,
        settings=own[0].settings,
        limit_s=own[0].limit_s,
        num_seeds=len(own),
        num_devices=own[0].num_devices,
        median=median,
        worst=worst,
        with_candidates=_median([min(value, standard.candidates) for value in values]),
        seconds=_median([row.seconds for row in own]),
        evaluations=_median([row.evaluations for row in own]),
        median_gap=median / standard.best - 1.0,
        worst_gap=worst / standard.best - 1.0,
        lists=standard.lists,
        random_search=_median([c.value_ms for c in controls if c.placer == "random_search"]),
        mutation=_median([c.value_ms for c in controls if c.placer == "mutation"]),
    )


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


def verdicts(found: Sequence[Line], known: Mapping[str, Standard]) -> list[str]:
    """What each learner comes to on the cases that count, with the cases where it does not."""
    told = []
    for placer, settings in dict.fromkeys((line.placer, line.settings) for line in found):
        own = [
            line
            for line in found
            if (line.placer, line.settings) == (placer, settings) and known[line.case].counts
        ]
        many = [line for line in own if line.num_devices >= MANY_DEVICES]
        who = f"{placer} ({settings})" if settings else placer
        told += [
            f"{who} below min({', '.join(LISTS)}): "
            + _met({x.case: x.median < x.lists for x in own}),
            f"{who} within 2 % of the best known (median) and 5 % (worst seed): "
            + _met({x.case: x.median_gap <= 0.02 and x.worst_gap <= 0.05 for x in own}),
            f"{who} below random search: "
            + _met({x.case: x.median < x.random_search for x in own}),
            f"{who} below mutation with {MANY_DEVICES} devices or more: "
            + _met({x.case: x.median < x.mutation for x in many}),
        ]
    return told


def _met(by_case: dict[str, bool]) -> str:
    """On how many cases something holds, and those on which it does not."""
    lost = ", ".join(case for case, is_met in by_case.items() if not is_met)
    return f"{sum(by_case.values())} of {len(by_case)}" + (f", not on {lost}" if lost else "")
