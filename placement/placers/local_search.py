"""Iterated local search: moves that do not worsen, and a kick where none is left.

Moves take an op, a fused group, a chain, a scope block or a cluster to another device, or an op to
the device of a neighbour (a shift of the border between devices); half of them start at the
critical path. Lourenço, Martin and Stützle, "Iterated local search", Handbook of Metaheuristics,
2003.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.placers._multistart import searched
from placement.placers.base import Placer, Report, quiet, setting
from placement.search.chain import Chain


@dataclass(frozen=True, kw_only=True)
class LocalSearch(Placer):
    summary = "Moves ops and blocks while that helps, then kicks and goes on (local search)"
    paper = "Lourenço, Martin, Stützle: Iterated local search, Handbook of Metaheuristics, 2003"
    objectives = tuple(Objective)
    all_cores: ClassVar[bool] = True

    max_iterations: int = setting(
        0, "Moves of each chain; 0 takes as many as a few seconds allow, by the graph's size"
    )
    kick: int = setting(3, "Blocks that change device at random where no move helps any more")
    start: str = setting(
        "heft,single", "Placers to start from, separated by commas; one chain each"
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return searched(
            problem,
            report,
            start=self.start,
            seed=self.seed,
            max_iterations=self.max_iterations,
            time_limit_s=self.time_limit_s,
            make_chain=partial(Chain, kick=self.kick),
        )


PLACER = LocalSearch
