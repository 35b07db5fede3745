"""Training a placed model, step by step, while the placement follows the speed of the machine.

Every step is a training step, the first ones too: the state moves on from step to step, also when
another placement takes over between two of them. Probes, searching and switching happen between
steps, are timed apart and told.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from placement.advice.replacing import Decision, Policy, decide, updated
from placement.core.events import Emit, never, silent
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.costs.remaining import without_devices
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import step_time_s
from profiling.backends.base import DevicesLost
from profiling.devices.lanes import Clock, Step
from profiling.training.monitor import Drift, Monitor, Watch, in_words
from profiling.training.sites import Site

# Probes may take this share of the time, and come no more often than every so many steps.
PROBE_SHARE = 0.02
PROBE_EVERY = 5


@dataclass(frozen=True)
class Move:
    """Another placement took over before step `step`.

    `ops_moved` are (op, from, to), `bytes_moved` the parameters and optimiser state that they read;
    `before_s` and `after_s` are predicted steps at the speed of then.
    """

    step: int
    reason: str
    ops_moved: tuple[tuple[str, str, str], ...]
    bytes_moved: int
    before_s: float
    after_s: float
    solve_s: float
    switch_s: float
    placement: Placement


@dataclass(frozen=True)
class Stay:
    """A change of speed after which no other placement was worth moving to."""

    step: int
    reason: str
    solve_s: float


@dataclass(frozen=True)
class Trained:
    """What a training run has shown. `losses` is empty where nothing was computed.

    `predicted_s` has the prediction for each step. `probe_s`, `solve_s` and `switch_s` were spent
    between the steps.
    """

    step_s: tuple[float, ...]
    losses: tuple[float, ...]
    predicted_s: tuple[float, ...]
    moves: tuple[Move, ...]
    stays: tuple[Stay, ...]
    placement: Placement
    schedule: Schedule
    probe_s: float
    solve_s: float
    switch_s: float


@dataclass(frozen=True, kw_only=True)
class Adjust:
    """How a placement is adjusted while training."""

    policy: Policy = field(default_factory=Policy)
    watch: Watch = field(default_factory=Watch)


def train(
    problem: Problem,
    placement: Placement,
    site: Site,
    *,
    steps: int,
    adjust: Adjust | None = None,
    place: Callable[[Problem], Placement] | None = None,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
    clock: Clock = time.perf_counter,
) -> Trained:
    """Train for `steps` steps, or until `stop` says so; without `adjust` in one placement.

    Where devices are lost, `place` places anew on those that are left, and training goes on from
    the last step; without it that ends the training. `emit` hears {"event": "step", "index",
    "seconds", "loss", "predicted_s"}, "move" and "stay" where something was decided, and {"event":
    "lost", "message", "devices"}.
    """
    run = _Run(problem, placement, site, steps, adjust, place, emit, clock)
    for number in range(steps):
        if stop():
            break
        run.step(number)
        if run.monitor is not None and number + 1 < steps:
            run.look(number + 1)
    return run.result()


class _Run:
    """A training run under way."""

    def __init__(
        self,
        problem: Problem,
        placement: Placement,
        site: Site,
        steps: int,
        adjust: Adjust | None,
        place: Callable[[Problem], Placement] | None,
        emit: Emit,
        clock: Clock,
    ) -> None:
        self._problem, self._site, self._steps, self._place = problem, site, steps, place
        self._emit, self._clock, self._adjust = emit, clock, adjust
        self._first = self._placement = placement
        self.monitor = None if adjust is None else Monitor(problem, adjust.watch)
        self._step_s: list[float] = []
        self._losses: list[float] = []
        self._predicted_s: list[float] = []
        self._moves: list[Move] = []
        self._stays: list[Stay] = []
        self._probe_s = self._solve_s = self._switch_s = 0.0
        self._probe_every = PROBE_EVERY
        self._schedule = make_schedule(problem, placement)
        self._expected_s = step_time_s(problem, self._schedule)
        # What opening a placement takes, as it did the last time.
        self._opening_s = 0.0
        try:
            self._opening_s = self._open(self._schedule)
        except DevicesLost as lost:
            self._go_on(0, lost)

    def step(self, number: int) -> None:
        step = self._stepped(number)
        loss = self._site.loss()
        self._step_s.append(step.seconds)
        self._predicted_s.append(self._expected_s)
        if loss is not None:
            self._losses.append(loss)
        self._emit(
            {
                "event": "step",
                "index": number,
                "seconds": step.seconds,
                "loss": loss,
                "predicted_s": self._expected_s,
            }
        )
        if self.monitor is not None:
            self.monitor.hear(step)

    def _stepped(self, number: int) -> Step:
        while True:
            try:
                return self._site.step()
            except DevicesLost as lost:
                self._go_on(number, lost)

    def look(self, number: int) -> None:
        """Between two steps, `number` the next: probe now and then, and see to what has changed."""
        try:
            self._look(number)
        except DevicesLost as lost:
            self._go_on(number, lost)

    def _look(self, number: int) -> None:
        assert self.monitor is not None
        if number <= self.monitor.watch.probes or number % self._probe_every == 0:
            self._probe()
        if not self.monitor.suspects:
            return
        for _ in range(self.monitor.watch.probes):
            self._probe()
        drift = self.monitor.drift()
        if drift is not None:
            self.monitor.accept(drift)
            self._decide(number, drift)
            self.monitor.begin(self._schedule)

    def result(self) -> Trained:
        return Trained(
            tuple(self._step_s),
            tuple(self._losses),
            tuple(self._predicted_s),
            tuple(self._moves),
            tuple(self._stays),
            self._placement,
            self._schedule,
            self._probe_s,
            self._solve_s,
            self._switch_s,
        )

    def _probe(self) -> None:
        assert self.monitor is not None
        begun_s = self._clock()
        found = self._site.probe()
        self._probe_s += self._clock() - begun_s
        self.monitor.hear_probe(found)
        steps_s = min(self._step_s)
        if found and steps_s > 0:
            per = max(found.values()) / (PROBE_SHARE * steps_s)
            self._probe_every = max(PROBE_EVERY, math.ceil(per))

    def _decide(self, number: int, drift: Drift) -> None:
        """Place anew at the speeds of now, and go on with what is worth it."""
        assert self.monitor is not None and self._adjust is not None
        now = updated(self._problem, self.monitor.slowdown)
        found = decide(
            now,
            self._placement,
            known={"the placement of the start": self._first},
            remaining_steps=self._steps - number,
            switch_s=self._opening_s,
            policy=self._adjust.policy,
            clock=self._clock,
        )
        self._solve_s += found.seconds
        reason = f"{in_words(self._problem, drift)}; {found.reason}"
        if found.moves:
            try:
                self._move(number, now, found, reason)
            except (ValueError, MemoryError) as error:
                # What was open still is; training that goes on slowly is better than none.
                self._stay(number, f"{reason}, but it cannot be opened: {error}", found.seconds)
        else:
            self._stay(number, reason, found.seconds)
        self._expected_s = step_time_s(now, self._schedule)

    def _stay(self, number: int, reason: str, seconds: float) -> None:
        self._stays.append(Stay(number, reason, seconds))
        self._emit({"event": "stay", "step": number, "reason": reason})

    def _move(self, number: int, now: Problem, found: Decision, reason: str) -> None:
        before = self._placement
        self._opening_s = self._open(make_schedule(now, found.placement))
        self._placement = found.placement
        predicted_s, spent_s = (found.before_s, found.after_s), (found.seconds, self._opening_s)
        self._note(number, reason, before, predicted_s, spent_s)

    def _note(
        self,
        number: int,
        reason: str,
        before: Placement,
        predicted_s: tuple[float, float],
        spent_s: tuple[float, float],
    ) -> None:
        """Keep a move to the placement of now: predicted before and after, searched and opened."""
        moved = ops_moved(before, self._placement)
        num_bytes = bytes_of(self._problem, {op for op, _, _ in moved})
        self._switch_s += spent_s[1]
        made = Move(number, reason, moved, num_bytes, *predicted_s, *spent_s, self._placement)
        self._moves.append(made)
        self._emit({"event": "move", **move_to_json(made)})

    def _go_on(self, number: int, lost: DevicesLost) -> None:
        """Before step `number`: place anew on the devices that are left, and go on there."""
        begun_s, before, solve_s = self._clock(), self._placement, 0.0
        while True:
            if self._place is None or not lost.devices:
                raise lost
            self._emit({"event": "lost", "message": str(lost), "devices": list(lost.devices)})
            problem = without_devices(self._problem, lost.devices)
            try:
                self._site.remain(problem)
                self._problem = problem
                searched_s = self._clock()
                self._first = self._placement = self._place(problem)
                solve_s += self._clock() - searched_s
                if self._adjust is not None:
                    self.monitor = Monitor(problem, self._adjust.watch)
                self._opening_s = self._open(make_schedule(problem, self._placement))
                break
            except DevicesLost as another:
                self._problem, lost = problem, another
        self._solve_s += solve_s
        switch_s = self._clock() - begun_s - solve_s
        before_s, self._expected_s = self._expected_s, step_time_s(problem, self._schedule)
        reason = f"{' and '.join(lost.devices)} left, and what ran there goes on elsewhere"
        self._note(number, reason, before, (before_s, self._expected_s), (solve_s, switch_s))

    def _open(self, schedule: Schedule) -> float:
        """Go on with a schedule; the seconds that this takes."""
        begun_s = self._clock()
        self._site.open(schedule)
        self._schedule = schedule
        if self.monitor is not None:
            self.monitor.begin(schedule)
        return self._clock() - begun_s


def ops_moved(before: Placement, after: Placement) -> tuple[tuple[str, str, str], ...]:
    """Ops on another device than before, with both devices."""
    return tuple(
        (op, before.device_of[op], device)
        for op, device in after.device_of.items()
        if before.device_of[op] != device
    )


def bytes_of(problem: Problem, ops: set[str]) -> int:
    """Bytes of the parameters, and of their optimiser state, that ops hold."""
    return sum(op.param_bytes for op in problem.graph.ops if op.name in ops)


def move_to_json(move: Move) -> dict[str, Any]:
    return {
        "step": move.step,
        "reason": move.reason,
        "ops_moved": len(move.ops_moved),
        "bytes_moved": move.bytes_moved,
        "predicted_before_s": move.before_s,
        "predicted_after_s": move.after_s,
        "solve_s": move.solve_s,
        "switch_s": move.switch_s,
        "ops": [list(moved) for moved in move.ops_moved],
    }
