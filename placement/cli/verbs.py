"""What each verb of the command line does with its options; returns the exit status."""

import json
import signal
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

import placement as pl
from placement.api import answers
from placement.api.place import Placed
from placement.api.problems import stored_profile
from placement.api.refine import step_before_and_after
from placement.api.results.machines import ExportResult
from placement.api.results.placing import (
    CompareResult,
    PlaceResult,
    WhatIfPlaceResult,
    WhatIfResult,
)
from placement.api.results.running import RunResult
from placement.api.results.training import TrainResult
from placement.api.resume import run_to_the_end, stream_to_the_end
from placement.api.train import has_diverged, require_training
from placement.api.wording import doubts
from placement.cli.lesson_verbs import grade as grade
from placement.cli.lesson_verbs import lesson as lesson
from placement.cli.lesson_verbs import lessons as lessons
from placement.cli.printing import (
    lines_of,
    lines_of_differences,
    lines_of_finals,
    lines_of_steps,
    listener,
    print_answer,
    table_of,
)
from placement.cli.reading import (
    chosen,
    dedicate,
    hold,
    kept_placement,
    placements_beside,
    read_inputs,
    read_model,
    read_options,
    read_problem,
    read_timeline,
    read_whole,
)
from placement.core.formatting import counted, num_bytes
from placement.core.machine import Device
from placement.core.objective import Objective
from placement.core.verb_options import (
    CompareOptions,
    ExportOptions,
    PlaceOptions,
    ProfileOptions,
    RefineOptions,
    ResumeOptions,
    RunOptions,
    StepsOptions,
    StreamOptions,
    TrainOptions,
)
from placement.costs.what_if import Conditions
from placement.files.output import NotWritten, plain_refusals, require_room, write_text
from placement.remote.signals import TERMINATED, Stop, has_value, partly

if TYPE_CHECKING:
    from placement.core.load import Load
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.schedule import Schedule

# A search that is told to stop compares what it has found; on large graphs that takes seconds.
SEARCH_PATIENCE_S = 15.0
# What a person is not shown of an answer, or is told in words.
_LONG = ("timeline", "predicted_timeline", "steps_s", "critical_path", "placement", "load")
_LONG_OF_RUNS = (*_LONG, "observed", "drift", "refined", "refined_note")
_LONG_OF_TRAINING = ("steps_s", "all_losses", "predicted_steps_s", "moves")


def write_out(path: str, text: str) -> None:
    """Write a file that the options name; what stood there stays whole where that cannot be."""
    with plain_refusals(Path(path)):
        write_text(Path(path), text)


def samples(options: Namespace) -> int:
    rows = pl.samples()
    return print_answer(
        options, rows, (f"{r['name']:24} {r['num_ops']:5} ops  {r['source']}" for r in rows)
    )


def inspect(options: Namespace) -> int:
    answer = pl.inspect(read_model(options))
    return print_answer(options, answer, lines_of(answer))


def machine(options: Namespace) -> int:
    from placement.core.machine import as_preset, machine_to_text

    found = pl.machine(options.machine, options.lanes)
    if options.out:
        write_out(options.out, machine_to_text(found))
    if options.preset:
        preset = as_preset(found, Path(options.preset).stem)
        write_out(options.preset, machine_to_text(preset))
    answer = answers.of_machine(found)
    lines = [", ".join(_about(d)) for d in found.devices]
    lines += [f"note: {found.note}"] if found.note else []
    lines += [f"source: {source}" for source in found.sources]
    return print_answer(options, answer, lines)


def _about(device: Device) -> Iterator[str]:
    """A device in short: what it is, how large, and who drives it."""
    yield f"{device.name}: {device.label or device.kind}"
    if device.kind == "cpu":
        yield counted(device.cores, "core")
    elif device.memory_bytes is not None:
        yield num_bytes(device.memory_bytes)
    yield device.provider or device.runtime
    if device.memory:
        yield f"in the memory of {device.memory}"


def hosts(options: Namespace) -> int:
    rows = pl.hosts(options.machine)
    return print_answer(options, rows, _host_lines(rows))


