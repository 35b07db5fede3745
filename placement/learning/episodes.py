"""Episodes: units visited one by one, each moved or left, and the gain of each step learned from.

Addanki et al., "Placeto", NeurIPS 2019: the reward of a step is what the running time loses by it,
its baseline the mean return of that step over the last ten rounds, and the policy sees the whole
placement as it stands. Several episodes run side by side.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.budget import Budget
from placement.learning.carrying import Carried, devices
from placement.learning.course import Course
from placement.learning.environment import Bools, Environment
from placement.learning.sequential import course_of
from placement.learning.training import (
    Batch,
    Elite,
    Learned,
    Point,
    Tell,
    at_random,
    none_possible,
    one_torch_thread,
)

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

    from placement.learning.networks.placeto import Placeto

# Rounds that a baseline looks back, what no placement costs more than, and numbers (states times
# units) that a part of an update may have, for memory.
LOOK_BACK, MOST_COST = 10, 10.0
MOST_AT_ONCE = 60_000
# How much longer than the last one an update may take.
SPARE = 1.5


@dataclass(frozen=True, kw_only=True)
class Schooling:
    """How a policy of episodes is trained.

    With `from_best` episodes begin at the best placement so far, else at random ones. Rewards are
    differences of logarithms with `logarithms`, else of running times over the first one; returns
    discount what comes later by `discount`. Learning rate and entropy fall over the budget, from
    `learning_rate` to a tenth and from `entropy` to 0. Advantages are `scaled` by their deviation.
    """

    batch: int
    width: int
    stay: float
    from_best: bool
    logarithms: bool
    scaled: bool
    averaged: bool
    discount: float
    learning_rate: float
    entropy: float
    clip: float = 1.25


class Step(NamedTuple):
    """One decision of every episode (B): states (B, U, F), unit, present devices, mask (B, D),
    choices (B,)."""

    states: Tensor
    unit: int
    present: Tensor
    mask: Tensor
    chosen: Tensor


class Episodes:
    """Placements that change step by step (B, U), and what they cost."""

    def __init__(self, environment: Environment, course: Course, devices: Ints, cost: _Cost):
        self.environment, self.course, self.cost = environment, course, cost
        self.devices = devices.copy()
        self.costs = cost(environment.values_s(devices))
        made_bytes = np.zeros(course.order.size)
        made = course.maker >= 0
        np.add.at(made_bytes, course.maker[made], course.net_bytes[made])
        self._static = np.stack([_over_mean(course.mean_s), _over_mean(made_bytes)], axis=1)

    def states(self, place: int) -> Floats:
        """What the policy sees before the decision on a place in the order, (B, U, 5 + D):
        compute, output, done, current, start beside the current one's, device."""
        from placement.learning.compiled.sequential import start_each

        num, num_units = self.devices.shape
        start_s = np.empty((num, num_units))
        start_each(self.course, self.devices, start_s)
        unit = self.course.order[place]
        found = np.zeros((num, num_units, 5 + self.environment.num_devices))
        found[:, :, :2] = self._static
        found[:, self.course.order[:place], 2] = 1.0
        found[:, unit, 3] = 1.0
        found[:, :, 4] = (start_s - start_s[:, unit : unit + 1]) / self.course.whole_s
        np.put_along_axis(found[:, :, 5:], self.devices[:, :, None], 1.0, axis=2)
        return found

    def mask(self, unit: int) -> Bools:
        """Where a unit may go in each episode (B, D); where it is it may stay."""
        size_bytes, limit_bytes = self.environment.size_bytes, self.environment.limit_bytes
        may = np.repeat(self.environment.allowed[unit][None], len(self.devices), axis=0)
        if self.environment.is_tight:
            for d in np.flatnonzero(np.isfinite(limit_bytes)):
                held = (self.devices == d) @ size_bytes
                may[:, d] &= held + size_bytes[unit] <= limit_bytes[d]
        may[np.arange(len(may)), self.devices[:, unit]] = True
        return may

    def move(self, unit: int, chosen: Ints, found: Elite) -> tuple[Floats, int]:
        """Put a unit on the devices chosen (B,); what each episode gains by it, and how many
        placements were valued for that."""
        moved = np.flatnonzero(self.devices[:, unit] != chosen)
        gains = np.zeros(chosen.size)
        if moved.size:
            self.devices[moved, unit] = chosen[moved]
            value_s = self.environment.values_s(self.devices[moved])
            found.add(self.devices[moved], value_s)
            costs = self.cost(value_s)
            gains[moved] = self.costs[moved] - costs
            self.costs[moved] = costs
        return gains, int(moved.size)


@dataclass
class _Cost:
    """Seconds as costs near 1, or logarithms near 0, bounded where a placement may not be."""

    first_s: float
    logarithms: bool

    def __call__(self, value_s: Floats) -> Floats:
        over = np.clip(value_s / self.first_s, 1e-9, MOST_COST)
        found: Floats = np.log(over) if self.logarithms else over
        return found


