"""Run a schedule live: the counterpart of `simulate`, with the same signature and result.

One thread per device runs the segments that were simulated, in the same order; every run ends with
a comparison of its outputs with those of the unplaced model, and says which device computed.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from placement.advice.drift import profiled_core_to_core_s
from placement.core.events import Emit, silent
from placement.core.load import Load
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Observed, Timeline
from placement.core.verb_options import RunOptions
from placement.simulator.executions import lower
from placement.simulator.lowering import Tasks
from placement.simulator.simulate import simulate
from profiling import backends
from profiling.backends.base import Carried, Compiled, Program
from profiling.devices import heap
from profiling.devices.lanes import Lane, Step
from profiling.devices.memory import check_memory
from profiling.execution.observing import observed
from profiling.execution.spans import measured_timeline, span_events
from profiling.measuring.load import watch
from profiling.measuring.outputs import ROUNDING
from profiling.measuring.reference import Expected, baseline_s, release, safe_step
from profiling.measuring.siblings import MOST_TRIES, Looked, Siblings, siblings

BY_DEFAULT = RunOptions()
AGAIN = "making steps anew during which a core was shared or moved"
BY_ROUNDING = (
    f"The outputs are within {ROUNDING:g} times of how far rounding alone moves them: the unplaced"
    " model ran once more from numbers that are off in their last places."
)
REPEATED = "A step as short as these follows at once on two others, which do not count."


@dataclass(frozen=True)
class Run:
    """What a live run has shown.

    `timeline` is the step of median duration, `load` what others computed while the steps ran, None
    where nobody looked. `baseline_s` is the unplaced model on each device alone (None where its
    memory cannot hold it), `all_cores_s` on the whole CPU where the devices are its lanes.
    `outputs_match` and `max_abs_diff` compare with the unplaced model's outputs;
    where these cannot be compared both are None and `skipped_outputs_reason` says why.
    `outputs_note` says in a sentence what is to be known of the comparison.
    `lanes_note` says which lanes ran and why, where the runtime has a choice, and that steps were
    repeated. `observed` has the parts of the schedule over all steps, None where no hardware ran
    them.
    """

    timeline: Timeline
    load: Load | None
    step_s: tuple[float, ...]
    outputs_match: bool | None
    max_abs_diff: float | None
    skipped_outputs_reason: str
    outputs_note: str
    requested_devices: Mapping[str, str]
    actual_devices: Mapping[str, str]
    fallbacks: tuple[str, ...]
    peak_bytes: Mapping[str, int]
    transfer_bytes: int
    baseline_s: Mapping[str, float | None]
    all_cores_s: float | None
    lanes_note: str = ""
    observed: Observed | None = None

    @property
    def median_s(self) -> float:
        return statistics.median(self.step_s)


def execute(
    problem: Problem,
    schedule: Schedule,
    options: RunOptions = BY_DEFAULT,
    *,
    model: Model,
    inputs: Mapping[str, Any] | None = None,
    emit: Emit = silent,
    baselines: bool = True,
) -> Run:
    """Run a schedule of `problem.kernels` for `warmup` + `steps` steps on seeded or given inputs.

    Raises ValueError for inputs, memory or a profile that do not fit, RuntimeError for a step that
    hangs or a runtime that fails; an exception from `emit` ends the run.
    """
    if backends.emulated(problem.machine.devices):
        return emulated(problem, schedule, options.steps, emit)
    compiled, timeout_s = compiled_for(problem, model), options.step_timeout_s
    feeds = compiled.feeds(options.seed, inputs or {})
    require_memory(problem, schedule)
    host = next((d for d in problem.machine.devices if d.on_host), None)
    expected = Expected(compiled, host, feeds, timeout_s)
    tasks = lower(problem, schedule)
    program = compiled.open(schedule, feeds)
    lanes = started(program, problem, tasks)
    try:
        meanwhile, then_s = watch(problem.machine), profiled_core_to_core_s(problem, schedule)
        beside = siblings(problem.machine.devices, core_to_core_s=then_s)
        rows = _steps(schedule, lanes, program, options, emit, beside)
        load = meanwhile.load()
        load = replace(load, beside=beside.share, core_to_core_s=beside.core_to_core_s)
        outputs = {} if compiled.random_ops else program.outputs()
    finally:
        release([program], [lanes])
    comparison = None if compiled.random_ops else expected.compared(program, outputs)
    alone_s, all_cores_s = baselines_of(problem, compiled, feeds, timeout_s, baselines)
    median = sorted(rows, key=lambda row: row.seconds)[(len(rows) - 1) // 2]
    timeline = measured_timeline(problem, schedule, tasks, median, program.peak_bytes)
    random = ", ".join(compiled.random_ops[:3])
    notes = (program.lanes_note, REPEATED if any(row.num_before for row in rows) else "")
    return Run(
        timeline=timeline,
        load=load,
        step_s=tuple(row.seconds for row in rows),
        outputs_match=None if comparison is None else comparison.match,
        max_abs_diff=None if comparison is None else comparison.max_abs_diff,
        skipped_outputs_reason=f"random by definition: {random}" if random else "",
        outputs_note=BY_ROUNDING if comparison is not None and comparison.by_rounding else "",
        requested_devices={d.name: d.provider for d in problem.machine.devices},
        actual_devices=dict(program.actual_devices),
        fallbacks=program.fallbacks,
        peak_bytes=dict(program.peak_bytes),
        transfer_bytes=timeline.transfer_bytes,
        baseline_s=alone_s,
        all_cores_s=all_cores_s,
        lanes_note=" ".join(filter(None, notes)),
        observed=observed(schedule, problem.machine, tasks, rows),
    )


def compiled_for(problem: Problem, model: Model) -> Compiled:
    """The model compiled for the problem's machine; a ValueError if its kernels are others."""
    compiled = backends.compiled(model, problem.machine)
    other = _unknown(problem, compiled)
    # By formula, or measured before the runtime's adapter joined any.
    if other and (by_op := compiled.by_op()) is not None and not _unknown(problem, by_op):
        return by_op
    if other:
        if problem.costs.origin == "analytic":
            raise ValueError(
                "Costs by formula are of the ops of the file, and the runtime runs others, most of"
                " them joined; measure the model first (on the command line, leave out --analytic)."
            )
        raise ValueError(
            f"The costs speak of {other}, which the runtime does not make of this model here;"
            " profile the model again."
        )
    return compiled


