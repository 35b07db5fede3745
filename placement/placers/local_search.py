"""Iterated local search: moves that do not worsen, and a kick where none is left.

Moves take an op, a fused group, a chain, a scope block or a cluster to another device, or an op to
the device of a neighbour (a shift of the border between devices); half of them start at the
critical path. Lourenço, Martin and Stützle, "Iterated local search", Handbook of Metaheuristics,
2003.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.parallel.executor import HERE
from placement.placers._multistart import Improved, improved
from placement.placers.base import Placer, Report, Step, quiet, setting
from placement.search.chain import Chain


@dataclass(frozen=True, kw_only=True)
class LocalSearch(Placer):
    summary = "Moves ops and blocks while that helps, then kicks and goes on (local search)"
    paper = "Lourenço, Martin, Stützle: Iterated local search, Handbook of Metaheuristics, 2003"
    objectives = tuple(Objective)
    all_cores: ClassVar[bool] = True
    pseudo_code = (
        "start from the placements of quick methods, one search from each",
        "every move: an op or a block, half of them on the critical path, and a device for it;"
        " without room there, something of that device goes back in exchange",
        "    it takes no longer: accept",
        "    else take it back",
        "16 turns: where none has helped, change some blocks of the best anyhow, and go on",
        "answer the best of all searches and starts",
    )

    max_iterations: int = setting(
        0, "Moves of each chain; 0 takes as many as a few seconds allow, by the graph's size"
    )
    kick: int = setting(3, "Blocks that change device at random where no move helps any more")
    start: str = setting(
        "heft,single", "Placers to start from, separated by commas; one chain each"
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return self._improved(problem, report).best(problem)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.moves import walk

        return walk(problem, self._improved(problem, quiet, traced=most), most)

    def _improved(self, problem: Problem, report: Report, traced: int = 0) -> Improved:
        return improved(
            problem,
            report,
            start=self.start,
            seed=self.seed,
            max_iterations=self.max_iterations,
            time_limit_s=self.time_limit_s,
            make_chain=partial(Chain, kick=self.kick, traced=traced),
            # What is traced is written down here.
            executor=HERE if traced else self.executor,
        )


PLACER = LocalSearch
