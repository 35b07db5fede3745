"""Improving placements by chains of moves, side by side on all cores."""

import math
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from placement.core.problem import Problem
from placement.search.chain import Chain
from placement.search.progress import Progress, Report

# A search that nobody limits spends about this many visits of kernels and tensors on each chain.
DEFAULT_VISITS = 40_000_000
MOVES_PER_CHOICE = 100
# Turns of a search: after each one other orders are tried, and whoever waits is told.
NUM_TURNS = 16
# Chains that search together go on from the best of them, in the second half, once they are behind
# by this share.
TOGETHER_FROM, BEHIND = 0.5, 0.002
# In between whoever waits is asked whether to go on.
ASK_EVERY_S = 0.5


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    begun_s = time.perf_counter()
    limit_s = math.inf if time_limit_s is None else max(1e-9, time_limit_s)
    best_s, stopped = _best_s(chains), threading.Event()
    # Between turns it is asked about a value that it has said yes to: no clock decides the answer.
    if not report(Progress(best_s=best_s, step=0, of=NUM_TURNS)):
        return
    with ThreadPoolExecutor(max(1, len(chains))) as pool:
        for turn in range(NUM_TURNS):
            since, until = turn / NUM_TURNS, (turn + 1) / NUM_TURNS

            def work(chain: Chain, since: float = since, until: float = until) -> None:
                if timed:
                    chain.advance_until(begun_s, limit_s, until, stopped.is_set)
                else:
                    moves = round(until * num_moves) - round(since * num_moves)
                    chain.advance_by(moves, since, until, begun_s + limit_s, stopped.is_set)
                if until < 1 and not stopped.is_set():
                    chain.turn()

            works = [pool.submit(work, chain) for chain in chains]
            while wait(works, ASK_EVERY_S).not_done:
                if not report(Progress(best_s=best_s, step=turn, of=NUM_TURNS)):
                    stopped.set()
            for done in works:
                done.result()
            if together and TOGETHER_FROM <= until < 1:
                gather(chains)
            best_s = _best_s(chains)
            going_on = report(Progress(best_s=best_s, step=turn + 1, of=NUM_TURNS))
            if not going_on or stopped.is_set() or time.perf_counter() - begun_s > limit_s:
                return


def gather(chains: Sequence[Chain]) -> None:
    """Let chains that are behind go on from the best one; the first of equals leads."""
    leader = min(chains, key=lambda chain: chain.best_s)
    for chain in chains:
        if chain.best_s > leader.best_s * (1 + BEHIND):
            chain.go_on_from(leader)


def _best_s(chains: Sequence[Chain]) -> float:
    return min((chain.value_s() for chain in chains), default=math.inf)
