"""Independent annealing chains side by side, within a budget of time or of steps."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from placement.core.events import never
from placement.core.graph import Ints
from placement.parallel.calls import Call
from placement.parallel.executor import HERE, Executor, Job, Stop

R = TypeVar("R")
# Hears the best value, the bound and the share of the budget; returns False to end the search.
Tell = Callable[[float, float, float], bool]
# Chains are at work from one share of the budget to the next.
NUM_LEGS = 16
ASK_EVERY_S = 0.2


def silent(best_s: float, bound_s: float, share: float) -> bool:
    """The listener that hears and does nothing."""
    return True


@dataclass(frozen=True)
class Budget:
    """When a search ends: after some seconds, or after some steps of each chain (0: no limit).

    With steps alone the answer depends on nothing but input and seed.
    """

    time_limit_s: float | None
    max_iterations: int
    clock: Callable[[], float] = time.monotonic

    def spent(self, start_s: float, iterations: int) -> float:
        """The share of the budget that is used up, 1 at its end."""
        share = 0.0
        if self.max_iterations:
            share = iterations / self.max_iterations
        if self.time_limit_s is not None:
            share = max(share, (self.clock() - start_s) / max(self.time_limit_s, 1e-9))
        return min(1.0, share)


@dataclass(eq=False)
class Chain(Generic[R]):
    """What one chain has found, and where it is: all that it goes on from.

    The best value and the devices or slots that give it, the present ones, the round of its
    annealing that it is in, the seed that comes next, and how many steps it has made.
    """

    best_s: float
    best: Ints
    now: Ints
    round: R
    seed: int = 0
    iterations: int = 0

    def become(self, other: "Chain[R]") -> None:
        """Go on from where this chain has come elsewhere."""
        vars(self).update(vars(other))


@dataclass(frozen=True, kw_only=True)
class Leg:
    """A part of a search, up to a share of its budget; it ends before where a value is proven."""

    until: float
    max_iterations: int
    time_limit_s: float | None
    proven_s: float


class Annealing(ABC, Generic[R]):
    """The steps of chains of one kind: in place, and as a call."""

    @abstractmethod
    def step(self, chain: Chain[R], share: float) -> int:
        """Work at a share of the budget; how many steps that were."""

    @abstractmethod
    def going(self, chain: Chain[R], leg: Leg) -> Call:
        """A leg as a call that answers with the chain as it is then."""

    def go(self, chain: Chain[R], leg: Leg, seconds: float, stop: Stop = never) -> Chain[R]:
        """A leg in place, which has so many seconds; the chain itself."""
        begun_s = 0.0
        if leg.time_limit_s is not None:
            begun_s = time.monotonic() + seconds - leg.until * leg.time_limit_s
        budget = Budget(leg.time_limit_s, leg.max_iterations)
        while not stop() and chain.best_s > leg.proven_s:
            share = budget.spent(begun_s, chain.iterations)
            if share >= leg.until:
                break
            chain.iterations += self.step(chain, share)
        return chain


def run_chains(
    chains: Sequence[Chain[R]],
    annealing: Annealing[R],
    budget: Budget,
    tell: Tell,
    bound_s: float,
    executor: Executor = HERE,
) -> Chain[R]:
    """Let each chain work until the budget is spent, the listener says stop, or the bound is met.

    A chain that meets the bound ends, and ends the others only if time is the budget: steps must
    give the same answer every time. The best chain is the answer, the first among equals.
    """
    start_s = budget.clock()
    proven_s = bound_s * (1.0 + 1e-9)
    limit_s = math.inf if budget.time_limit_s is None else budget.time_limit_s
    stopped = False

    def going_on() -> bool:
        nonlocal stopped
        best_s = min(chain.best_s for chain in chains)
        more = tell(best_s, bound_s, budget.spent(start_s, 0))
        stopped |= not more or (budget.max_iterations == 0 and best_s <= proven_s)
        return not stopped

    for number in range(1, NUM_LEGS + 1):
        until = number / NUM_LEGS
        leg = Leg(
            until=until,
            max_iterations=budget.max_iterations,
            time_limit_s=budget.time_limit_s,
            proven_s=proven_s,
        )
        until_s = start_s + until * limit_s
        jobs = [
            Job(
                here=partial(_go, annealing, chain, leg, until_s),
                away=partial(annealing.going, chain, leg),
                back=chain.become,
                until_s=until_s,
            )
            for chain in chains
            if chain.best_s > proven_s
        ]
        executor.each(jobs, going_on, ASK_EVERY_S)
        if not going_on():
            break
    return min(chains, key=lambda chain: chain.best_s)


def _go(annealing: Annealing[R], chain: Chain[R], leg: Leg, until_s: float, stop: Stop) -> None:
    annealing.go(chain, leg, until_s - time.monotonic(), stop)
