"""Training by the signal of the first papers: the square root of the running time.

The signal is held against a moving average of signals, and the policy follows the gradient of
signal minus average times log chance. Mirhoseini et al., ICML 2017 and ICLR 2018; the numbers are
those of the hierarchical planner's published code, in which the average starts at the signal of a
placement that fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.budget import Budget
from placement.learning.environment import Environment
from placement.learning.training import (
    Batch,
    Elite,
    Learned,
    Point,
    Policy,
    Tell,
    Trained,
    listening,
    none_possible,
)


@dataclass(frozen=True, kw_only=True)
class SignalRecipe:
    """How a policy is trained: Adam whose rate falls to `decay` of it every `decay_every` updates
    after the first `decay_after`; a placement that fails takes `failing_s`."""

    batch: int = 4
    learning_rate: float = 0.1
    decay: float = 0.95
    decay_every: int = 50
    decay_after: int = 400
    clip: float = 1.0
    kept: float = 0.9
    failing_s: float = 100.0

    def rate(self, update: int) -> float:
        """The learning rate of an update, counted from 0."""
        steps = max(0, update - self.decay_after) // self.decay_every
        return float(self.learning_rate * self.decay**steps)

    def signals(self, value_s: Floats) -> Floats:
        """Of values in seconds (N,), infinite where a placement fails."""
        found: Floats = np.sqrt(np.where(np.isfinite(value_s), value_s, self.failing_s))
        return found


def train_by_signal(
    environment: Environment,
    policy: Policy,
    recipe: SignalRecipe,
    budget: Budget,
    *,
    seed: int,
    tell: Tell = listening,
    start: Ints | None = None,
) -> Learned:
    """Train until the budget is spent; `start` (U,) is only the answer if nothing is better.

    Raises a ValueError where not one placement that was tried is possible.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(policy.parameters(), lr=recipe.learning_rate)
    found = Elite(1)
    if start is not None:
        found.add(start[None], environment.values_s(start[None]))
    average = math.sqrt(recipe.failing_s)
    evaluations, share = 0, 0.0
    curve: list[Point] = []
    while share < 1.0:
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate(len(curve))
        drawn = policy.draw(recipe.batch, generator)
        value_s = environment.values_s(drawn.devices)
        evaluations += len(value_s)
        found.add(drawn.devices, value_s)
        signal = recipe.signals(value_s)
        weight = torch.from_numpy(signal - average).to(drawn.log_chance.dtype)
        loss = (weight * drawn.log_chance).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(policy.parameters(), recipe.clip)
        optimiser.step()
        average = recipe.kept * average + (1.0 - recipe.kept) * float(signal.mean())
        possible = value_s[np.isfinite(value_s)]
        mean_s = float(possible.mean()) if possible.size else math.inf
        curve.append(Point(evaluations, found.best_s, mean_s, float(drawn.entropy.detach())))
        share = budget.spent(evaluations)
        batch = Batch(environment, drawn.devices, value_s, len(value_s), policy)
        if not tell(curve[-1], share, batch):
            break
    if math.isinf(found.best_s):
        raise none_possible(evaluations)
    trained = Trained(policy, environment)
    return Learned(found.best, found.best_s, evaluations, tuple(curve), trained)
