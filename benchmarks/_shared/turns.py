"""Placements opened side by side in one process, so that their steps can be timed turn by turn."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import placement as pl
from placement.core.machine import Device
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator.executions import lower
from profiling.backends.base import Compiled, Program
from profiling.devices.lanes import Lane
from profiling.execution.execute import lanes_of
from profiling.measuring.reference import settled
from profiling.measuring.siblings import Looked, Siblings

TIMEOUT_S = 120.0
Steps = Mapping[str, Callable[[], float]]


def samples() -> list[str]:
    """Names of the bundled samples that run without weights of their own."""
    return [row["name"] for row in pl.samples() if "onnx" in row["name"]]


@contextmanager
def opened(
    problem: Problem, compiled: Compiled, schedules: Mapping[str, Schedule], seed: int = 0
) -> Iterator[Steps]:
    """By name, a call that runs one step of a schedule and returns its seconds."""
    feeds = compiled.feeds(seed, {})
    with ExitStack() as stack:
        steps = {}
        for name, schedule in schedules.items():
            program = compiled.open(schedule, feeds)
            stack.callback(program.close)
            lanes = lanes_of(problem, lower(problem, schedule))
            steps[name] = _stepper(stack, lanes, len(schedule.segments), program)
        yield steps


@contextmanager
def alone(
    compiled: Compiled, devices: Mapping[str, Device | None], seed: int = 0
) -> Iterator[Steps]:
    """By name, a step of the unplaced model on one device, or on all cores for None."""
    feeds = compiled.feeds(seed, {})
    with ExitStack() as stack:
        steps: dict[str, Callable[[], float]] = {}
        for name, device in devices.items():
            program = compiled.unplaced(device, feeds)
            steps |= stack.enter_context(running(name, program, device))
        yield steps


@contextmanager
def running(name: str, program: Program, device: Device | None) -> Iterator[Steps]:
    """By its name, a step of a program of one segment, in a thread on the cores of a device."""
    with ExitStack() as stack:
        stack.callback(program.close)
        lane = Lane(device or Device("all cores"), (0,), ((),))
        yield {name: _stepper(stack, (lane,), 1, program)}


def turn_by_turn(
    steps: Steps, rounds: int, warmup: int = 3, beside: Siblings | None = None
) -> dict[str, list[float]]:
    """Seconds of `rounds` steps of each, every other round in reverse order.

    Each turn is some steps, of which the last counts: the first finds the caches as another program
    has left them, which no run of one program does. With `beside` there are more rounds, until
    so many of each were alone on their cores, if its patience allows, and only these count.
    """
    beside = beside or Siblings(())
    rows: dict[str, list[Looked[float]]] = {name: [] for name in steps}
    number = -warmup
    while number < 0 or beside.goes_on(rounds, *rows.values()):
        for name in list(steps)[:: 1 if number % 2 else -1]:
            looked = beside.around(partial(settled, steps[name], float))
            if number >= 0:
                rows[name].append(looked)
        number += 1
    return {name: beside.kept(row, rounds) for name, row in rows.items()}


def _stepper(
    stack: ExitStack, lanes: tuple[Lane, ...], num_segments: int, program: Program
) -> Callable[[], float]:
    threads = program.carried(lanes, num_segments)
    stack.callback(threads.close)
    return lambda: threads.step(TIMEOUT_S).seconds
