"""Mutation: an evolution strategy with one parent, whose best child replaces it if it is no worse.

A (1 + 128) strategy after Rechenberg, "Evolutionsstrategie", 1973: a child is its parent with a few
units, chains of ops, drawn anew. Nothing is learned, so it stands as a control beside every learned
placer, on the same units and with the same number of placements.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.learning.budget import Budget
from placement.learning.environment import Environment
from placement.learning.live import Live
from placement.learning.training import Learned, Tell, at_random, changed, sampled
from placement.placers._learned import searched
from placement.placers.base import Placer, Report, quiet, setting


@dataclass(frozen=True, kw_only=True)
class Mutation(Placer):
    summary = "The best placement so far with a few chains of ops drawn anew, again and again"
    paper = "Rechenberg: Evolutionsstrategie, 1973"
    objectives = tuple(Objective)
    executions = tuple(Execution)
    all_cores: ClassVar[bool] = True
    learns_live: ClassVar[bool] = True

    max_iterations: int = setting(
        0, "Batches of placements; 0 takes as many as the time allows, or a few by size", low=0
    )
    batch: int = setting(128, "Placements in a batch", low=1)
    share: float = setting(
        0.05, "Share of the units that are drawn anew, at least one", low=0.0, high=1.0
    )
    candidates: str = setting("heft,single", "Placers whose answers stand beside it, by comma")

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        return self._searched(problem, None, report)

    def place_live(self, problem: Problem, live: Live, report: Report = quiet) -> Placement:
        return self._searched(problem, live, report)

    def _searched(self, problem: Problem, live: Live | None, report: Report) -> Placement:
        return searched(
            problem,
            report,
            live=live,
            find=self._find,
            seed=self.seed,
            max_evaluations=self.max_iterations * self.batch,
            time_limit_s=self.time_limit_s,
            candidates=self.candidates,
        )

    def _find(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        chance = np.random.default_rng(self.seed)

        def children(best: Ints | None) -> Ints:
            if best is None:
                return at_random(environment, self.batch, chance)
            return changed(environment, best, self.batch, self.share, chance)

        return sampled(environment, children, budget, tell=tell, start=start)


PLACER = Mutation
