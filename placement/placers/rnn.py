"""A sequence model with attention that places co-location groups one after another.

Mirhoseini et al., "Device placement optimization with reinforcement learning", ICML 2017. Groups
are clusters of chains of ops, at most 128, where the paper joins ops by rules for TensorFlow
graphs. The preset `paper` has the numbers that ICLR 2018 states for both papers: signal sqrt(time)
against a moving average, Adam 0.1, clip 1, logits through 5 tanh(logits / 10), four placements in
a batch; the width, which is not stated, is the hierarchical planner's 512. A group is described as
there, by connections, types and shapes.

The preset `tuned` differs:
- at most 64 groups, width 64, no tanh, scaled features of the groups, and for each group a
  preference of devices of its own;
- the order of execution is chosen anew for the best placement so far;
- advantages are of logarithms, in batches of 64; the best 16 placements are imitated; part of each
  batch are changes of the best one: regions of neighbours, and groups by the policy;
- entropy is rewarded less and less.

A `policy` holds the sequence model, not what single groups prefer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.account import Trace
from placement.learning.budget import Budget
from placement.learning.carrying import devices
from placement.learning.changes import redrawn
from placement.learning.environment import Environment
from placement.learning.live import Live
from placement.learning.planner_features import group_features, scaled_axis, scaled_features
from placement.learning.proposals import Regions
from placement.learning.signals import SignalRecipe, train_by_signal
from placement.learning.training import Learned, Recipe, Tell, one_torch_thread, train
from placement.placers._grouped import MOST_CHANGED, evaluations, nearby, possible
from placement.placers._learned import Learner, Study, at_most, lines, searched
from placement.placers._policies import PolicyFiles, policy_setting, save_setting
from placement.placers.base import Report, setting

if TYPE_CHECKING:
    from placement.learning.networks.sequence import SequencePolicy

MOST_GROUPS, TUNED_GROUPS = 128, 64
TUNED_BATCH = 64
# How many times as much a placement costs as valuing it.
TUNED_COST, PLANNED_COST = 10, 50
PLANNED_HIDDEN, TUNED_HIDDEN = 512, 64
STEEPNESS, TEMPERATURE = 5.0, 10.0


@dataclass(frozen=True, kw_only=True)
class Rnn(Learner):
    summary = "A sequence model with attention that places groups of ops one after another"
    paper = (
        "Mirhoseini et al.: Device placement optimization with reinforcement learning, ICML 2017"
    )
    needs = ("safetensors", "torch")
    pseudo_code = lines(
        "draw a device for each group of ops, one after another, as likely as the network says",
        "make likelier what took less time than the mean, and unlikelier what took more",
    )

    preset: Literal["tuned", "paper"] = setting(
        "tuned", "What works in a minute, or the numbers of the paper"
    )
    max_iterations: int = setting(
        0, "Batches of placements; 0 takes as many as the time allows, or some by size", low=0
    )
    batch: int = setting(0, "Placements in a batch; 0: by preset, 64 or 4", low=0)
    groups: int = setting(
        0, "Co-location groups at most; 0: by preset, 64 or 128", low=0, high=MOST_GROUPS
    )
    hidden: int = setting(0, "Width of the model, an even number; 0: by preset, 64 or 512", low=0)
    learning_rate: float = setting(
        0.0, "Rate of Adam; 0: by preset, 0.003, or 0.1 that falls", low=0.0
    )
    search: float = setting(
        0.0, "Share of the time for local search from what was learned", low=0.0, high=0.9
    )
    candidates: str = setting("heft,single", "Placers whose answers stand beside it, by comma")
    policy: str = policy_setting()
    save: str = save_setting()

    def _found(
        self, problem: Problem, live: Live | None, report: Report, trace: Trace
    ) -> Placement:
        cost = PLANNED_COST if self._is_paper else TUNED_COST
        most = self.groups or (MOST_GROUPS if self._is_paper else TUNED_GROUPS)
        study = Study(
            find=self._files.keeping(self._find),
            level=at_most(most),
            seed=self.seed,
            max_evaluations=evaluations(
                problem, self.max_iterations * self._batch, self.time_limit_s, cost
            ),
            search=self.search,
            time_limit_s=self.time_limit_s,
            executor=self.executor,
            candidates=self.candidates,
        )
        return searched(problem, study, live, report, trace)

    @property
    def _is_paper(self) -> bool:
        return self.preset == "paper"

    @property
    def _hidden(self) -> int:
        return self.hidden or (PLANNED_HIDDEN if self._is_paper else TUNED_HIDDEN)

    @property
    def _files(self) -> PolicyFiles:
        return PolicyFiles("rnn", self.preset, self.policy, self.save, {"hidden": self._hidden})

    @property
    def _batch(self) -> int:
        return self.batch or (SignalRecipe.batch if self._is_paper else TUNED_BATCH)

    def _find(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        with one_torch_thread():
            policy, regions = self._policy(environment), Regions(environment)
            start = possible(environment, start, self.seed)
            if self._is_paper:
                signals = SignalRecipe(
                    batch=self._batch,
                    learning_rate=self.learning_rate or SignalRecipe.learning_rate,
                    decay=1.0,
                )
                return train_by_signal(
                    environment, policy, signals, budget, seed=self.seed, tell=tell, start=start
                )

            carried = policy.carried(scaled_axis(environment), devices(environment))
            remark = self._files.begin(carried)

            def propose(best: Ints, num: int, chance: np.random.Generator) -> Ints:
                likely = policy.chances()
                parts = [
                    redrawn(environment, best, likely, num // 2, MOST_CHANGED, chance),
                    nearby(environment, regions, best, num - num // 2, chance),
                ]
                return np.concatenate(parts)

            recipe = Recipe(
                batch=self._batch,
                proposed=0.75,
                learning_rate=self.learning_rate or Recipe.learning_rate,
            )
            learned = train(
                environment,
                policy,
                recipe,
                budget,
                seed=self.seed,
                tell=tell,
                start=start,
                propose=propose,
            )
            return replace(learned, carried=carried, remark=remark)

    def _policy(self, environment: Environment) -> SequencePolicy:
        import torch

        from placement.learning.networks.placing import InTurn
        from placement.learning.networks.sequence import SequencePolicy

        num = environment.num_units
        if self._is_paper:
            described = group_features(environment, np.arange(num), num)
        else:
            described = scaled_features(environment)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            placing = InTurn(
                described.shape[1],
                torch.from_numpy(environment.allowed),
                hidden=self._hidden,
                own=not self._is_paper,
                steepness=STEEPNESS if self._is_paper else 0.0,
                temperature=TEMPERATURE if self._is_paper else 1.0,
            )
        return SequencePolicy(torch.from_numpy(described).float(), placing)


PLACER = Rnn