def _host_lines(rows: list[dict[str, Any]]) -> list[str]:
    versions = rows[0]["versions"].items() if rows else ()
    return [
        *(
            f"{row['name']:14} {row['address']:16} {counted(row['cores'], 'core')},"
            f" {row['label']}: {', '.join(row['devices'])}, network card {row['card'] or 'none'}"
            for row in rows
        ),
        f"on every host: {', '.join(f'{name} {version}' for name, version in versions)}",
    ]


def placers(options: Namespace) -> int:
    rows = pl.list_placers()
    return print_answer(options, rows, _placer_lines(rows))


def _placer_lines(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        shown = " [shows its steps]" if row["pseudo_code"] else ""
        lines.append(f"{row['name']:14} {row['summary']}{shown}")
        for name, field in row["settings"].items():
            words = (("low", "from"), ("high", "up to"))
            ends = [f"{word} {field[end]:g}" for end, word in words if end in field]
            known = field.get("choices") or (ends and [" ".join(ends)])
            told = f" ({', '.join(known)})" if known else ""
            lines.append(f"{'':14}   --set {name}={field['default']}  {field['help']}{told}")
    return lines


def profile(options: Namespace) -> int:
    require_room(options.out)
    model = _with_weights(options)
    target = pl.machine_for(model, pl.machine(options.machine, options.lanes))
    dedicate(target)
    start_s = time.perf_counter()
    asked = read_options(options, ProfileOptions)
    measured = pl.profile(model, target, asked, emit=listener(options))
    if options.out:
        write_out(options.out, json.dumps(measured.to_json()) + "\n")
    answer = answers.of_profile(measured, time.perf_counter() - start_s)
    short = {k: v for k, v in answer.to_json().items() if k != "load"}
    return print_answer(options, answer, [*lines_of(short), *_busy(measured.load)])


def place(options: Namespace) -> int:
    from placement.core.placement import placement_to_text
    from placement.formats.split_json import node_names, split_to_json

    require_room(options.out, options.split)
    model, problem = read_problem(options)
    problem = hold(options, problem)
    if options.split:
        node_names(problem.graph)
    placed, stopped = _placed(options, model, problem)
    if options.out:
        write_out(options.out, placement_to_text(placed.placement))
    if options.split:
        split = split_to_json(problem, placed.placement)
        write_out(options.split, json.dumps(split) + "\n")
    answer = replace(answers.of_placed(placed), cancelled=stopped)
    short = {k: v for k, v in answer.to_json().items() if k != "finals"}
    measured = lines_of_finals(answer.finals) if answer.finals else ()
    lines = [*lines_of(short), *measured, *_doubted(problem)]
    print_answer(options, _with(options, answer, placed.placement), lines)
    return _status(stopped, placed.violations)


def steps(options: Namespace) -> int:
    from placement.core.placement import placement_to_text

    require_room(options.out)
    _, problem = read_problem(options)
    asked = read_options(options, StepsOptions)
    found = pl.steps(hold(options, problem), asked, emit=listener(options))
    if options.out:
        write_out(options.out, placement_to_text(found.placement))
    answer = answers.of_steps(found)
    return print_answer(options, answer, lines_of_steps(answer))


def _doubted(problem: "Problem") -> list[str]:
    """For a person: that the times were measured while others computed, where they were."""
    return _busy(problem.costs.load)


def _busy(load: "Load | None") -> list[str]:
    if load is None or not load.is_busy:
        return []
    again = "`profile --refresh` measures anew"
    return [f"warning: the times of kernels were measured while {load.words}; {again}"]


def _with(options: Namespace, answer: PlaceResult, placement: "Placement") -> PlaceResult:
    """What is for a person alone is without placements."""
    if options.jsonl:
        return replace(answer, placement=placement)
    return replace(answer, finals=answer.finals and answer.finals.without_placements())


def _placed(options: Namespace, model: "Model | None", problem: "Problem") -> tuple[Placed, bool]:
    """What the placer of the options finds, and whether it was stopped before it was done."""
    stop = Stop()
    with partly(stop, listener(options), SEARCH_PATIENCE_S, has_value) as emit:
        asked, keep = read_options(options, PlaceOptions), kept_placement(options)
        beside = placements_beside(options, problem)
        placed = pl.place(
            problem, asked, emit=emit, stop=stop, keep=keep, model=model, beside=beside
        )
    return placed, stop.asked


def _status(stopped: bool, failed: object) -> int:
    """The exit status of work that may have been stopped, and may have found what is not good."""
    return 128 + signal.SIGTERM if stopped else int(bool(failed))


def simulate(options: Namespace) -> int:
    _, problem = read_problem(options)
    answer = answers.of_prediction(problem, read_whole(options, problem))
    print_answer(options, answer, [*lines_of(answer.to_json()), *_doubted(problem)])
    return 1 if answer.violations else 0


def _with_weights(options: Namespace) -> "Model":
    """The model, if it has weights: nothing is placed or measured for one that is refused in the
    end. A graph alone may go on, for a virtual clock executes it."""
    model = read_model(options)
    if not model.has_weights:
        raise ValueError(model.not_executable)
    return model


def run(options: Namespace) -> int:
    model, problem = read_problem(options, model=_with_weights(options))
    inputs = read_inputs(options.inputs) if options.inputs else None
    wants_refined = read_options(options, RefineOptions).refine
    if wants_refined:
        _require_refinable(options, problem)
    placement = chosen(options, problem)
    measured_here = problem.costs.origin == "measured" and not options.profile
    profile = stored_profile(model, problem.machine) if measured_here else None
    stop = Stop()
    resumes = read_options(options, ResumeOptions).resume
    placer = options.placer or PlaceOptions.placer
    answer: RunResult
    if problem.objective is Objective.THROUGHPUT:
        pipeline = read_options(options, StreamOptions)
        with partly(stop, listener(options)) as emit:
            how: dict[str, Any] = {"inputs": inputs, "emit": emit, "stop": stop}
            if resumes:
                problem, placement, flow = stream_to_the_end(
                    model, problem, placement, pipeline, placer=placer, **how
                )
            else:
                flow = pl.stream(model, problem, placement, pipeline, **how)
        predicted, streamed = flow
        answer = answers.of_stream(problem, predicted, streamed, placement, profile)
    else:
        asked = read_options(options, RunOptions)
        emit = listener(options)
        if resumes:
            problem, placement, live = run_to_the_end(
                model, problem, placement, asked, inputs=inputs, emit=emit, placer=placer
            )
        else:
            live = pl.run(model, problem, placement, asked, inputs=inputs, emit=emit)
        predicted, measured = live
        answer = answers.of_run(problem, predicted, measured, placement, profile)
        if wants_refined:
            answer = _refined(options, model, problem, answer, placement, predicted.schedule)
    short = {k: v for k, v in answer.to_json().items() if k not in _LONG_OF_RUNS}
    if options.jsonl:
        answer = replace(answer, placement=placement, schedule=predicted.schedule)
    warning = doubts(answer)
    lines = [
        *lines_of(short),
        *lines_of_differences(answer),
        *([f"warning: {warning}"] if warning else []),
        *_doubted(problem),
    ]
    print_answer(options, answer, lines)
    if stop.asked:
        return TERMINATED
    return 1 if answer.outputs_match is False else 0


def _require_refinable(options: Namespace, problem: "Problem") -> None:
    """ValueError unless the problem's times are those that are stored here and may be refined."""
    if problem.objective is Objective.THROUGHPUT:
        raise ValueError("--refine needs runs of single steps; leave out --objective throughput.")
    if options.profile or problem.costs.origin != "measured" or problem.offloads:
        raise ValueError(
            "--refine is for times that were measured on this computer and are stored here; leave"
            " out --profile, --analytic and --offload, and choose --machine local."
        )


def _refined(
    options: Namespace,
    model: "Model",
    problem: "Problem",
    answer: RunResult,
    placement: "Placement",
    schedule: "Schedule",
) -> RunResult:
    """The answer with what the run has refined, or why it has not."""
    name, machine = options.placer or Path(options.placement).stem, problem.machine
    try:
        run = pl.refining_run(
            placement,
            schedule,
            answer.observed,
            answer.step_s.median,
            name=name,
            load=answer.load,
        )
        found = pl.refine(model, machine, run)
    except (ValueError, NotWritten) as error:
        return replace(answer, refined_note=str(error))
    steps_s = step_before_and_after(model, machine, found.profile, placement)
    return replace(answer, refined=answers.of_refined(found, steps_s))


def train(options: Namespace) -> int:
    model = _with_weights(options)
    require_training(model.graph)
    _, problem = read_problem(options, model=model)
    inputs = read_inputs(options.inputs) if options.inputs else None
    placement = chosen(options, problem)
    asked, stop = read_options(options, TrainOptions), Stop()
    with partly(stop, listener(options)) as emit:
        predicted, trained = pl.train(
            model, problem, placement, asked, inputs=inputs, emit=emit, stop=stop
        )
    found = answers.of_training(problem, predicted, trained, options.adjust)
    answer = replace(found, cancelled=stop.asked)
    if options.jsonl:
        answer = replace(answer, placement=placement, final_placement=trained.placement)
    print_answer(options, answer, _training_lines(answer))
    return TERMINATED if stop.asked else int(has_diverged(trained.losses))


def _training_lines(answer: TrainResult) -> list[str]:
    """For a person: the numbers, then a line for each move."""
    said = lines_of({k: v for k, v in answer.to_json().items() if k not in _LONG_OF_TRAINING})
    moved = (
        f"before step {move.step}: {counted(move.ops_moved, 'op')} moved with"
        f" {move.bytes_moved} bytes; {move.reason}"
        for move in answer.moves
    )
    return [*said, *moved]


def compare(options: Namespace) -> int:
    model, problem = read_problem(options)
    stop = Stop()
    with partly(stop, listener(options), SEARCH_PATIENCE_S, has_value) as emit:
        asked = read_options(options, CompareOptions)
        rows = pl.compare(model, hold(options, problem), asked, emit=emit, stop=stop)
    answer = CompareResult(rows=rows, cancelled=stop.asked) if options.jsonl else rows
    print_answer(options, answer, table_of(rows))
    failed = any(r.violations or r.error or r.outputs_match is False for r in rows)
    return _status(stop.asked, failed)


def what_if(options: Namespace) -> int:
    _, problem = read_problem(options)
    conditions = read_options(options, Conditions)
    changed, stopped = pl.what_if(problem, conditions), False
    answer: WhatIfPlaceResult | WhatIfResult
    if options.placer:
        placed, stopped = _placed(options, None, hold(options, changed))
        unchanged = answers.of_prediction(problem, placed.placement)
        found = _with(options, answers.of_placed(placed), placed.placement)
        answer = WhatIfPlaceResult(
            **{**asdict(found), "cancelled": stopped}, what_if=conditions.rows, unchanged=unchanged
        )
    else:
        placement = read_whole(options, problem)
        unchanged = answers.of_prediction(problem, placement)
        predicted = asdict(answers.of_prediction(changed, placement))
        answer = WhatIfResult(**predicted, what_if=conditions.rows, unchanged=unchanged)
    short = {k: v for k, v in answer.to_json().items() if k not in (*_LONG, "unchanged")}
    short["unchanged_value"] = unchanged.value
    print_answer(options, answer, lines_of(short))
    return _status(stopped, answer.violations)


def exporters(options: Namespace) -> int:
    rows = pl.list_exporters()
    lines = (f"{r['name']:16} {r['suffix']:9} {r['title']}: {r['summary']}" for r in rows)
    return print_answer(options, rows, lines)


def export(options: Namespace) -> int:
    model, problem = read_problem(options, measure=False)
    placement = read_whole(options, problem)
    placement.require_graph(model.graph)
    asked = read_options(options, ExportOptions)
    note = pl.export(
        model,
        problem,
        placement,
        asked.format,
        asked.out,
        label=Path(options.placement).stem,
        measured=read_timeline(asked.run) if asked.run else None,
    )
    answer = ExportResult(format=asked.format, path=asked.out, note=note)
    return print_answer(options, answer, (f"wrote {asked.out}", *([note] if note else [])))
