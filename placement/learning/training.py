"""Training by policy gradient on batches of simulated placements.

Half of a batch is drawn from the policy, the other half are changes of the best placement so far
(the incumbent). Advantages are of logarithms of values, against the mean of the policy's own half;
the best placements found (the elite) are imitated besides. Williams, "Simple statistical
gradient-following algorithms", 1992; what the recipe adds stands in each placer's header.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.budget import Budget
from placement.learning.carrying import Carried
from placement.learning.environment import Environment
from placement.learning.sampling import draw

if TYPE_CHECKING:
    import torch

# The logit of the device on which a unit stays, where there is room: e^40 to 1 that it does.
STAY = 40.0


class Drawn(NamedTuple):
    """Placements (N, U) of a policy, the logarithm of the chance of each (N,), which has a
    gradient, and the mean entropy of a decision."""

    devices: Ints
    log_chance: torch.Tensor
    entropy: torch.Tensor


class Policy(Protocol):
    """What is trained: it draws placements and says how likely given ones are."""

    def parameters(self) -> Iterable[torch.nn.Parameter]: ...

    def draw(self, num: int, generator: torch.Generator) -> Drawn:
        """Placements by chance; a policy computes its outputs once for all of them."""
        ...

    def log_chance(self, devices: Ints) -> torch.Tensor | None:
        """Of given placements (N, U), after a `draw` with the same weights; None where a policy
        cannot tell, which then imitates nothing."""
        ...

    def groups(self) -> Ints | None:
        """The group of each unit (U,) at the last draw; None where the policy forms none."""
        ...

    def chances(self) -> Floats | None:
        """Of each unit on each device (U, D) at the last draw; None where a policy cannot tell."""
        ...


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a policy is trained.

    `proposed` is the share of a batch that are changes of the incumbent, each of which draws a
    share `changed` of its units anew; `elite` the number of placements that are imitated, with the
    weight `imitation`. The weight of the entropy falls from `entropy` to 0. `weigh` makes of the
    values of the policy's own placements how much likelier each is to become, (N,) both; without it
    they are `advantages`.
    """

    batch: int = 128
    proposed: float = 0.5
    changed: float = 0.05
    elite: int = 16
    imitation: float = 0.5
    entropy: float = 0.02
    learning_rate: float = 3e-3
    clip: float = 1.0
    weigh: Callable[[Floats], Floats] | None = None


class Point(NamedTuple):
    """The state of training after a batch: seconds of the best so far and of the policy's mean."""

    evaluations: int
    best_s: float
    mean_s: float
    entropy: float


class Trained(NamedTuple):
    """A policy and the environment for whose units it draws."""

    policy: Policy
    environment: Environment


@dataclass(frozen=True, eq=False)
class Learned:
    """The best placement that training met (U,), its seconds, and the curve.

    `trained` is what was trained, and for what, where it can go on from there. `environment` is the
    one in which it takes these seconds, where it is not the one that was given; `carried` is what
    of the network goes to a file, and `remark` what is to be said of the file that it began from.
    """

    devices: Ints
    value_s: float
    evaluations: int
    curve: tuple[Point, ...]
    trained: Trained | None = None
    environment: Environment | None = None
    carried: Carried | None = None
    remark: str = ""


class Batch(NamedTuple):
    """Placements (N, U) of an environment that were tried, and their seconds (N,); the policy, if
    there is one, drew the first `num_own`."""

    environment: Environment
    devices: Ints
    value_s: Floats
    num_own: int
    policy: Policy | None = None

    def chances(self) -> Floats | None:
        """The chances with which the policy drew, None where nobody can tell."""
        return None if self.policy is None else self.policy.chances()


# Batches after which an environment is made to suit the best placement.
SUIT_EVERY = 16
# Hears a point, the share of the budget and the batch; False ends it with the best so far.
Tell = Callable[[Point, float, Batch], bool]
# Gives as many changes (N, U) of a placement (U,) as wanted.
Propose = Callable[[Ints, int, np.random.Generator], Ints]


