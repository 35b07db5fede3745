"""Random search: placements drawn uniformly over what is allowed, the best of which is the answer.

Bergstra and Bengio, "Random search for hyper-parameter optimization", 2012, made it the control for
methods that learn; here it stands beside every learned placer, on the same units and with the same
number of placements.
"""

from dataclasses import dataclass

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.account import Trace
from placement.learning.budget import Budget
from placement.learning.environment import Environment
from placement.learning.live import Live
from placement.learning.training import Learned, Tell, at_random, sampled
from placement.placers._learned import Learner, Study, lines, searched
from placement.placers.base import Report, setting


@dataclass(frozen=True, kw_only=True)
class RandomSearch(Learner):
    summary = "Random placements of chains of ops: the control for methods that learn"
    paper = "Bergstra, Bengio: Random search for hyper-parameter optimization, JMLR 13, 2012"
    pseudo_code = lines(
        "draw a device for each op by chance, each as likely",
        "remember the best; nothing is learned",
    )

    max_iterations: int = setting(
        0, "Batches of placements; 0 takes as many as the time allows, or a few by size", low=0
    )
    batch: int = setting(128, "Placements in a batch", low=1)
    candidates: str = setting("heft,single", "Placers whose answers stand beside it, by comma")

    def _found(
        self, problem: Problem, live: Live | None, report: Report, trace: Trace
    ) -> Placement:
        study = Study(
            find=self._find,
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
        chance = np.random.default_rng(self.seed)
        return sampled(
            environment,
            lambda best: at_random(environment, self.batch, chance),
            budget,
            tell=tell,
            start=start,
        )


PLACER = RandomSearch
