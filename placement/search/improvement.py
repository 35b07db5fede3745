"""Improving placements by chains of moves, side by side on all cores, here or elsewhere."""

import math
import time
from collections.abc import Sequence
from functools import partial

from placement.core.problem import Problem
from placement.parallel.executor import HERE, Executor, Job, Stop
from placement.search.chain import Chain, Leg
from placement.search.progress import Progress, Report

# A search that nobody limits spends about this many visits of kernels and tensors on each chain.
DEFAULT_VISITS = 40_000_000
MOVES_PER_CHOICE = 100
# Turns of a search: after each one other orders are tried, and whoever waits is told.
NUM_TURNS = 16
# Chains that search together go on from the best of them, in the second half, once they are behind
# by this share.
TOGETHER_FROM, BEHIND = 0.5, 0.002


def default_moves(problem: Problem) -> int:
    """Moves of a chain that nobody limits: fewer on graphs where each costs more."""
    visits = len(problem.kernels.ops) + problem.kernels.arrays.consumers.size
    choices = problem.num_units * (problem.num_devices - 1)
    return max(50, min(DEFAULT_VISITS // max(1, visits), MOVES_PER_CHOICE * max(1, choices)))


def improve(
    problem: Problem,
    chains: Sequence[Chain],
    report: Report,
    *,
    max_iterations: int = 0,
    time_limit_s: float | None = None,
    together: bool = False,
    executor: Executor = HERE,
) -> None:
    """Advance all chains until their moves or their time are used up, or `report` says stop.

    Chains that search `together` leave what has come to less for the best of all. With
    `max_iterations` (or without any limit) the answer depends on nothing but the seeds; a time
    limit may cut it.
    """
    if max_iterations < 0 or (time_limit_s is not None and time_limit_s < 0):
        raise ValueError(
            f"A search cannot make {max_iterations} moves in {time_limit_s} s; use 0 or more."
        )
    timed = time_limit_s is not None and not max_iterations
    num_moves = max_iterations or default_moves(problem)
    begun_s = time.monotonic()
    limit_s = math.inf if time_limit_s is None else max(1e-9, time_limit_s)
    best_s = _best_s(chains)
    # Between turns it is asked about a value that it has said yes to: no clock decides the answer.
    if not report(Progress(best_s=best_s, step=0, of=NUM_TURNS)):
        return
    for turn in range(NUM_TURNS):
        since, until = turn / NUM_TURNS, (turn + 1) / NUM_TURNS
        moves = None if timed else round(until * num_moves) - round(since * num_moves)
        leg = Leg(num_moves=moves, since=since, until=until, limit_s=limit_s, turns=until < 1)
        until_s = begun_s + (until if timed else 1.0) * limit_s
        asked = _Asked(partial(report, Progress(best_s=best_s, step=turn, of=NUM_TURNS)))
        executor.each([_job(chain, leg, until_s) for chain in chains], asked)
        if together and TOGETHER_FROM <= until < 1:
            gather(chains)
        best_s = _best_s(chains)
        going_on = report(Progress(best_s=best_s, step=turn + 1, of=NUM_TURNS))
        if not going_on or asked.said_no or time.monotonic() - begun_s > limit_s:
            return


def _job(chain: Chain, leg: Leg, until_s: float) -> Job:
    """A leg of a chain, which changes it here and comes back as its state from elsewhere."""

    def here(stop: Stop) -> None:
        chain.go(leg, max(0.0, until_s - time.monotonic()), stop)

    return Job(here=here, away=partial(chain.going, leg), back=chain.resume, until_s=until_s)


class _Asked:
    """Asks somebody whether to go on, and keeps a no."""

    def __init__(self, ask: Stop) -> None:
        self._ask, self.said_no = ask, False

    def __call__(self) -> bool:
        self.said_no |= not self._ask()
        return not self.said_no


def gather(chains: Sequence[Chain]) -> None:
    """Let chains that are behind go on from the best one; the first of equals leads."""
    leader = min(chains, key=lambda chain: chain.best_s)
    for chain in chains:
        if chain.best_s > leader.best_s * (1 + BEHIND):
            chain.go_on_from(leader)


def _best_s(chains: Sequence[Chain]) -> float:
    return min((chain.value_s() for chain in chains), default=math.inf)
