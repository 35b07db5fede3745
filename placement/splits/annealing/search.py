"""Independent annealing chains side by side, within a budget of time or of steps."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass

from placement.core.graph import Ints

# Hears the best value, the bound and the share of the budget; returns False to end the search.
Tell = Callable[[float, float, float], bool]


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


@dataclass
class Chain:
    """What one chain has found: its best value and the devices or slots that give it."""

    best_s: float
    best: Ints


# A chain's work at a share of the budget: (share, number of the call) -> steps done.
Work = Callable[[float, int], int]


def run_chains(
    chains: list[Chain], works: list[Work], budget: Budget, tell: Tell, bound_s: float
) -> Chain:
    """Let each chain work until the budget is spent, the listener says stop, or the bound is met.

    A chain that meets the bound ends, and ends the others only if time is the budget: steps must
    give the same answer every time. The best chain is the answer, the first among equals.
    """
    start_s = budget.clock()
    stop = threading.Event()
    proven_s = bound_s * (1.0 + 1e-9)

    def run(chain: Chain, work: Work) -> None:
        iterations = number = 0
        while not stop.is_set() and chain.best_s > proven_s:
            share = budget.spent(start_s, iterations)
            if share >= 1.0:
                break
            iterations += work(share, number)
            number += 1

    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(run, *both) for both in zip(chains, works, strict=True)]
        left = set(running)
        while True:
            _, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
            best_s = min(chain.best_s for chain in chains)
            more = tell(best_s, bound_s, budget.spent(start_s, 0))
            if not more or (budget.max_iterations == 0 and best_s <= proven_s):
                stop.set()
            if not left:
                break
        for future in running:
            future.result()
    return min(chains, key=lambda chain: chain.best_s)
