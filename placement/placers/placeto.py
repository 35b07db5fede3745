"""Placeto: units visited one by one, each moved or left by a network that sees the placement.

Addanki, Venkatakrishnan, Gupta, Mao and Alizadeh, "Placeto: learning generalizable device placement
algorithms for distributed machine learning", NeurIPS 2019. A graph network with eight rounds of
messages in both directions sums up what is before, after and beside the current unit; each step's
reward is what the running time loses by it. `preset` paper is that, on at most 128 groups, with
episodes from random placements. `tuned` differs: units are chains of ops; episodes begin at the
best placement so far, the first ones at all on one device; the present device begins with a higher
logit, so that an episode changes a few units and not all; rewards are differences of logarithms and
discounted, advantages scaled by their deviation; messages and sums are means; twice the batch. The
start times that the network sees are those of groups, worked out in one pass. A `policy` carries
to other graphs as it is, and to other machines by the devices' rank in speed.
"""

from dataclasses import dataclass, replace
from typing import Literal

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.account import Trace
from placement.learning.budget import Budget
from placement.learning.environment import Environment
from placement.learning.episodes import Schooling, learn
from placement.learning.live import Live
from placement.learning.training import Learned, Tell
from placement.placers._learned import Learner, Study, at_most, chained, lines, searched
from placement.placers._policies import PolicyFiles, policy_setting, save_setting
from placement.placers.base import Report, setting

PRESETS = {
    "tuned": Schooling(
        batch=16,
        width=16,
        stay=3.0,
        from_best=True,
        logarithms=True,
        scaled=True,
        averaged=True,
        discount=0.8,
        learning_rate=3e-3,
        entropy=0.01,
    ),
    "paper": Schooling(
        batch=8,
        width=16,
        stay=0.0,
        from_best=False,
        logarithms=False,
        scaled=False,
        averaged=False,
        discount=1.0,
        learning_rate=1e-3,
        entropy=0.01,
    ),
}
MOST_GROUPS = 128
# Rounds where nobody limits them: half as many as there are units, within these.
FEWEST_ROUNDS, MOST_ROUNDS = 4, 50
NO_LIMIT = 1 << 40


@dataclass(frozen=True, kw_only=True)
class Placeto(Learner):
    summary = "A graph network visits the groups of ops one by one and moves each, or leaves it"
    paper = "Addanki et al.: Placeto, NeurIPS 2019"
    needs = ("safetensors", "torch")
    pseudo_code = lines(
        "episodes: visit op by op, and move it or leave it, as likely as the network says",
        "make likelier the moves after which the step got shorter, and unlikelier the others",
    )

    preset: Literal["tuned", "paper"] = setting(
        "tuned", "Settings that work here, or those of the paper, for all that is left empty"
    )
    max_iterations: int = setting(
        0, "Rounds of episodes; 0 takes as many as the time allows, or a few by size", low=0
    )
    batch: int = setting(0, "Episodes in a round; 0 means by preset", low=0)
    learning_rate: float = setting(0.0, "Of Adam, at first; 0 means by preset", low=0.0)
    groups: int = setting(MOST_GROUPS, "Groups of ops at most", low=2)
    candidates: str = setting("heft,single", "Placers whose answers stand beside it, by comma")
    policy: str = policy_setting()
    save: str = save_setting()

    def _found(
        self, problem: Problem, live: Live | None, report: Report, trace: Trace
    ) -> Placement:
        study = Study(
            find=self._files.keeping(self._find),
            seed=self.seed,
            max_evaluations=NO_LIMIT,
            time_limit_s=self.time_limit_s,
            executor=self.executor,
            candidates=self.candidates,
            level=self._level,
        )
        return searched(problem, study, live, report, trace)

    @property
    def _files(self) -> PolicyFiles:
        sizes = {"width": PRESETS[self.preset].width}
        return PolicyFiles("placeto", self.preset, self.policy, self.save, sizes)

    def _level(self, environment: Environment) -> Environment:
        if self.preset == "tuned":
            chains = chained(environment)
            if chains.num_units <= self.groups:
                return chains
        return at_most(self.groups)(environment)

    def _find(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        schooling = PRESETS[self.preset]
        rounds = self.max_iterations
        if not rounds:
            by_size = max(FEWEST_ROUNDS, min(MOST_ROUNDS, environment.num_units // 2))
            rounds = by_size if self.time_limit_s is None else NO_LIMIT
        return learn(
            environment,
            replace(
                schooling,
                batch=self.batch or schooling.batch,
                learning_rate=self.learning_rate or schooling.learning_rate,
            ),
            budget,
            seed=self.seed,
            max_rounds=rounds,
            tell=tell,
            start=start,
            begin_from=self._files.begin,
        )


PLACER = Placeto
