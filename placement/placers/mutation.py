"""Mutation: an evolution strategy with one parent, whose best child replaces it if it is no worse.

A (1 + 128) strategy after Rechenberg, "Evolutionsstrategie", 1973: a child is its parent with
regions of the graph, or a few units, on other devices, level by level from coarse to fine. Nothing
is learned, so it stands as a control beside every learned placer, on the same levels, with the same
moves and the same number of placements.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.account import Trace
from placement.learning.budget import Budget
from placement.learning.environment import Environment
from placement.learning.ladder import climb, rungs
from placement.learning.live import Live
from placement.learning.proposals import Regions
from placement.learning.training import Learned, Tell, at_random, changed, sampled
from placement.placers._learned import Learner, Study, clusters, itself, lines, searched
from placement.placers.base import Report, setting


@dataclass(frozen=True, kw_only=True)
class Mutation(Learner):
    summary = "The best placement so far with regions of the graph moved, again and again"
    paper = "Rechenberg: Evolutionsstrategie, 1973"
    pseudo_code = lines(
        "change the best placement so far: a region of the graph, or some ops, go elsewhere",
        "of equal ones the newer is the best; what is worse is forgotten",
    )

    max_iterations: int = setting(
        0, "Batches of placements; 0 takes as many as the time allows, or a few by size", low=0
    )
    batch: int = setting(128, "Placements in a batch", low=1)
    moves: Literal["regions", "units"] = setting(
        "regions", "What moves: regions of the graph to one device, or units drawn anew"
    )
    share: float = setting(
        0.05, "Share of the units that are drawn anew, at least one", low=0.0, high=1.0
    )
    candidates: str = setting("heft,single", "Placers whose answers stand beside it, by comma")

    def _found(
        self, problem: Problem, live: Live | None, report: Report, trace: Trace
    ) -> Placement:
        study = Study(
            find=self._find,
            level=itself,
            seed=self.seed,
            max_evaluations=self.max_iterations * self.batch,
            time_limit_s=self.time_limit_s,
            executor=self.executor,
            candidates=self.candidates,
        )
        return searched(problem, study, live, report, trace)

    def _find(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        levels = rungs(clusters(environment), environment.num_units)
        return climb(environment, levels, self._mutated, budget, tell, start)

    def _mutated(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        chance, regions = np.random.default_rng(self.seed), Regions(environment)

        def children(best: Ints | None) -> Ints:
            if best is None:
                return at_random(environment, self.batch, chance)
            num_moved = self.batch if self.moves == "regions" else 0
            if num_moved and environment.is_tight:
                # Regions do not make room for what moves.
                num_moved //= 2
            moved = regions.moved(best, num_moved, chance)
            num = self.batch - num_moved
            return np.concatenate([moved, changed(environment, best, num, self.share, chance)])

        return sampled(environment, children, budget, tell=tell, start=start)


PLACER = Mutation