def listening(point: Point, share: float, batch: Batch) -> bool:
    """Hears all of it."""
    return True


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Small networks compute on one thread, which is faster than handing their work around."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_torch_thread()
def train(
    environment: Environment,
    policy: Policy,
    recipe: Recipe,
    budget: Budget,
    *,
    seed: int,
    tell: Tell = listening,
    start: Ints | None = None,
    propose: Propose | None = None,
) -> Learned:
    """Train until the budget is spent; `start` (U,) is an incumbent to begin from.

    Changes of the incumbent are those of `propose`, by default of `changed`. Every now and then
    the environment is made to suit the incumbent. Raises a ValueError where not one placement that
    was tried is possible.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    chance = np.random.default_rng(seed)
    optimiser = torch.optim.Adam(policy.parameters(), lr=recipe.learning_rate)
    found = Elite(recipe.elite)
    if start is not None:
        found.add(start[None], environment.values_s(start[None]))
    evaluations, share = 0, 0.0
    curve: list[Point] = []
    suited_s, incumbent = found.best_s, found.best
    while share < 1.0:
        if len(curve) % SUIT_EVERY == 0 and found.best_s < suited_s:
            environment = environment.suited(incumbent)
            found.add(incumbent[None], environment.values_s(incumbent[None]))
            suited_s = found.best_s
        has_incumbent = math.isfinite(found.best_s)
        num_proposed = int(recipe.proposed * recipe.batch) if has_incumbent else 0
        drawn = policy.draw(recipe.batch - num_proposed, generator)
        devices = drawn.devices
        if num_proposed:
            if propose is not None:
                proposals = propose(incumbent, num_proposed, chance)
            else:
                proposals = changed(environment, incumbent, num_proposed, recipe.changed, chance)
            devices = np.concatenate([devices, proposals])
        value_s = environment.values_s(devices)
        evaluations += len(devices)
        found.add(devices, value_s)
        incumbent = newest(incumbent, devices, value_s, found)
        own_s = value_s[: len(drawn.devices)]
        weight = torch.from_numpy((recipe.weigh or advantages)(own_s)).to(drawn.log_chance.dtype)
        loss = -(weight * drawn.log_chance).mean() / environment.num_units
        loss = loss - recipe.entropy * (1.0 - share) * drawn.entropy
        if recipe.imitation and found.num:
            likely = policy.log_chance(found.devices)
            if likely is not None:
                loss = loss - recipe.imitation * likely.mean() / environment.num_units
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(policy.parameters(), recipe.clip)
        optimiser.step()
        possible = own_s[np.isfinite(own_s)]
        mean_s = float(possible.mean()) if possible.size else math.inf
        curve.append(Point(evaluations, found.best_s, mean_s, float(drawn.entropy.detach())))
        share = budget.spent(evaluations)
        if not tell(curve[-1], share, Batch(environment, devices, value_s, len(own_s), policy)):
            break
    if math.isinf(found.best_s):
        raise none_possible(evaluations)
    trained = Trained(policy, environment)
    return Learned(found.best, found.best_s, evaluations, tuple(curve), trained, environment)


def sampled(
    environment: Environment,
    draw: Callable[[Ints | None], Ints],
    budget: Budget,
    *,
    tell: Tell = listening,
    start: Ints | None = None,
) -> Learned:
    """The best of batches (N, U) that `draw` makes of the best placement so far, without a policy.

    Of equals the newer is the best, so that a walk over a plateau goes on, and as in `train` the
    environment is made to suit it. Raises a ValueError where not one placement that was tried is
    possible.
    """
    best, best_s = start, math.inf
    if start is not None:
        best_s = float(environment.values_s(start[None])[0])
    evaluations, share, suited_s = 0, 0.0, best_s
    curve: list[Point] = []
    while share < 1.0:
        if best is not None and len(curve) % SUIT_EVERY == 0 and best_s < suited_s:
            environment = environment.suited(best)
            best_s = suited_s = min(best_s, float(environment.values_s(best[None])[0]))
        devices = draw(best)
        value_s = environment.values_s(devices)
        evaluations += len(devices)
        first = int(value_s.argmin())
        if value_s[first] <= best_s and np.isfinite(value_s[first]):
            best, best_s = devices[first], float(value_s[first])
        possible = value_s[np.isfinite(value_s)]
        mean_s = float(possible.mean()) if possible.size else math.inf
        curve.append(Point(evaluations, best_s, mean_s, 0.0))
        share = budget.spent(evaluations)
        if not tell(curve[-1], share, Batch(environment, devices, value_s, len(devices))):
            break
    if best is None:
        raise none_possible(evaluations)
    return Learned(best, best_s, evaluations, tuple(curve), environment=environment)


def none_possible(evaluations: int) -> ValueError:
    """The error of a search that tried only what may not be."""
    return ValueError(
        f"None of the {evaluations} placements that were tried is possible; give the devices more"
        " memory, remove pins or take another placer."
    )


def newest(incumbent: Ints, devices: Ints, value_s: Floats, found: Elite) -> Ints:
    """The first of new placements (N, U) that is as good as the best, else the incumbent (U,): so a
    walk over a plateau goes on."""
    first = int(value_s.argmin())
    as_good = math.isfinite(found.best_s) and value_s[first] <= found.best_s
    return devices[first] if as_good else incumbent


def advantages(value_s: Floats) -> Floats:
    """How much better than their mean placements (N,) are, in standard deviations of log values.

    Those that cannot be count as the worst possible ones, and a little worse.
    """
    possible = np.isfinite(value_s)
    if not possible.any():
        return np.zeros(value_s.size)
    logs = np.log(np.maximum(value_s, 1e-30), where=possible, out=np.zeros(value_s.size))
    logs[~possible] = logs[possible].max() + max(1e-3, float(logs[possible].std()))
    spread = float(logs.std())
    if spread < 1e-12:
        return np.zeros(value_s.size)
    better: Floats = (logs.mean() - logs) / spread
    return better


def changed(
    environment: Environment, devices: Ints, num: int, share: float, chance: np.random.Generator
) -> Ints:
    """A placement (U,) as many times as wanted, in each a share of the units drawn anew (N, U).

    Where memory is short others move too, if they have to make room.
    """
    if not num:
        return np.zeros((0, environment.num_units), dtype=np.int64)
    rows = np.repeat(devices[None], num, axis=0)
    moves = chance.random(rows.shape) < share
    one = chance.integers(environment.num_units, size=num)
    moves[np.arange(num), one] |= ~moves.any(axis=1)
    if environment.is_tight:
        logits = np.zeros((*rows.shape, environment.num_devices))
        np.put_along_axis(logits, rows[:, :, None], np.where(moves, 0.0, STAY)[:, :, None], axis=2)
        return draw(environment, logits, chance.random(rows.shape)).devices
    rows[moves] = at_random(environment, num, chance)[moves]
    return rows


def at_random(environment: Environment, num: int, chance: np.random.Generator) -> Ints:
    """Placements (N, U), each unit on any device that may hold it, and has room for it."""
    uniforms = chance.random((num, environment.num_units))
    if environment.is_tight:
        return draw(environment, np.zeros(environment.allowed.shape), uniforms).devices
    of_unit = np.argsort(~environment.allowed, axis=1, kind="stable")
    drawn = (uniforms * environment.allowed.sum(axis=1)).astype(np.int64)
    found: Ints = of_unit[np.arange(environment.num_units), drawn]
    return found


class Elite:
    """The best different placements so far, the best first."""

    def __init__(self, size: int) -> None:
        self._size = max(1, size)
        self.devices: Ints = np.zeros((0, 0), dtype=np.int64)
        self._value_s: Floats = np.zeros(0)

    @property
    def num(self) -> int:
        return len(self.devices)

    @property
    def best_s(self) -> float:
        return float(self._value_s[0]) if self.num else math.inf

    @property
    def best(self) -> Ints:
        """The best placement (U,); any row of none where there is no possible one."""
        found: Ints = self.devices[0] if self.num else np.zeros(0, dtype=np.int64)
        return found

    def add(self, devices: Ints, value_s: Floats) -> None:
        """Take in what is better than the worst held; of equals the older stays."""
        worst_s = float(self._value_s[-1]) if self.num == self._size else math.inf
        better = np.flatnonzero(value_s < worst_s)
        if not better.size:
            return
        if self.num:
            devices = np.concatenate([self.devices, devices[better]])
            value_s = np.concatenate([self._value_s, value_s[better]])
        else:
            devices, value_s = devices[better], value_s[better]
        order = np.argsort(value_s, kind="stable")
        _, first = np.unique(devices[order], axis=0, return_index=True)
        kept = order[np.sort(first)][: self._size]
        self.devices, self._value_s = devices[kept], value_s[kept]
