"""Run a throughput schedule live: a pipeline of devices through which samples stream.

Every sample in flight has buffers of its own, so a device can go on with the next sample while
another one still reads the last. As many samples are in flight as there are stages, and a few more,
so that a device that is late now and then does not hold up the others.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from placement.core.events import Emit, never, silent
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span, Timeline
from placement.core.verb_options import StreamOptions
from placement.schedule.stages import in_stages
from placement.simulator.executions import lower
from placement.simulator.throughput import loads_s, seconds_per_sample
from profiling import backends
from profiling.devices.stream_lanes import Ran
from profiling.execution.execute import (
    BY_ROUNDING,
    Run,
    baselines_of,
    compiled_for,
    emulated,
    lanes_of,
    require_memory,
)
from profiling.execution.stream_flow import SPARE, Flow, Opened, intervals_s, opened
from profiling.execution.stream_outputs import Outputs
from profiling.measuring.reference import Expected, release

BY_DEFAULT = StreamOptions()


@dataclass(frozen=True)
class Stream:
    """What a stream of samples has shown.

    `run.step_s` are the seconds between one output and the next of a full pipeline, `run.timeline`
    shows a few samples of it. `run.outputs_match` is about all `num_outputs` samples that came out:
    each output is that of its own input, none is missing. `num_samples` of them are measured, those
    that fill and drain the pipeline are not. `latency_s` is what each measured sample took from its
    inputs to its outputs. `busy_s` is what each device computes for one sample, `bottleneck` the
    one that computes longest. `bit_equal` says that no bit of any output differs from the unplaced
    model's; `distinct_outputs` counts the outputs that can be told apart, of `distinct_inputs` that
    take turns. `cancelled` tells that fewer samples came than were asked for.
    """

    run: Run
    num_samples: int
    num_outputs: int
    samples_per_s: float
    latency_s: tuple[float, ...]
    busy_s: Mapping[str, float]
    bottleneck: str
    bit_equal: bool | None
    depth: int
    num_stages: int
    distinct_inputs: int
    distinct_outputs: int
    cancelled: bool


def stream(
    problem: Problem,
    schedule: Schedule,
    options: StreamOptions = BY_DEFAULT,
    *,
    model: Model,
    inputs: Mapping[str, Any] | None = None,
    emit: Emit = silent,
    stop: Callable[[], bool] = never,
    baselines: bool = True,
) -> Stream:
    """Send samples through, of a few seeded inputs or the given one, and measure `samples` of them.

    At least `warmup` samples go before those. `depth` samples are in flight at most; by default a
    few more than there are stages, or as many as memory holds. Once `stop` returns True no sample
    begins, and those in flight come out. Raises ValueError for inputs, memory or a profile that do
    not fit and for a stop before the pipeline was full, RuntimeError for a sample that hangs
    or a runtime that fails; an exception from `emit` ends the stream.
    """
    if backends.emulated(problem.machine.devices):
        return _emulated(problem, schedule, options.samples, emit)
    compiled, timeout_s = compiled_for(problem, model), options.step_timeout_s
    require_memory(problem, schedule)
    made = opened(problem, schedule, compiled, options, inputs or {})
    host = next((d for d in problem.machine.devices if d.on_host), None)
    try:
        expected = [Expected(compiled, host, feeds, timeout_s) for feeds in made.feeds]
        outputs = Outputs(expected, made.programs[0], comparable=not compiled.random_ops)
        lanes = lanes_of(problem, lower(problem, made.schedule))
        flow = Flow(made, lanes, outputs, options, emit, stop)
    except BaseException:
        release(made.programs, [])
        raise
    try:
        flow.run()
    finally:
        release(made.programs, [flow.lanes])
    if not flow.measured:
        raise ValueError("The stream was stopped while it filled; there is nothing to say.")
    for event in _span_events(made, flow):
        emit(event)
    # Who stops a stream waits for its end, not for what else would be good to know.
    alone_s, all_cores_s = baselines_of(
        problem, compiled, made.feeds[0], timeout_s, baselines and not stop()
    )
    return _result(problem, made, flow, outputs, alone_s, all_cores_s, compiled.random_ops)


def _result(
    problem: Problem,
    made: Opened,
    flow: Flow,
    outputs: Outputs,
    alone_s: Mapping[str, float | None],
    all_cores_s: float | None,
    random_ops: Sequence[str],
) -> Stream:
    steps_s = intervals_s(flow.fed_s, flow.done_s, flow.num_before, made.depth)
    program = made.programs[0]
    busy_s = {d.name: 0.0 for d in problem.machine.devices}
    busy_s |= {name: statistics.median(s) for name, s in flow.lanes.busy_s.items() if s}
    timeline = _timeline(made, flow.lanes.ran, program.peak_bytes)
    run = Run(
        timeline=timeline,
        load=None,
        step_s=steps_s,
        outputs_match=outputs.match,
        max_abs_diff=outputs.max_abs_diff,
        skipped_outputs_reason=_skipped(random_ops),
        outputs_note=BY_ROUNDING if outputs.by_rounding else "",
        requested_devices={d.name: d.provider for d in problem.machine.devices},
        actual_devices=dict(program.actual_devices),
        fallbacks=program.fallbacks,
        peak_bytes=dict(program.peak_bytes),
        transfer_bytes=_bytes_sent(problem, made.schedule),
        baseline_s=alone_s,
        all_cores_s=all_cores_s,
        lanes_note=program.lanes_note,
    )
    return Stream(
        run=run,
        num_samples=len(flow.measured),
        num_outputs=len(flow.done_s),
        samples_per_s=len(steps_s) / sum(steps_s),
        latency_s=tuple(flow.done_s[i] - flow.fed_s[i] for i in flow.measured),
        busy_s=busy_s,
        bottleneck=max(busy_s, key=lambda name: busy_s[name]),
        bit_equal=outputs.bit_equal,
        depth=made.depth,
        num_stages=max(made.stage_of, default=0) + 1,
        distinct_inputs=len(made.feeds),
        distinct_outputs=outputs.num_distinct,
        cancelled=flow.cancelled,
    )


def _skipped(random_ops: Sequence[str]) -> str:
    return f"random by definition: {', '.join(random_ops[:3])}" if random_ops else ""


def _bytes_sent(problem: Problem, schedule: Schedule) -> int:
    """What crosses links for one sample."""
    tensors = problem.kernels.tensors
    return sum(tensors[move.tensor].num_bytes for move in lower(problem, schedule).transfers)


def _span_events(made: Opened, flow: Flow) -> Iterator[dict[str, Any]]:
    """The spans of the samples that were watched."""
    spans = _timeline(made, flow.lanes.ran, {}).spans
    for ran, span in zip(_by_start(flow.lanes.ran), spans, strict=True):
        yield {"event": "span", "step": ran.sample - flow.num_before, **span.to_json()}


def _by_start(ran: Sequence[Ran]) -> list[Ran]:
    return sorted(ran, key=lambda r: (r.start_s, r.sample, r.segment))


def _timeline(made: Opened, ran: Sequence[Ran], peak_bytes: Mapping[str, int]) -> Timeline:
    """What the devices did for the samples that were watched, from the first one's start."""
    began_s = min((r.start_s for r in ran), default=0.0)
    spans = []
    for r in _by_start(ran):
        segment = made.schedule.segments[r.segment]
        times = (r.start_s - began_s, r.end_s - began_s)
        spans.append(Span("compute", segment.kernels[0], segment.device, *times, r.segment))
    end_s = max((s.end_s for s in spans), default=0.0)
    return Timeline(tuple(spans), end_s, "measured", peak_bytes)


def _emulated(problem: Problem, schedule: Schedule, samples: int, emit: Emit) -> Stream:
    """What the loads say, as if it had been run: for machines on a virtual clock."""
    sample_s = seconds_per_sample(problem, schedule)
    one = emulated(problem, schedule, 1, silent)
    for index in range(samples):
        seconds = sample_s if index else one.timeline.step_s
        latency_s = one.timeline.step_s
        emit({"event": "step", "index": index, "seconds": seconds, "latency_s": latency_s})
    loads = loads_s(problem, schedule)
    _, stage_of = in_stages(problem, schedule)
    num_stages = max(stage_of, default=0) + 1
    return Stream(
        run=replace(one, step_s=(sample_s,) * samples),
        num_samples=samples,
        num_outputs=0,
        samples_per_s=1.0 / sample_s if sample_s else 0.0,
        latency_s=(one.timeline.step_s,) * samples,
        busy_s={d.name: loads[d.name] for d in problem.machine.devices},
        bottleneck=max(loads, key=lambda name: loads[name]),
        bit_equal=None,
        depth=num_stages + SPARE,
        num_stages=num_stages,
        distinct_inputs=0,
        distinct_outputs=0,
        cancelled=False,
    )
