"""Steps of the genetic search: each generation with its best placement."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placement.core.formatting import counted, seconds
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.core.timeline import Span
from placement.search.steps import (
    Cell,
    Column,
    Question,
    Step,
    Table,
    drawn,
    ended,
    first_rows,
    ops_of_units,
)

if TYPE_CHECKING:
    from placement.placers.genetic import Bred, Evolution

JOIN, FILL, CROSS, KEEP, SPLIT, ANSWER = range(6)
ANSWERS = ("yes", "no")
COLUMNS = (
    Column("generation"),
    Column("clusters", "number"),
    Column("best", "seconds"),
    Column("middle", "seconds"),
    Column("worst", "seconds"),
    Column("different placements", "number"),
)


def walk(problem: Problem, evolution: "Evolution", most: int) -> Iterator[Step]:
    """A step for each of the first `most` generations, one for the others, and the answer."""
    bred = (each for level in range(evolution.num_levels) for each in evolution.generations(level))
    show = _Shown(problem, evolution)
    before: Bred | None = None
    for number, each in enumerate(bred):
        show.add(each)
        if number < most:
            yield show.generation(each, before)
        before = each
    if before is not None and show.num > most:
        yield show.rest(before, show.num - most)
    answer = evolution.answer()
    said = "The best of the last population is the answer."
    if answer in evolution.starts:
        said = "Nothing better than a start was found, so the best start is the answer."
    yield ended(problem, answer, ANSWER, said)


class _Shown:
    """The generations so far, and the timeline of the best."""

    def __init__(self, problem: Problem, evolution: "Evolution") -> None:
        self.problem, self.evolution = problem, evolution
        self.num = 0
        self._rows: list[tuple[Cell, ...]] = []
        self._best: tuple[int, ...] = ()
        self._spans: tuple[Span, ...] = ()

    def add(self, bred: "Bred") -> None:
        value_s = np.sort(bred.value_s)
        possible = value_s[np.isfinite(value_s)]
        figures: list[Cell] = [None] * 3
        if possible.size:
            figures = [float(possible[i]) for i in (0, possible.size // 2, -1)]
        of = f"level {bred.level + 1} of {self.evolution.num_levels}, number {bred.number}"
        num_different = float(len(np.unique(bred.devices, axis=0)))
        self._rows.append((of, float(bred.num_clusters), *figures, num_different))
        self.num += 1

    def generation(self, bred: "Bred", before: "Bred | None") -> Step:
        """The best of a generation beside the generations before, the last one first."""
        best = bred.devices[int(bred.value_s.argmin())]
        now_s = float(bred.value_s.min())
        was_s = float("inf") if before is None else float(before.value_s.min())
        old = best if before is None else before.devices[int(before.value_s.argmin())]
        is_first, is_better = bred.number == 0, now_s < was_s * (1 - 1e-12)
        asks = Question("Does a child take less time than all before?", ANSWERS, ANSWERS[1])
        if is_better:
            asks = Question(asks.text, ANSWERS, ANSWERS[0])
        return self._step(
            (SPLIT if bred.level else FILL) if is_first else KEEP if is_better else CROSS,
            self._why(bred, now_s, was_s, is_better),
            best,
            ops_of_units(self.problem, np.flatnonzero(best != old).tolist()),
            None if is_first else asks,
        )

    def _why(self, bred: "Bred", now_s: float, was_s: float, is_better: bool) -> str:
        unit = self.problem.unit
        clusters, num = counted(bred.num_clusters, "cluster"), len(bred.devices)
        takes = f"the best takes {seconds(now_s, unit)}"
        if np.isinf(now_s):
            takes = "none of them fits into memory"
        if bred.number == 0 and bred.level == 0:
            return f"{num} placements of {clusters}, the starts and mutants of them: {takes}."
        if bred.number == 0:
            return f"The clusters are split, so that {clusters} can move by themselves: {takes}."
        if is_better and np.isfinite(was_s):
            return (
                f"One of {num} children takes {seconds(now_s, unit)}, less than"
                f" {seconds(was_s, unit)} before."
            )
        if is_better:
            return f"One of {num} children fits into memory and takes {seconds(now_s, unit)}."
        return f"None of {num} children takes less than the best before: {takes}."

    def _step(
        self,
        line: int,
        why: str,
        best: Ints,
        focus: tuple[str, ...] = (),
        question: Question | None = None,
    ) -> Step:
        devices = tuple(best.tolist())
        if devices != self._best:
            self._best, self._spans = devices, drawn(self.problem, best, self.evolution.order)
        table = Table("Generations", COLUMNS, first_rows(self._rows[::-1]), (0,))
        return Step(
            line=line,
            why=why,
            devices=devices,
            focus=focus,
            spans=self._spans,
            tables=(table,),
            question=question,
        )

    def rest(self, last: "Bred", num: int) -> Step:
        best_s = float(last.value_s.min())
        why = f"The other {counted(num, 'generation')} went the same way."
        if np.isfinite(best_s):
            why = f"{why[:-1]}; the best takes {seconds(best_s, self.problem.unit)} now."
        return self._step(KEEP, why, last.devices[int(last.value_s.argmin())])
