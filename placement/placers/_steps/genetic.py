"""Steps of the genetic search: each generation with its best placement."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placement.core.formatting import counted, seconds
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.core.timeline import Span
from placement.search.step_parts import cut_bytes, drawn, ended, ops_of_units, table, yes_or_no
from placement.search.steps import Cell, Kind, Question, Step

if TYPE_CHECKING:
    from placement.placers.genetic import Bred, Evolution

JOIN, FILL, CROSS, KEEP, SPLIT, ANSWER = range(6)
COLUMNS: dict[str, Kind] = {
    "generation": "text",
    "clusters": "number",
    "best": "seconds",
    "middle": "seconds",
    "worst": "seconds",
    "cut by the best": "bytes",
    "different placements": "number",
}


def walk(problem: Problem, evolution: "Evolution", most: int) -> Iterator[Step]:
    """A step for each of the first `most` generations, one for the others, and the answer."""
    bred = (each for level in range(evolution.num_levels) for each in evolution.generations(level))
    show = _Shown(problem, evolution)
    yield show.joined()
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
        size = cut_bytes(self.problem, bred.devices[int(bred.value_s.argmin())])
        self._rows.append((of, float(bred.num_clusters), *figures, size, num_different))
        self.num += 1

    def joined(self) -> Step:
        """The levels, of which each joins clusters of the one before, and what is left to cut."""
        problem = self.problem
        rows: list[tuple[Cell, ...]] = []
        for number, cluster in enumerate(self.evolution.levels, 1):
            size = float(np.bincount(cluster).max(initial=0))
            rows.append(
                (
                    f"level {number}",
                    float(cluster.max(initial=-1) + 1),
                    size,
                    cut_bytes(problem, cluster),
                )
            )
        columns: dict[str, Kind] = {"": "text", "clusters": "number"}
        columns |= {"largest, in blocks of ops": "number", "bytes between clusters": "bytes"}
        fewest, num = int(rows[0][1] or 0), len(rows)
        why = (
            f"{counted(problem.num_units, 'block')} of ops that stay together are joined to fewer"
            f" and fewer clusters, down to {fewest}: what passes most stays inside. The search goes"
            f" back through {counted(num, 'level')}."
        )
        return Step(
            line=JOIN,
            why=why,
            devices=(-1,) * problem.num_units,
            tables=(table("Levels, the coarsest first", columns, rows),),
        )

    def generation(self, bred: "Bred", before: "Bred | None") -> Step:
        """The best of a generation beside the generations before, the last one first."""
        best = bred.devices[int(bred.value_s.argmin())]
        now_s = float(bred.value_s.min())
        was_s = float("inf") if before is None else float(before.value_s.min())
        old = best if before is None else before.devices[int(before.value_s.argmin())]
        is_first, is_better = bred.number == 0, now_s < was_s * (1 - 1e-12)
        asks = yes_or_no("Does a child take less time than all before?", is_better)
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
        return Step(
            line=line,
            why=why,
            devices=devices,
            focus=focus,
            spans=self._spans,
            tables=(table("Generations", COLUMNS, self._rows[::-1], (0,)),),
            question=question,
        )

    def rest(self, last: "Bred", num: int) -> Step:
        best_s = float(last.value_s.min())
        why = f"The other {counted(num, 'generation')} went the same way."
        if np.isfinite(best_s):
            why = f"{why[:-1]}; the best takes {seconds(best_s, self.problem.unit)} now."
        return self._step(KEEP, why, last.devices[int(last.value_s.argmin())])
