"""Improving a placement of a large graph window by window along its order.

A move is simulated to the end of the step, which on a hundred thousand kernels takes so long that a
search moves nothing. So a window of the order is searched as if the step ended behind it, from the
state that the kernels before have left; then the next one, which begins within it (a rolling
horizon). What a window gains need not last to the end of the step, so whoever asks compares then.
"""

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from placement.core.events import never
from placement.core.graph import Ints, starts
from placement.core.problem import Objective, Problem
from placement.parallel.calls import Call, travels
from placement.parallel.executor import HERE, Executor, Job, Stop
from placement.search.chain import AGAIN, Start
from placement.search.feasible import limit_bytes, unit_bytes
from placement.search.improvement import DEFAULT_VISITS
from placement.search.progress import Progress, Report
from placement.simulator.evaluator import can_overflow
from placement.simulator.flat import flatten
from placement.simulator.run_state import STRIDE, run_state, trace_of

# Kernels of a window, and how far the next one is.
WINDOW, NEXT = 1024, 256
MOVES_AT_ONCE = 50
# Kernels and tensors that a move in a window visits, by its kernels.
VISITS = 2


def fits(problem: Problem) -> bool:
    """Whether windows are for such problems: for a shortest step, run in the order of kernels, with
    memory that never runs short."""
    in_order = problem.costs.contention == 0.0 and not problem.machine.shares_channels
    return in_order and problem.objective is Objective.LATENCY and not can_overflow(problem)


def improve_along(
    problem: Problem,
    start: Start,
    report: Report,
    *,
    seed: int,
    num_parts: int = 1,
    max_iterations: int = 0,
    time_limit_s: float = math.inf,
    executor: Executor = HERE,
) -> Ints:
    """Devices (U,) after a search along the order, in several parts of it side by side.

    Each part begins where the kernels before it end as things are at the start. With
    `max_iterations` (of all windows together), or without any limit, the answer depends on nothing
    but the seed and the parts; a time limit or a `report` that says stop cuts it.
    """
    num_kernels = len(problem.kernels.ops)
    budget = max_iterations or DEFAULT_VISITS // (VISITS * WINDOW)
    timed = math.isfinite(time_limit_s) and not max_iterations
    num_moves = 0 if timed else max(1, budget * NEXT // max(1, num_kernels))
    borders = [num_kernels * i // num_parts for i in range(num_parts + 1)]
    until_s = time.monotonic() + max(1e-9, time_limit_s) if timed else math.inf
    parts = [
        _Part(start.devices, start.order, part, seed + i, num_moves)
        for i, part in enumerate(itertools.pairwise(borders))
    ]
    jobs = [
        Job(
            here=partial(_moved_until, problem, part, until_s),
            away=partial(Call, moved, (problem,), (part,)),
            until_s=until_s,
        )
        for part in parts
    ]
    devices = start.devices.copy()
    for found in executor.each(jobs, lambda: report(Progress())):
        if found is not None:
            changed = found != start.devices
            devices[changed] = found[changed]
    return devices


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the order to be searched by itself, from a placement (U,) in an order (K,)."""

    devices: Ints
    order: Ints
    part: tuple[int, int]
    seed: int
    num_moves: int

    def moved(self, problem: Problem, seconds: float, stop: Callable[[], bool] = never) -> Ints:
        return along(
            problem,
            Start(self.devices, self.order),
            part=self.part,
            seed=self.seed,
            num_moves=self.num_moves,
            time_limit_s=0.0 if self.num_moves else max(1e-9, seconds),
            stop=stop,
        )


def _moved_until(problem: Problem, part: _Part, until_s: float, stop: Stop) -> Ints:
    return part.moved(problem, until_s - time.monotonic(), stop)


@travels
def moved(problem: Problem, part: _Part, seconds: float) -> Ints:
    """The devices (U,) after a part was searched."""
    return part.moved(problem, seconds)


def along(
    problem: Problem,
    start: Start,
    *,
    seed: int,
    part: tuple[int, int] | None = None,
    num_moves: int = 0,
    time_limit_s: float = 0.0,
    stop: Callable[[], bool] = never,
) -> Ints:
    """Devices (U,) after a search of each window of a part of the order, from one position up to
    another; of all of it without a part.

    So many moves are tried in each window, or as many as the time limit allows; then the answer
    depends on the clock.
    """
    from placement.compiled.random import MODULUS, seeded
    from placement.simulator.compiled.anneal import search
    from placement.simulator.compiled.moves import begin
    from placement.simulator.compiled.run import run

    begun_s = time.perf_counter()
    flat, order, devices = flatten(problem), start.order, start.devices.copy()
    begins, ends = part or (0, order.size)
    state, trace = run_state(flat, order), trace_of(0)
    begin(flat, state, devices)
    # Of what comes behind a window nothing counts.
    state.end_s[:], state.load_s[:] = 0.0, 0.0
    critical = np.zeros(order.size, dtype=np.int64)
    weights, generator = unit_bytes(problem), seeded(seed % MODULUS)
    room_bytes = limit_bytes(problem) - np.bincount(devices, weights, problem.num_devices)
    nothing = np.zeros(0, dtype=np.int64)
    no_blocks = (starts([]), nothing, starts(np.zeros(problem.num_units, np.int64)), nothing)
    known = 0
    for first in range(begins, ends, NEXT):
        last = min(ends, first + WINDOW)
        until = state._replace(order=order[:last])
        new = order[known:last]
        on = state.device[new]
        state.load_s[:] += np.bincount(on, flat.compute_s[new, on], problem.num_devices)
        known = last
        base_s = float(run(flat, until, first // STRIDE, True, np.inf))
        inside = np.unique(flat.unit_of_kernel[order[first:last]])
        # Nothing is below a best of nothing, so that no best is copied: what is there is the best.
        chain = (
            devices,
            devices,
            np.array([base_s, 0.0]),
            np.array([AGAIN, 0, 0, 1], dtype=np.int64),
            critical,
            generator,
            room_bytes,
            weights,
            problem.costs.workspace_bytes,
        )
        tried = 0
        while not stop():
            share = (time.perf_counter() - begun_s) / time_limit_s if time_limit_s else 0.0
            if share * (ends - begins) >= last - begins or (num_moves and tried >= num_moves):
                break
            at_once = min(MOVES_AT_ONCE, num_moves - tried) if num_moves else MOVES_AT_ONCE
            search(
                flat,
                until,
                chain,
                no_blocks,
                trace,
                at_once,
                (0.0, 0.0),
                False,
                False,
                (inside, first),
            )
            tried += at_once
        if stop() or last == ends:
            break
    return devices
