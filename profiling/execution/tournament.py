"""A tournament: schedules of one model run turn by turn until the fastest is certain.

All programs are open side by side. Before the race each makes its warm-up steps and shows that its
outputs are right; then they race (`profiling.measuring.racing`). A turn is one step that nobody
counts, because another program's weights are in the caches, and then as many as fill `TURN_S`,
whose median counts: what is compared are steps as they follow one another.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from placement.core.events import Emit, never, silent, waiting
from placement.core.formatting import counted, seconds
from placement.core.load import Load
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator.simulate import simulate
from profiling import backends
from profiling.backends.base import Carried, Compiled, Program
from profiling.devices import heap
from profiling.execution.execute import compiled_for
from profiling.execution.turns import opened
from profiling.measuring.load import LOOK_S, await_quiet, patience, together, watch
from profiling.measuring.racing import Race, Standing, race
from profiling.measuring.reference import Expected, safe_step
from profiling.measuring.siblings import siblings

WARMUP = 3
TURN_S, MOST_STEPS = 0.02, 5
WRONG = "its outputs were wrong"


@dataclass(frozen=True)
class Entrant:
    """Who takes part: a schedule, the problem that it is of, and what people call it.

    All problems are of the same model; their machines may differ, as the whole CPU from its lanes.
    """

    name: str
    problem: Problem
    schedule: Schedule

    @property
    def machine(self) -> Machine:
        """What it runs on."""
        return self.problem.machine


@dataclass(frozen=True)
class Tournament:
    """What came of it, in the order of the entrants.

    `turn_s` has seconds by turn, `left` why an entrant left before the end (empty for who did not):
    a word of `racing`, or a sentence about why it was not raced. The winner is None where nobody
    has taken a turn. `load` is what others computed in the rounds that counted.
    """

    turn_s: tuple[tuple[float, ...], ...]
    left: tuple[str, ...]
    winner: int | None
    is_certain: bool
    load: Load | None = None


def tournament(
    entrants: Sequence[Entrant],
    *,
    model: Model,
    limit_s: float,
    timeout_s: float,
    seed: int = 0,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
    clock: Callable[[], float] = time.perf_counter,
) -> Tournament:
    """Race the entrants for at most `limit_s`, on inputs drawn from the seed.

    Who cannot be opened or computes something else is left out, with the reason. Raises what
    `execute` raises for a step that hangs or fails. On a virtual clock every turn takes what the
    simulation says.
    """
    if backends.emulated(entrants[0].machine.devices):
        return _emulated(entrants, seed)
    left = [""] * len(entrants)
    with ExitStack() as stack:
        ready = _ready(stack, entrants, model, timeout_s, seed, emit, stop, left)
        raced = sorted(ready)
        begun_s = clock()
        calm = _Calm(entrants[0].machine, emit)

        def turn(number: int) -> float:
            (found_s,) = calm.beside.measured(ready[raced[number]].turn, 1)
            return found_s

        def tell(standing: Standing) -> None:
            share = min(1.0, (clock() - begun_s - calm.waited_s) / limit_s)
            emit(_told(entrants[raced[standing.leader]].name, standing, share))

        found = race(
            turn,
            len(raced),
            goes_on=lambda: not stop() and clock() - begun_s - calm.waited_s < limit_s,
            is_clean=calm.is_clean,
            tell=tell,
            seed=seed,
        )
    looked = calm.beside
    load = replace(together(calm.loads), beside=looked.share, core_to_core_s=looked.core_to_core_s)
    return replace(_placed(found, raced, left), load=load)


class _Calm:
    """Sees to it that rounds in which others compute do not count, as long as patience lasts.

    The system counts processor time in pieces, so several short rounds are looked at together;
    whether the siblings of the cores are busy is looked at in each turn (`beside`).
    """

    def __init__(self, machine: Machine, emit: Emit) -> None:
        self._machine, self._emit = machine, emit
        self._watch, self._left_s = watch(machine), patience()
        self.waited_s = 0.0
        self.loads: list[Load] = []
        self.beside = siblings(machine.devices)

    def is_clean(self) -> bool:
        if self._watch.seconds < LOOK_S:
            return True
        load = self._watch.load()
        clean = not load.is_busy or self._left_s <= 0.0
        if clean:
            self.loads.append(load)
        else:
            tell = waiting(self._emit)
            waited_s = await_quiet(self._machine, tell, patience_s=self._left_s)
            self.waited_s += waited_s
            self._left_s -= waited_s
        self._watch.begin()
        return clean


def _placed(found: Race, raced: Sequence[int], left: list[str]) -> Tournament:
    """The race as all entrants see it, those too that were not raced."""
    turn_s: list[tuple[float, ...]] = [()] * len(left)
    for number, racer in zip(raced, found.racers, strict=True):
        turn_s[number], left[number] = racer.turn_s, racer.left
    winner = None if found.winner is None else raced[found.winner]
    return Tournament(tuple(turn_s), tuple(left), winner, found.is_certain)


def _told(leader: str, standing: Standing, share: float) -> dict[str, Any]:
    """How the race stands, with the share of its time that is gone."""
    note = (
        f"measured: {leader} leads with {seconds(standing.median_s)} after"
        f" {counted(standing.num_rounds, 'round')}, {standing.num_left} still in"
    )
    return {"event": "progress", "what": note, "note": note, "step": int(100 * share), "of": 100}


class _Ready:
    """An entrant whose program is open and warm."""

    def __init__(self, lanes: Carried, program: Program, timeout_s: float) -> None:
        self._lanes, self._program, self._timeout_s = lanes, program, timeout_s
        warm_s = min(heap.warming(self._step_s, WARMUP))
        self._num_steps = max(1, min(MOST_STEPS, round(TURN_S / max(1e-9, warm_s))))

    def turn(self) -> float:
        self._step_s()
        return statistics.median(self._step_s() for _ in range(self._num_steps))

    def _step_s(self) -> float:
        return safe_step(self._lanes, self._program, self._timeout_s).seconds


def _ready(
    stack: ExitStack,
    entrants: Sequence[Entrant],
    model: Model,
    timeout_s: float,
    seed: int,
    emit: Emit,
    stop: Callable[[], bool],
    left: list[str],
) -> dict[int, _Ready]:
    """Entrants by number that can be raced; why the others cannot is written to `left`."""
    compiled: dict[Machine, tuple[Compiled, dict[str, Any], Expected]] = {}
    ready: dict[int, _Ready] = {}
    for number, entrant in enumerate(entrants):
        if stop():
            break
        what = f"preparing {entrant.name}"
        emit({"event": "progress", "what": what, "step": number, "of": len(entrants)})
        machine = entrant.machine
        try:
            if machine not in compiled:
                made = compiled_for(entrant.problem, model)
                feeds = made.feeds(seed, {})
                host = next((d for d in machine.devices if d.on_host), None)
                expected = Expected(made, host, feeds, timeout_s)
                compiled[machine] = made, feeds, expected
            made, feeds, expected = compiled[machine]
            lanes, program = opened(stack, entrant.problem, made, feeds, entrant.schedule)
        except (ValueError, MemoryError) as error:
            left[number] = f"it cannot be run: {error or 'there is too little memory'}"
            continue
        ready[number] = _Ready(lanes, program, timeout_s)
        if not made.random_ops and not expected.compared(program, program.outputs()).match:
            del ready[number]
            left[number] = WRONG
    return ready


def _emulated(entrants: Sequence[Entrant], seed: int) -> Tournament:
    """The race on a virtual clock, which nothing disturbs and nobody waits for."""
    step_s = [simulate(entrant.problem, entrant.schedule).step_s for entrant in entrants]
    found = race(step_s.__getitem__, len(entrants), goes_on=lambda: True, seed=seed)
    return _placed(found, range(len(entrants)), [""] * len(entrants))
