"""Several schedules of one model run in turns, so that whatever slows the computer slows all alike.

Their programs are open side by side; in each turn every one makes a step, each turn in another
order. What is compared is then the same minute of the same computer.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.core.events import Emit, silent
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.verb_options import RunOptions
from placement.simulator.executions import lower
from placement.simulator.simulate import simulate
from profiling import backends
from profiling.backends.base import Carried, Compiled, Program
from profiling.execution.execute import BY_DEFAULT, compiled_for, require_memory, started
from profiling.measuring.reference import Expected, release, safe_step


@dataclass(frozen=True)
class Turns:
    """Seconds of each schedule's steps, (schedules, turns); infinite where outputs were wrong."""

    step_s: tuple[tuple[float, ...], ...]

    @property
    def median_s(self) -> tuple[float, ...]:
        return tuple(float(np.median(steps)) for steps in self.step_s)


def in_turns(
    problem: Problem,
    schedules: Sequence[Schedule],
    options: RunOptions = BY_DEFAULT,
    *,
    model: Model,
    inputs: Mapping[str, Any] | None = None,
    emit: Emit = silent,
) -> Turns:
    """Run the schedules for `warmup` + `steps` turns on seeded or given inputs.

    Raises what `execute` raises; on a virtual clock every turn takes what the simulation says.
    """
    if backends.emulated(problem.machine.devices):
        predicted_s = [simulate(problem, schedule).step_s for schedule in schedules]
        return Turns(tuple((step_s,) * options.steps for step_s in predicted_s))
    compiled = compiled_for(problem, model)
    feeds = compiled.feeds(options.seed, inputs or {})
    host = next((d for d in problem.machine.devices if d.on_host), None)
    expected = Expected(compiled, host, feeds, options.step_timeout_s)
    rows: list[list[float]] = [[] for _ in schedules]
    with ExitStack() as stack:
        ready = [opened(stack, problem, compiled, feeds, schedule) for schedule in schedules]
        for turn in range(-options.warmup, options.steps):
            emit({"event": "turn", "index": turn, "of": options.steps})
            for i in range(len(ready)):
                number = (i + turn) % len(ready)
                lanes, program = ready[number]
                seconds = safe_step(lanes, program, options.step_timeout_s).seconds
                if turn >= 0:
                    rows[number].append(seconds)
        for row, (_, program) in zip(rows, ready, strict=True):
            outputs = {} if compiled.random_ops else program.outputs()
            if not compiled.random_ops and not expected.compared(program, outputs).match:
                row[:] = [np.inf] * len(row)
    return Turns(tuple(map(tuple, rows)))


def opened(
    stack: ExitStack,
    problem: Problem,
    compiled: Compiled,
    feeds: Mapping[str, Any],
    schedule: Schedule,
) -> tuple[Carried, Program]:
    """The lanes and the program of a schedule, which end with the stack."""
    require_memory(problem, schedule)
    program = compiled.open(schedule, feeds)
    lanes = started(program, problem, lower(problem, schedule))
    stack.callback(release, [program], [lanes])
    return lanes, program
