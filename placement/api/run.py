"""The live verbs: a placement run on this computer, beside what was predicted of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from placement.api.quiet import quiet
from placement.core.events import Emit, never, silent
from placement.core.formatting import Drawn
from placement.core.objective import Objective
from placement.core.verb_options import RunOptions, StreamOptions, made
from placement.remote.calls import in_confinement
from placement.schedule.simulated import Simulated, simulate

if TYPE_CHECKING:
    from placement.core.machine import Machine
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.schedule import Schedule
    from profiling.execution.execute import Run
    from profiling.execution.stream import Stream


class _Run(NamedTuple):
    predicted: Simulated
    measured: Run


class _Stream(NamedTuple):
    predicted: Simulated
    measured: Stream


class LiveRun(Drawn, _Run):
    """A prediction and what was measured; in a notebook both on one axis of time."""


class LiveStream(Drawn, _Stream):
    """The same of a pipeline of samples."""


def require_present(model: Model, machine: Machine) -> None:
    """ValueError unless this model can run live on this machine, now and here."""
    from profiling import backends
    from profiling.devices.local import missing_devices

    if model.not_executable:
        raise ValueError(model.not_executable)
    backends.require_format(model, machine)
    missing = missing_devices(machine)
    if missing:
        listed = "; ".join(f"{name} ({why})" for name, why in missing)
        raise ValueError(
            f"Machine {machine.name!r} has devices that are not on this computer: {listed};"
            " choose --machine local, or simulate instead."
        )


def run(
    model: Model,
    problem: Problem,
    placement: Placement,
    options: RunOptions | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    emit: Emit = silent,
    **named: Any,
) -> LiveRun:
    """Run a placement live; the prediction and the measurement side by side.

    The options may be named instead: `run(model, problem, placement, steps=30)`. A step that takes
    longer than `timeout_s` (60 s where nothing is said) ends the run; a time that is given holds
    for making the model ready, too.
    On a machine of the null backend it follows a virtual clock. One measuring job at a time on a
    computer: others wait, and `emit` hears {"event": "waiting", "holder": ...}.
    """
    options = made(RunOptions, options, named)
    if problem.objective is not Objective.LATENCY:
        raise ValueError(
            "A run measures the latency of one step; a problem for throughput runs by `stream`."
        )
    require_runnable(model, problem, inputs)
    predicted = simulate(problem, placement)
    _require_room(problem, predicted)
    measured = _executed(model, problem, predicted.schedule, options, inputs=inputs, emit=emit)
    return LiveRun(predicted, measured)


@in_confinement("profiling.execution.execute:Run", on_hosts=True)
def _executed(
    model: Model,
    problem: Problem,
    schedule: Schedule,
    options: RunOptions,
    *,
    inputs: Mapping[str, Any] | None,
    emit: Emit,
) -> Run:
    from profiling.execution.execute import execute

    with quiet("run of", model, problem.machine, emit):
        emit({"event": "progress", "what": "preparing the run", "step": 0, "of": options.steps})
        _make_ready(model, problem, options.timeout_s)
        return execute(problem, schedule, options, model=model, inputs=inputs, emit=emit)


def stream(
    model: Model,
    problem: Problem,
    placement: Placement,
    options: StreamOptions | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
    **named: Any,
) -> LiveStream:
    """Run a throughput placement live as a pipeline of samples; prediction and measurement.

    The options may be named instead: `stream(model, problem, placement, samples=30)`. At most
    `depth` samples are in flight, by default a few more than the pipeline has stages. Once `stop`
    returns True no sample begins any more, and those that came out are the result.
    """
    options = made(StreamOptions, options, named)
    if problem.objective is not Objective.THROUGHPUT:
        raise ValueError("A pipeline measures throughput; use --objective throughput.")
    require_runnable(model, problem, inputs)
    predicted = simulate(problem, placement)
    _require_room(problem, predicted)
    measured = _streamed(
        model, problem, predicted.schedule, options, inputs=inputs, emit=emit, stop=stop
    )
    return LiveStream(predicted, measured)


@in_confinement("profiling.execution.stream:Stream", on_hosts=True)
def _streamed(
    model: Model,
    problem: Problem,
    schedule: Schedule,
    options: StreamOptions,
    *,
    inputs: Mapping[str, Any] | None,
    emit: Emit,
    stop: Callable[[], bool],
) -> Stream:
    from profiling import backends
    from profiling.execution import stream as live
    from profiling.measuring.load import watch
    from profiling.measuring.siblings import siblings

    with quiet("pipeline of", model, problem.machine, emit):
        what, of = "preparing the pipeline", options.samples
        emit({"event": "progress", "what": what, "step": 0, "of": of})
        _make_ready(model, problem, options.timeout_s)
        devices = problem.machine.devices
        beside = siblings(() if backends.emulated(devices) else devices)
        meanwhile = watch(problem.machine)
        streamed = beside.measured_once(
            lambda: live.stream(
                problem, schedule, options, model=model, inputs=inputs, emit=emit, stop=stop
            )
        )
        # Two looks say where the cores are, and nothing of who else computed in between.
        load = replace(meanwhile.load(), core_to_core_s=beside.core_to_core_s)
        return replace(streamed, run=replace(streamed.run, load=load))


def _make_ready(model: Model, problem: Problem, timeout_s: float | None) -> None:
    """Compile the model within the time that is given for it."""
    from profiling import backends
    from profiling.execution.execute import compiled_for
    from profiling.sandbox.confinement import deadline

    if timeout_s is not None and not backends.emulated(problem.machine.devices):
        with deadline(timeout_s):
            compiled_for(problem, model)


def _require_room(problem: Problem, predicted: Simulated) -> None:
    """ValueError where a device lacks memory, before anybody waits for a turn or for quiet."""
    from profiling import backends
    from profiling.devices.memory import check_devices

    if not backends.emulated(problem.machine.devices):
        check_devices(predicted.peak_bytes, problem.machine)


def require_runnable(model: Model, problem: Problem, inputs: Mapping[str, Any] | None) -> None:
    """ValueError unless this can run here, or on the virtual clock of its machine."""
    from profiling import backends

    if not model.has_weights:
        raise ValueError(model.not_executable)
    if not backends.emulated(problem.machine.devices):
        require_present(model, problem.machine)
    elif inputs:
        raise ValueError("A machine on a virtual clock computes nothing; leave the inputs out.")