def _unknown(problem: Problem, compiled: Compiled) -> str:
    """What a problem has for kernels that are not those compiled; empty where they are the same."""
    known = {op.name for op in compiled.kernels.ops}
    other = next((op.name for op in problem.kernels.ops if op.name not in known), None)
    if other is not None:
        return f"kernel {other!r}"
    return "" if len(known) == len(problem.kernels.ops) else f"{len(problem.kernels.ops)} kernels"


def lanes_of(problem: Problem, tasks: Tasks) -> tuple[Lane, ...]:
    """One lane per device that has segments, each awaiting what the simulation awaits."""
    found = []
    for device, segments in zip(problem.machine.devices, tasks.lanes, strict=True):
        if not segments:
            continue
        seen: set[int] = set()
        awaits = []
        for segment in segments:
            moves = (tasks.transfers[i].segment for i in tasks.reads[segment])
            new = tuple(sorted({s for s in moves if s >= 0} - seen))
            seen.update(new)
            awaits.append(new)
        found.append(Lane(device, segments, tuple(awaits)))
    return tuple(found)


def started(program: Program, problem: Problem, tasks: Tasks) -> Carried:
    """The threads of a program that was opened; it is closed where these cannot begin."""
    try:
        lanes, num_segments = lanes_of(problem, tasks), sum(map(len, tasks.lanes))
        return program.carried(lanes, num_segments)
    except BaseException:
        program.close()
        raise


def baselines_of(
    problem: Problem, compiled: Compiled, feeds: Mapping[str, Any], timeout_s: float, wanted: bool
) -> tuple[dict[str, float | None], float | None]:
    """Step times of the unplaced model by device, and on all cores where the devices are lanes."""
    devices = problem.machine.devices
    if not wanted:
        return {}, None
    alone_s = {d.name: baseline_s(compiled, d, feeds, timeout_s) for d in devices}
    if len(devices) > 1 and all(d.on_host for d in devices):
        return alone_s, baseline_s(compiled, None, feeds, timeout_s)
    return alone_s, None


def require_memory(problem: Problem, schedule: Schedule) -> None:
    """ValueError where the schedule, beside the unplaced model to compare with, needs too much."""
    reference_bytes = int(problem.kernels.arrays.resident_bytes.sum())
    elsewhere = backends.elsewhere(problem.machine.devices)
    peak = simulate(problem, schedule).peak_bytes
    check_memory(peak, problem.machine, reference_bytes, elsewhere)


def _steps(
    schedule: Schedule,
    lanes: Carried,
    program: Program,
    options: RunOptions,
    emit: Emit,
    beside: Siblings,
) -> list[Step]:
    """Those that count; of more, because a core was shared or moved, it is told how many."""
    step = partial(safe_step, lanes, program, options.step_timeout_s)
    warm_s = min(heap.warming(lambda: step().seconds, options.warmup), default=math.inf)
    stretch = beside.stretch(step, warm_s, options.steps)
    wanted, told = math.ceil(options.steps / stretch.num), 0
    rows: list[Looked[list[Step]]] = []
    most_again = (MOST_TRIES - 1) * wanted
    while beside.goes_on(wanted, rows):
        rows.append(beside.around(stretch))
        if (again := len(rows) - wanted) > 0:
            emit({"event": "progress", "what": AGAIN, "step": again, "of": max(again, most_again)})
        for made in rows[-1].value[: options.steps - told]:
            for event in span_events(schedule, made, told):
                emit(event)
            told += 1
    return [step for steps in beside.kept(rows, wanted) for step in steps][: options.steps]


def emulated(problem: Problem, schedule: Schedule, steps: int, emit: Emit) -> Run:
    """What the simulation says, as if it had been run: for machines on a virtual clock."""
    predicted = simulate(problem, schedule)
    timeline = replace(predicted, origin="emulated")
    for number in range(steps):
        for span in timeline.spans:
            emit({"event": "span", "step": number, **span.to_json()})
        emit({"event": "step", "index": number, "seconds": timeline.step_s})
    devices = problem.machine.devices
    alone_s = problem.costs.call_s + problem.costs.compute_s.sum(axis=0)
    return Run(
        timeline=timeline,
        load=None,
        step_s=(timeline.step_s,) * steps,
        outputs_match=None,
        max_abs_diff=None,
        skipped_outputs_reason="emulated: nothing was computed",
        outputs_note="",
        requested_devices={d.name: d.provider for d in devices},
        actual_devices={d.name: "virtual clock" for d in devices},
        fallbacks=(),
        peak_bytes=dict(predicted.peak_bytes),
        transfer_bytes=predicted.transfer_bytes,
        baseline_s={
            d.name: float(s) if np.isfinite(s) else None
            for d, s in zip(devices, alone_s, strict=True)
        },
        all_cores_s=None,
    )