@one_torch_thread()
def learn(
    environment: Environment,
    schooling: Schooling,
    budget: Budget,
    *,
    seed: int,
    max_rounds: int,
    tell: Tell,
    start: Ints | None,
    begin_from: Callable[[Carried], str] = lambda carried: "",
) -> Learned:
    """Run rounds of episodes and learn from each, until the budget or the rounds are spent.

    `begin_from` may let the network begin from a policy, and says what is to be said of that.
    """
    import torch

    from placement.learning.networks.placeto import Placeto, relations_of

    course = course_of(environment)
    chance, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    found = Elite(1)
    evaluations = _begin(environment, found, start, schooling, chance)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Placeto(
            relations_of(course, averaged=schooling.averaged),
            5 + environment.num_devices,
            environment.num_devices,
            schooling.width,
            schooling.stay,
        )
    carried = network.carried(devices(environment))
    remark = begin_from(carried)
    optimiser = torch.optim.Adam(network.parameters(), lr=schooling.learning_rate)
    last: deque[Floats] = deque(maxlen=LOOK_BACK)
    curve, share, update_share, num_rounds = list[Point](), 0.0, 0.0, 0
    while share + update_share < 1.0:
        cost = _Cost(found.best_s if math.isfinite(found.best_s) else 1.0, schooling.logarithms)
        begin = _starts(environment, found, schooling, chance)
        episodes = Episodes(environment, course, begin, cost)
        steps, gains, begun_share = list[Step](), list[Floats](), budget.spent(evaluations)
        entropies = []
        for place, unit in enumerate(course.order.tolist()):
            states = torch.from_numpy(episodes.states(place)).to(torch.float32)
            present = torch.from_numpy(episodes.devices[:, unit].copy())
            mask = torch.from_numpy(episodes.mask(unit))
            with torch.no_grad():
                units = torch.full((schooling.batch,), unit)
                logits = network(states, units, present).masked_fill(~mask, -1e9)
                shares = torch.softmax(logits, dim=1)
                chosen = torch.multinomial(shares, 1, generator=generator)[:, 0]
                entropies.append(float(-(shares * torch.log(shares + 1e-20)).sum(1).mean()))
            gain, num_valued = episodes.move(unit, chosen.numpy(), found)
            evaluations += num_valued
            steps.append(Step(states, unit, present, mask, chosen))
            gains.append(gain)
            share = budget.spent(evaluations)
            if share >= 1.0:
                break
        num_rounds += 1
        # The first update takes about as long as the decisions before it.
        if share + (update_share or share - begun_share) < 1.0:
            returns = _returns(np.stack(gains), schooling.discount)
            last.append(returns.mean(axis=1))
            weights = returns - np.mean(last, axis=0)[:, None]
            if schooling.scaled:
                weights = weights / (weights.std() + 1e-8)
            for group in optimiser.param_groups:
                group["lr"] = schooling.learning_rate * (1.0 - 0.9 * share)
            _update(network, optimiser, steps, weights, schooling, 1.0 - share)
            after = budget.spent(evaluations)
            update_share, share = SPARE * (after - share), max(after, num_rounds / max_rounds)
        over = np.exp(episodes.costs) if schooling.logarithms else episodes.costs
        mean_s = cost.first_s * float(np.mean(over))
        curve.append(Point(evaluations, found.best_s, mean_s, float(np.mean(entropies))))
        ends = Batch(environment, episodes.devices, cost.first_s * over, len(over))
        if not tell(curve[-1], min(1.0, share), ends):
            break
    if not found.num:
        raise none_possible(evaluations)
    return Learned(
        found.best, found.best_s, evaluations, tuple(curve), carried=carried, remark=remark
    )


def _begin(
    environment: Environment,
    found: Elite,
    start: Ints | None,
    schooling: Schooling,
    chance: np.random.Generator,
) -> int:
    """Value some placements to begin from; how many. With `from_best` all on one device, too."""
    rows = [at_random(environment, schooling.batch, chance)]
    if start is not None:
        rows.append(start[None])
    if schooling.from_best:
        fastest = np.where(environment.allowed, environment.unit_s, np.inf).argmin(axis=1)
        rows += [
            np.where(environment.allowed[:, d], d, fastest)[None]
            for d in range(environment.num_devices)
        ]
    devices = np.concatenate(rows)
    found.add(devices, environment.values_s(devices))
    return len(devices)


def _starts(
    environment: Environment, found: Elite, schooling: Schooling, chance: np.random.Generator
) -> Ints:
    if schooling.from_best and found.num:
        return np.repeat(found.best[None], schooling.batch, axis=0)
    return at_random(environment, schooling.batch, chance)


def _returns(gains: Floats, discount: float) -> Floats:
    """What each step of each episode (T, B) brings from then on, the later the less."""
    found = gains.copy()
    for step in range(len(gains) - 2, -1, -1):
        found[step] += discount * found[step + 1]
    return found


def _update(
    network: Placeto,
    optimiser: Optimizer,
    steps: list[Step],
    weights: Floats,
    schooling: Schooling,
    left: float,
) -> None:
    """One step along the policy gradient of all decisions, whose states are computed anew."""
    import torch

    optimiser.zero_grad()
    at_once = max(1, MOST_AT_ONCE // steps[0].states.shape[0] // steps[0].states.shape[1])
    for first in range(0, len(steps), at_once):
        some = steps[first : first + at_once]
        units = torch.tensor([step.unit for step in some]).repeat_interleave(schooling.batch)
        logits = network(
            torch.cat([step.states for step in some]), units, torch.cat([s.present for s in some])
        )
        logs = torch.log_softmax(
            logits.masked_fill(~torch.cat([s.mask for s in some]), -1e9), dim=1
        )
        chosen = logs.gather(1, torch.cat([s.chosen for s in some])[:, None])[:, 0]
        weight = torch.from_numpy(weights[first : first + at_once].reshape(-1)).to(logs.dtype)
        entropy = -(logs.exp() * logs).sum(dim=1)
        loss = -(weight * chosen + schooling.entropy * left * entropy).sum() / weights.size
        loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(network.parameters(), schooling.clip)
    optimiser.step()


def _over_mean(values: Floats) -> Floats:
    found: Floats = values / max(1e-30, float(values.mean()))
    return found
