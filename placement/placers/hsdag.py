"""HSDAG: a graph network groups the ops by scoring edges, and places the groups.

Duan et al., "A Structure-Aware Framework for Learning Device Placements on Computation Graphs",
NeurIPS 2024. Chains are contracted, units described by type, degrees, fractal dimension, position
and shape; see `placement/learning/networks/hsdag.py` for what follows.

The preset `paper` has the paper's numbers: 2 layers of 128, one placement per step, an update by
1 / latency every 20 steps, Adam with 1e-4, a device per cluster. It departs from the authors' code
in two things that hurt there: all ops may be on one device, and rewards are held against a mean.

The preset `tuned` departs further. A unit chooses its device, from itself and its cluster, since
few clusters cannot spread over many devices. Batches are of 256, of which 64 are drawn and 192 are
the best placement so far with regions of the graph moved; those alone, without a network, find what
is about as good. Advantages are of log values, the best 16 are imitated with a weight of 0.1, that
of the entropy falls from 0.02, Adam has 3e-3. The graph is placed chain by chain, then op by op.
A graph too small for that is placed by several networks one after another, for one may be stuck,
unless they begin from a `policy`. A policy carries to other graphs and machines; a file written
with other features (`without`) than those with which it is read counts zeros in their place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.account import Trace
from placement.learning.budget import Budget
from placement.learning.carrying import devices
from placement.learning.environment import Environment
from placement.learning.features import Part, feature_axis, unit_features
from placement.learning.ladder import climb, rungs
from placement.learning.live import Live
from placement.learning.proposals import Regions
from placement.learning.training import Batch, Learned, Point, Recipe, Tell, changed, train
from placement.placers._learned import Learner, Study, clusters, itself, lines, searched
from placement.placers._policies import PolicyFiles, policy_setting, save_setting
from placement.placers.base import Report, setting


def against_mean(value_s: Floats) -> Floats:
    """Rewards of 1 / latency (N,) less their mean; what may not be has the reward 0."""
    rewards = 1.0 / np.maximum(value_s, 1e-30)
    found: Floats = rewards - rewards.mean()
    return found


PAPER = Recipe(
    batch=20,
    proposed=0.0,
    imitation=0.0,
    entropy=0.0,
    learning_rate=1e-4,
    clip=math.inf,
    weigh=against_mean,
)
TUNED = Recipe(batch=256, proposed=0.75, imitation=0.1)
# Where the units are the only level, so many networks learn one after another, from such seeds.
NUM_NETWORKS, NEXT_SEED = 4, 1_000_003


@dataclass(frozen=True, kw_only=True)
class Hsdag(Learner):
    summary = "A graph network learns which ops belong together, and where to put them"
    paper = "Duan et al.: A Structure-Aware Framework for Learning Device Placements, NeurIPS 2024"
    needs = ("safetensors", "torch")
    pseudo_code = lines(
        "a graph network groups the ops; draw a device for each, as likely as it says",
        "make likelier what took less time than the mean, and unlikelier what took more",
    )

    preset: Literal["tuned", "paper"] = setting(
        "tuned", "Numbers of the paper, or those with which it learns in seconds"
    )
    max_iterations: int = setting(
        0, "Updates of the network; 0 takes as many as the time allows, or a few by size", low=0
    )
    batch: int = setting(0, "Placements in a batch; 0: by preset, 256 or 20", low=0)
    without: Part = setting("", "Features to leave out, to see what they are good for")
    hidden: int = setting(128, "Width of the network's layers", low=1)
    learning_rate: float = setting(0.0, "Step of Adam; 0 means by preset", low=0.0)
    search: float = setting(
        0.0, "Share of the budget for local search from what was learned", low=0.0, high=0.9
    )
    candidates: str = setting("heft,single", "Placers whose answers stand beside it, by comma")
    policy: str = policy_setting()
    save: str = save_setting()

    def _found(
        self, problem: Problem, live: Live | None, report: Report, trace: Trace
    ) -> Placement:
        study = Study(
            find=self._files.keeping(self._find),
            seed=self.seed,
            max_evaluations=self.max_iterations * self._recipe.batch,
            time_limit_s=self.time_limit_s,
            executor=self.executor,
            candidates=self.candidates,
            level=itself,
            search=self.search,
        )
        return searched(problem, study, live, report, trace)

    @property
    def _recipe(self) -> Recipe:
        recipe = PAPER if self.preset == "paper" else TUNED
        return replace(
            recipe,
            batch=self.batch or recipe.batch,
            learning_rate=self.learning_rate or recipe.learning_rate,
        )

    @property
    def _files(self) -> PolicyFiles:
        return PolicyFiles("hsdag", self.preset, self.policy, self.save, {"hidden": self.hidden})

    def _find(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        levels = rungs(clusters(environment), environment.num_units)
        if self.preset == "paper":
            levels = clusters(environment)[:1]
        if self.preset == "tuned" and len(levels) == 1 and not self.policy:
            return self._anew(environment, budget, tell, start)
        return climb(environment, levels, self._learn, budget, tell, start)

    def _anew(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        """The best of several networks, one after another; none knows of those before."""
        best: Learned | None = None
        curve: list[Point] = []
        is_going_on = True

        def heard(point: Point, share: float, batch: Batch) -> bool:
            nonlocal is_going_on
            if best is not None:
                evaluations = best.evaluations + point.evaluations
                best_s = min(best.value_s, point.best_s)
                point = point._replace(evaluations=evaluations, best_s=best_s)
            curve.append(point)
            is_going_on = tell(point, budget.spent(point.evaluations), batch)
            return is_going_on

        for number in range(NUM_NETWORKS):
            before = best.evaluations if best is not None else 0
            part = budget.part(before, NUM_NETWORKS - number)
            seeded = replace(self, seed=self.seed + number * NEXT_SEED)
            try:
                learned = seeded._learn(environment, part, heard, start)
            except ValueError:
                # A later network that finds nothing possible takes nothing back.
                if best is None:
                    raise
                break
            if best is None or learned.value_s < best.value_s:
                best = learned
            best = replace(best, evaluations=before + learned.evaluations, curve=tuple(curve))
            if not is_going_on or budget.spent(best.evaluations) >= 1.0:
                break
        assert best is not None
        return best

    def _learn(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        import torch

        from placement.learning.networks.hsdag import HsdagPolicy, Shape

        is_paper = self.preset == "paper"
        shape = Shape(hidden=self.hidden, residual=not is_paper, per_step=1 if is_paper else 0)
        features = torch.from_numpy(unit_features(environment, self.without))
        generator = torch.Generator().manual_seed(self.seed)
        policy = HsdagPolicy(environment, features, shape, generator)
        carried = policy.carried(feature_axis(environment, self.without), devices(environment))
        remark = self._files.begin(carried)
        regions = Regions(environment)

        def propose(best: Ints, num: int, chance: np.random.Generator) -> Ints:
            # Regions do not make room for what moves.
            num_apart = num // 2 if environment.is_tight else 0
            moved = regions.moved(best, num - num_apart, chance)
            apart = changed(environment, best, num_apart, self._recipe.changed, chance)
            return np.concatenate([moved, apart])

        learned = train(
            environment,
            policy,
            self._recipe,
            budget,
            seed=self.seed,
            tell=tell,
            start=start,
            propose=propose,
        )
        return replace(learned, carried=carried, remark=remark)


PLACER = Hsdag
