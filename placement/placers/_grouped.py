"""What the learned placers by groups share: presets, networks made for a level, their course."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.learning.budget import Budget, default_evaluations
from placement.learning.changes import redrawn, regrouped
from placement.learning.environment import Environment
from placement.learning.ladder import climb, rungs
from placement.learning.planner_features import op_features, scaled_features, summed_features
from placement.learning.proposals import Regions
from placement.learning.signals import SignalRecipe, train_by_signal
from placement.learning.training import (
    Learned,
    Recipe,
    Tell,
    at_random,
    changed,
    one_torch_thread,
    train,
)
from placement.placers._learned import NUM_DRAWN, clusters
from placement.placers._policies import PolicyFiles

if TYPE_CHECKING:
    from placement.learning.networks.grouping import GroupedPolicy
    from placement.learning.networks.placing import Placing

# The planner's own numbers: groups per device and at most, widths, noise (see networks/grouping).
PLANNED_PER_DEVICE, PLANNED_MOST, PLANNED_HIDDEN = 20, 256, 64
# Units that a proposal changes at most, as a share, and shares of the kinds of proposals.
MOST_CHANGED, REDRAWN, REGROUPED = 0.2, 0.3, 0.2
# The same where changes have to keep to memory.
SHARE_IN_MEMORY = 0.05
# By how much groups prefer a device at first, and units groups that prefer theirs.
PREFERENCE, FAVOUR = 2.0, 3.0


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """Settings of a learner by groups; 0 means by preset."""

    in_turn: bool
    paper: bool
    groups: int
    most_groups: int
    hidden: int
    placing_hidden: int
    recipe: Recipe
    signals: SignalRecipe
    seed: int
    files: PolicyFiles

    def find(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        """The best that training finds: by the paper on the units, else from coarse to fine."""
        with one_torch_thread():
            if self.paper:
                policy = self._policy(environment)
                return train_by_signal(
                    environment,
                    policy,
                    self.signals,
                    budget,
                    seed=self.seed,
                    tell=tell,
                    start=possible(environment, start, self.seed),
                )
            levels = rungs(clusters(environment), environment.num_units)
            return climb(environment, levels, self._learn, budget, tell, start)

    def _learn(
        self, environment: Environment, budget: Budget, tell: Tell, start: Ints | None
    ) -> Learned:
        policy, regions = self._policy(environment), Regions(environment)
        carried = policy.carried()
        remark = self.files.begin(carried)
        start = possible(environment, start, self.seed)
        if start is not None:
            policy.favour(start, FAVOUR)

        def propose(devices: Ints, num: int, chance: np.random.Generator) -> Ints:
            num_redrawn, num_regrouped = int(REDRAWN * num), int(REGROUPED * num)
            rest = num - num_redrawn - num_regrouped
            likely = policy.chances()
            parts = [
                redrawn(environment, devices, likely, num_redrawn, MOST_CHANGED, chance),
                regrouped(environment, devices, policy.groups(), num_regrouped, chance),
                nearby(environment, regions, devices, rest, chance),
            ]
            return np.concatenate(parts)

        learned = train(
            environment,
            policy,
            self.recipe,
            budget,
            seed=self.seed,
            tell=tell,
            start=start,
            propose=propose,
        )
        return replace(learned, carried=carried, remark=remark)

    def _policy(self, environment: Environment) -> GroupedPolicy:
        import torch

        from placement.learning.networks.grouping import GroupedPolicy, Grouper, Schedule

        num_groups = self._num_groups(environment)
        features = (op_features if self.paper else scaled_features)(environment)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            grouper = Grouper(
                features.shape[1],
                self.hidden,
                environment.num_units,
                num_groups,
                own=not self.paper,
            )
            placing = self._placing(environment, num_groups)
        rows = torch.from_numpy(features).float()
        return GroupedPolicy(
            environment, rows, grouper, placing, Schedule() if self.paper else None
        )

    def _placing(self, environment: Environment, num_groups: int) -> Placing:
        import torch

        from placement.learning.networks.placing import Apart, InTurn

        num_features = 2 * num_groups + summed_features(environment).shape[1]
        anywhere = torch.from_numpy(environment.allowed.any(axis=0)).repeat(num_groups, 1)
        return (InTurn if self.in_turn else Apart)(
            num_features,
            anywhere,
            hidden=self.placing_hidden,
            own=not self.paper,
            preference=0.0 if self.paper else PREFERENCE,
            steepness=1.0 if self.paper else 0.0,
        )

    def _num_groups(self, environment: Environment) -> int:
        by_devices = min(PLANNED_MOST, PLANNED_PER_DEVICE * environment.num_devices)
        if self.paper:
            return self.groups or by_devices
        fitting = max(environment.num_devices, environment.num_units // 2)
        return min(self.groups or min(by_devices, self.most_groups), fitting)


def evaluations(problem: Problem, wanted: int, time_limit_s: float | None, cost: int) -> int:
    """As many placements as are wanted; with no limit at all a number by the problem's size."""
    if wanted or time_limit_s is not None:
        return wanted
    return default_evaluations(problem, cost)


def possible(environment: Environment, start: Ints | None, seed: int) -> Ints | None:
    """The start, or where memory is short and it is none, one that keeps to memory if it is found:
    networks that place unit by unit cannot see what is left of a device."""
    if not environment.is_tight:
        return start
    rows = at_random(environment, NUM_DRAWN, np.random.default_rng(seed))
    if start is not None:
        rows = np.concatenate([start[None], rows])
    value_s = environment.values_s(rows)
    if start is not None and np.isfinite(value_s[0]):
        return start
    best = int(value_s.argmin())
    return rows[best] if np.isfinite(value_s[best]) else None


def nearby(
    environment: Environment,
    regions: Regions,
    devices: Ints,
    num: int,
    chance: np.random.Generator,
) -> Ints:
    """Changes of a placement (N, U) without regard to what was learned, within memory."""
    if environment.is_tight:
        return changed(environment, devices, num, SHARE_IN_MEMORY, chance)
    return regions.moved(devices, num, chance)
