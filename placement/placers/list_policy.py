"""List policy: a list scheduler whose choice of device is learned, on other graphs and on this one.

After DOPPLER (ICLR 2026) and GiPH (MLSys 2023): units, chains of ops, are taken by falling upward
rank, and a small network scores the devices for each from finish times, transfers and loads as
ratios (`placement/learning/sequential.py`), so that one policy serves any graph and machine. The
bundled one was trained by evolution strategies on made-up graphs (`benchmarks/train_policies.py`).
The first batch of roll-outs is its answer without learning; further ones move its weights by what
they come to on this problem, and half of each batch are changes of the best placement so far.
Unlike both papers it needs neither imitation nor gradients, and orders units by rank alone.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.account import Trace
from placement.learning.budget import Budget
from placement.learning.checkpoint import (
    BUNDLED,
    load_policy,
    path_of,
    require_folder,
    save_policy,
)
from placement.learning.course import NUM_FEATURES, NUM_HIDDEN, NUM_WEIGHTS
from placement.learning.environment import Environment
from placement.learning.evolution import Evolution
from placement.learning.live import Live
from placement.learning.sequential import (
    course_of,
    rollouts,
    untrained,
)
from placement.learning.training import Batch, Elite, Learned, Point, Tell, changed, none_possible
from placement.placers._learned import Learner, Study, lines, searched
from placement.placers._policies import policy_setting, save_setting, written
from placement.placers.base import Report, setting

LEARNER = "list_policy"
SIZES = {"features": NUM_FEATURES, "hidden": NUM_HIDDEN}
SHAPES = {"weights": (NUM_WEIGHTS,)}


@dataclass(frozen=True, kw_only=True)
class ListPolicy(Learner):
    summary = "A learned list scheduler: trained on other graphs, it goes on learning on this one"
    paper = "DOPPLER, ICLR 2026, and GiPH, MLSys 2023 (after both)"
    needs = ("safetensors",)
    pseudo_code = lines(
        "roll out: op by op, on the device that a small network scores highest, with some chance",
        "move its weights towards those changes of them that did better",
    )

    max_iterations: int = setting(
        0,
        "Batches of placements; 1 applies the policy as it is, 0 takes as many as the time allows,"
        " or a few by size",
        low=0,
    )
    batch: int = setting(64, "Placements in a batch", low=4)
    proposed: float = setting(
        0.5, "Share of later batches that change the best placement so far", low=0.0, high=0.9
    )
    changed: float = setting(
        0.05, "Share of the units that such a change draws anew, at least one", low=0.0, high=1.0
    )
    sigma: float = setting(0.1, "How far weights are changed to see what comes of it", low=1e-6)
    learning_rate: float = setting(0.02, "How far weights move after a batch", low=0.0)
    policy: str = policy_setting(BUNDLED)
    save: str = save_setting()
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
        require_folder(self.save)
        evolution = Evolution(
            weights_of(self.policy),
            sigma=self.sigma,
            learning_rate=self.learning_rate,
            seed=self.seed,
        )
        learned = _learned(self, environment, evolution, budget, tell, start)
        if not self.save:
            return learned
        return written(learned, lambda: save_weights(Path(self.save), evolution.weights))


def weights_of(policy: str) -> Floats:
    """The weights (W,) that a setting names; ValueError says what is wrong with the file."""
    path = path_of(policy, LEARNER)
    if path is None:
        return untrained(0)
    return load_policy(path, LEARNER, SIZES, SHAPES)["weights"].astype(np.float64)


def save_weights(path: Path, weights: Floats) -> None:
    """Write weights (W,) as a policy."""
    save_policy(path, LEARNER, SIZES, {"weights": weights.astype(np.float32)})


def _learned(
    settings: ListPolicy,
    environment: Environment,
    evolution: Evolution,
    budget: Budget,
    tell: Tell,
    start: Ints | None,
) -> Learned:
    """The best placement of roll-outs and changes until the budget is spent."""
    course, chance = course_of(environment), np.random.default_rng(settings.seed)
    found = Elite(1)
    if start is not None:
        found.add(start[None], environment.values_s(start[None]))
    evaluations, curve, share = 0, list[Point](), 0.0
    while share < 1.0:
        num_proposed = int(settings.proposed * settings.batch) if curve and found.num else 0
        if not curve:
            own = rollouts(course, settings.batch, settings.seed, settings.executor)
            tried = devices = own.devices(evolution.weights)
        else:
            num_pairs = max(1, (settings.batch - num_proposed) // 2)
            pairs = rollouts(course, num_pairs, int(chance.integers(1 << 31)), settings.executor)
            tried = devices = pairs.repeated(2).devices(evolution.asked(num_pairs))
        if num_proposed:
            proposals = changed(environment, found.best, num_proposed, settings.changed, chance)
            tried = np.concatenate([devices, proposals])
        value_s = environment.values_s(tried)
        own_s = value_s[: len(devices)]
        if curve:
            evolution.told(own_s)
        evaluations += len(tried)
        found.add(tried, value_s)
        possible = own_s[np.isfinite(own_s)]
        mean_s = float(possible.mean()) if possible.size else np.inf
        entropy = _entropy(devices, environment.num_devices)
        curve.append(Point(evaluations, found.best_s, mean_s, entropy))
        share = budget.spent(evaluations)
        if not tell(curve[-1], share, Batch(environment, tried, value_s, len(devices))):
            break
    if not found.num:
        raise none_possible(evaluations)
    return Learned(found.best, found.best_s, evaluations, tuple(curve))


def _entropy(devices: Ints, num_devices: int) -> float:
    """Mean entropy of the units' devices over some placements (N, U)."""
    shares = np.stack([(devices == d).mean(axis=0) for d in range(num_devices)])
    logs = np.log(shares, where=shares > 0, out=np.zeros(shares.shape))
    return float(-(shares * logs).sum(axis=0).mean())


PLACER = ListPolicy
