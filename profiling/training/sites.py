"""Where training steps run: on devices, or on a virtual clock; both look the same to the loop."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from placement.advice.replacing import Slowdown, unslowed, updated
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.verb_options import TrainOptions
from placement.simulator.executions import lower
from placement.simulator.simulate import times_of
from profiling import backends
from profiling.backends.base import Carried, DevicesLost, Program
from profiling.devices.lanes import Step
from profiling.devices.probes import Probes
from profiling.execution.execute import compiled_for, require_memory, started
from profiling.measuring.reference import release, safe_step

# What a probe takes on a virtual clock, undisturbed.
VIRTUAL_PROBE_S = 0.01


class Site(Protocol):
    """Runs steps of one schedule after another; the state of training lives on through all."""

    def open(self, schedule: Schedule) -> None:
        """Go on with this schedule, from the state that the one before has reached.

        A ValueError or MemoryError says why it cannot be opened; what was open before still is.
        After DevicesLost it is not, and `remain` comes next.
        """

    def step(self) -> Step:
        """One training step; the next one starts from the state that it has made.

        DevicesLost where devices have left in the middle: the step has not been then.
        """

    def remain(self, problem: Problem) -> None:
        """Go on without devices that are lost, with the kernels and the machine of this problem.

        A schedule of it is to be opened next. DevicesLost where the state is lost with them.
        """

    def loss(self) -> float | None:
        """The loss of the last step; None where nothing is computed."""

    def probe(self) -> Mapping[str, float]:
        """Seconds of a fixed piece of work by device, where that can be measured."""

    def close(self) -> None: ...


class LiveSite:
    """Devices of this computer or of others, on the same seeded or given inputs in every step."""

    def __init__(
        self,
        problem: Problem,
        model: Model,
        options: TrainOptions,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        self._model, self._options = model, options
        self._compile(problem)
        self._feeds = self._compiled.feeds(options.seed, inputs or {})
        self._loss_name, self._loss = loss_name(model), float("nan")
        self._program: Program | None = None
        self._lanes: Carried | None = None
        # What the next step starts from, between two machines.
        self._state: Mapping[str, Any] = {}
        away = backends.elsewhere(problem.machine.devices)
        self._probes = Probes(d for d in problem.machine.devices if d.name not in away)

    def _compile(self, problem: Problem) -> None:
        compiled = compiled_for(problem, self._model)
        self._problem = problem
        self._compiled = compiled.with_copies() if self._options.resume else compiled

    def open(self, schedule: Schedule) -> None:
        require_memory(self._problem, schedule)
        state = self.state()
        try:
            program = self._opened(schedule, state)
            # Until its lanes are there the state is in what was open before.
            lanes = started(program, self._problem, lower(self._problem, schedule))
        except DevicesLost:
            # What was open before may be lost with them.
            self._release()
            self._state = state
            raise
        self._release()
        self._program, self._lanes, self._state = program, lanes, {}

    def _opened(self, schedule: Schedule, state: Mapping[str, Any]) -> Program:
        """A program that starts from a state."""
        program = self._compiled.open(schedule, self._feeds)
        try:
            if state:
                program.take_state(state)
        except BaseException:
            program.close()
            raise
        return program

    def step(self) -> Step:
        assert self._program is not None and self._lanes is not None
        step = safe_step(self._lanes, self._program, self._options.step_timeout_s)
        # Before the state moves on: whoever is lost until then leaves the step undone.
        self._loss = float(self._program.output(self._loss_name))
        self._program.advance()
        return step

    def remain(self, problem: Problem) -> None:
        self._state = self.state()
        self._release()
        self._compile(problem)

    def loss(self) -> float | None:
        return self._loss

    def state(self) -> Mapping[str, Any]:
        """What the next step starts from."""
        return self._state if self._program is None else self._program.state()

    def probe(self) -> Mapping[str, float]:
        return {**self._probes.probe(), **self._compiled.probe()}

    def close(self) -> None:
        self._release()
        self._probes.close()

    def _release(self) -> None:
        if self._program is not None and self._lanes is not None:
            release([self._program], [self._lanes])
        self._program = self._lanes = None


World = Callable[[int], Slowdown]


class VirtualSite:
    """The simulator in place of devices, in a world whose speed may change from step to step.

    `jitter` draws a factor for each step and each probe.
    """

    def __init__(
        self,
        problem: Problem,
        world: World | None = None,
        jitter: Callable[[], float] = lambda: 1.0,
    ) -> None:
        calm = unslowed(problem)
        self._problem, self._world, self._jitter = problem, world or (lambda number: calm), jitter
        self._now_s, self._number = 0.0, 0
        self._known: dict[int, Any] = {}

    def open(self, schedule: Schedule) -> None:
        self._schedule, self._tasks = schedule, lower(self._problem, schedule)
        self._known.clear()

    def remain(self, problem: Problem) -> None:
        calm = unslowed(problem)
        self._problem, self._world = problem, lambda number: calm
        self._known.clear()

    def step(self) -> Step:
        world = self._world(self._number)
        if id(world) not in self._known:
            slowed = updated(self._problem, world)
            tasks = lower(slowed, self._schedule)
            # The world is kept beside its times, so that no other can get its id.
            self._known[id(world)] = (times_of(slowed, self._schedule, tasks), world)
        times = self._known[id(world)][0]
        began_s, longer = self._now_s, self._jitter()
        self._now_s += times.step_s * longer
        self._number += 1
        names = [d.name for d in self._problem.machine.devices]
        return Step(
            began_s,
            self._now_s,
            tuple(began_s + s * longer for s in times.start_s),
            tuple(began_s + s * longer for s in times.end_s),
            {
                (move.segment, names[move.dst]): began_s + arrived_s * longer
                for move, arrived_s in zip(self._tasks.transfers, times.arrived_s, strict=True)
                if move.segment >= 0
            },
        )

    def loss(self) -> float | None:
        return None

    def probe(self) -> Mapping[str, float]:
        world = self._world(self._number)
        return {
            device.name: VIRTUAL_PROBE_S * float(factor) * self._jitter()
            for device, factor in zip(self._problem.machine.devices, world.device, strict=True)
            if device.on_host
        }

    def close(self) -> None:
        """Nothing is open."""


def loss_name(model: Model) -> str:
    """The output that is the loss: the one of that name, else the first."""
    names = [t.name for t in model.graph.outputs]
    return "loss" if "loss" in names or not names else names[0]
