"""What each verb of the command line does with its options; returns the exit status."""

import json
import math
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement import answers, pipeline
from placement.stopping import Stop, has_value, partly

if TYPE_CHECKING:
    from placement.core.graph import Graph
    from placement.core.machine import Machine
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.timeline import Timeline

MAX_JSON_BYTES = 512 * 2**20
# A search that is told to stop compares what it has found; on large graphs that takes seconds.
SEARCH_PATIENCE_S = 15.0
_SPEED, _MEMORY = ("--speed", "DEVICE=FACTOR"), ("--memory", "DEVICE=BYTES")
# The exit status of a process that was ended by SIGTERM, also where it still had something to say.
TERMINATED = 143


def samples(options: Namespace) -> int:
    rows = pipeline.samples()
    return _print(
        options, rows, (f"{r['name']:24} {r['num_ops']:5} ops  {r['source']}" for r in rows)
    )


def inspect(options: Namespace) -> int:
    answer = pipeline.inspect(_model(options))
    return _print(options, answer, (f"{key}: {value}" for key, value in answer.items()))


def machine(options: Namespace) -> int:
    from placement.core.machine import machine_to_text

    found = pipeline.machine(options.machine, options.lanes)
    if options.out:
        Path(options.out).write_text(machine_to_text(found))
    answer = answers.of_machine(found)
    lines = [
        f"{d.name}: {d.label or d.kind}, {d.cores} cores, {d.provider or d.runtime}"
        for d in found.devices
    ]
    return _print(options, answer, lines)


def placers(options: Namespace) -> int:
    rows = pipeline.placers()
    return _print(options, rows, _placer_lines(rows))


def _placer_lines(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        lines.append(f"{row['name']:14} {row['summary']}")
        for name, field in row["settings"].items():
            lines.append(f"{'':14}   --set {name}={field['default']}  {field['help']}")
    return lines


def profile(options: Namespace) -> int:
    model = _model(options)
    target = pipeline.machine_for(model, pipeline.machine(options.machine, options.lanes))
    _dedicate(target)
    start_s = time.perf_counter()
    measured = pipeline.profile(model, target, emit=_listener(options), refresh=options.refresh)
    if options.out:
        Path(options.out).write_text(json.dumps(measured.to_json()) + "\n")
    answer = answers.of_profile(measured, time.perf_counter() - start_s)
    return _print(options, answer, (f"{key}: {value}" for key, value in answer.items()))


def place(options: Namespace) -> int:
    from placement.core.placement import placement_to_text
    from placement.split_file import node_names, split_to_json

    _, problem = _problem(options)
    problem = _held(options, problem)
    if options.split:
        node_names(problem.graph)
    placed, stopped = _placed(options, problem)
    if options.out:
        Path(options.out).write_text(placement_to_text(placed.placement))
    if options.split:
        split = split_to_json(problem, placed.placement)
        Path(options.split).write_text(json.dumps(split) + "\n")
    answer = answers.of_placed(placed)
    if stopped:
        answer["cancelled"] = True
    if options.jsonl:
        answer["placement"] = placed.placement.to_json()
    _print(options, answer, (f"{key}: {value}" for key, value in answer.items()))
    return _status(stopped, placed.violations)


def _placed(options: Namespace, problem: "Problem") -> tuple[pipeline.Placed, bool]:
    """What the placer of the options finds, and whether it was stopped before it was done."""
    stop = Stop()
    with partly(stop, _listener(options), SEARCH_PATIENCE_S, has_value) as emit:
        placed = pipeline.place(
            problem,
            options.placer,
            settings=dict(_pair(s, "--set", "NAME=VALUE", first=True) for s in options.set),
            time_limit_s=options.time_limit,
            seed=options.seed,
            emit=emit,
            stop=stop,
        )
    return placed, stop.asked


def _status(stopped: bool, failed: object) -> int:
    """The exit status of work that may have been stopped, and may have found what is not good."""
    return 128 + signal.SIGTERM if stopped else int(bool(failed))


def _held(options: Namespace, problem: "Problem") -> "Problem":
    """The problem with everything that its placer may not move."""
    from placement.pinning import held, whole

    pins = [_pair(p, "--pin", "OP=DEVICE") for p in options.pin]
    if options.pins:
        pins += _pins(options.pins)
    if options.mend:
        unknown = next((op for op, _ in pins if op not in problem.graph.index), None)
        if unknown is not None:
            raise ValueError(f"Op {unknown!r} is pinned but not in {problem.graph.name!r}.")
        pins = list(whole(problem, dict(pins)).items())
    keep, move = (str(getattr(options, key, None) or "") for key in ("keep", "move"))
    if bool(keep) != bool(move):
        raise ValueError("--keep and --move belong together: a placement, and what may leave it.")
    if keep:
        pins = list(held(problem, dict(pins), _placement(keep), _names(move)).items())
    return replace(problem, pins=tuple(pins)) if pins else problem


def _pins(path: str) -> list[tuple[str, str]]:
    content = _json_file(path)
    if not isinstance(content, dict) or not all(isinstance(d, str) for d in content.values()):
        raise ValueError(f'The pins in {path!r} are not of the form {{"op": "device"}}.')
    return list(content.items())


def _names(path: str) -> list[str]:
    content = _json_file(path)
    if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
        raise ValueError(f"The file {path!r} is not a JSON list of op names.")
    return content


def simulate(options: Namespace) -> int:
    _, problem = _problem(options)
    answer = answers.of_prediction(problem, _whole(options, problem))
    _print(options, answer, (f"{key}: {value}" for key, value in answer.items()))
    return 1 if answer["violations"] else 0


def run(options: Namespace) -> int:
    model, problem = _problem(options)
    inputs = _inputs(options.inputs) if options.inputs else None
    if options.placer:
        placement = pipeline.place(
            problem, options.placer, seed=options.seed, emit=_listener(options)
        ).placement
    else:
        placement = _whole(options, problem)
    common = {
        "warmup": options.warmup,
        "seed": options.seed,
        "inputs": inputs,
        "timeout_s": options.timeout,
    }
    stop = Stop()
    if problem.objective == "throughput":
        with partly(stop, _listener(options)) as emit:
            predicted, streamed = pipeline.stream(
                model,
                problem,
                placement,
                samples=options.steps,
                depth=options.depth,
                emit=emit,
                stop=stop,
                **common,
            )
        answer = answers.of_stream(problem, predicted, streamed, placement)
    else:
        predicted, measured = pipeline.run(
            model, problem, placement, steps=options.steps, emit=_listener(options), **common
        )
        answer = answers.of_run(predicted, measured, placement, problem.costs.origin)
    if options.jsonl:
        answer["placement"] = placement.to_json()
        answer["schedule"] = predicted.schedule.to_json()
    short = {
        k: v
        for k, v in answer.items()
        if "timeline" not in k and k not in ("steps_s", "critical_path")
    }
    _print(options, answer, (f"{key}: {value}" for key, value in short.items()))
    if stop.asked:
        return TERMINATED
    return 1 if answer["outputs_match"] is False else 0


def compare(options: Namespace) -> int:
    model, problem = _problem(options)
    names = [n.strip() for n in options.placers.split(",") if n.strip()]
    stop = Stop()
    with partly(stop, _listener(options), SEARCH_PATIENCE_S, has_value) as emit:
        rows = pipeline.compare(
            model,
            _held(options, problem),
            names,
            time_limit_s=options.time_limit,
            seed=options.seed,
            live=options.live,
            emit=emit,
            stop=stop,
        )
    answer: Any = {"rows": rows, "cancelled": stop.asked} if options.jsonl else rows
    _print(options, answer, (_compared_line(row) for row in rows))
    failed = any(r["violations"] or r["error"] or r["outputs_match"] is False for r in rows)
    return _status(stop.asked, failed)


def _compared_line(row: Mapping[str, Any]) -> str:
    """A row for a person: what decides first, and nothing that is empty."""
    if row["value"] is None:
        return f"placer={row['placer']} error={row['error']}"
    first = ("placer", "value", "unit", "lower_bound", "gap", "proven_optimal", "seconds")
    last = ("measured_s", "outputs_match", "error", "costs", "violations", "account")
    shown = [key for key in (*first, *last) if row[key] not in (None, "", [])]
    return " ".join(f"{key}={row[key]}" for key in shown)


def what_if(options: Namespace) -> int:
    _, problem = _problem(options)
    conditions = _conditions(options)
    changed, stopped = pipeline.what_if(problem, conditions), False
    if options.placer:
        placed, stopped = _placed(options, _held(options, changed))
        placement, answer = placed.placement, answers.of_placed(placed)
        if options.jsonl:
            answer["placement"] = placement.to_json()
    else:
        placement = _whole(options, problem)
        answer = answers.of_prediction(changed, placement)
    answer["what_if"] = conditions.to_json()
    answer["unchanged"] = answers.of_prediction(problem, placement)
    answer |= {"simulated": True, "cancelled": stopped}
    short = {k: v for k, v in answer.items() if k not in ("critical_path", "unchanged")}
    short["unchanged_value"] = answer["unchanged"]["value"]
    _print(options, answer, (f"{key}: {value}" for key, value in short.items()))
    return _status(stopped, answer["violations"])


def _conditions(options: Namespace) -> pipeline.Conditions:
    speed = {d: _number(f, "--speed") for d, f in (_pair(s, *_SPEED) for s in options.speed)}
    limits = (_pair(m, *_MEMORY) for m in options.memory)
    return pipeline.Conditions(
        speed,
        options.bandwidth,
        options.latency,
        {d: None if b.lower() == "none" else int(_number(b, "--memory")) for d, b in limits},
    )


def _number(text: str, option: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} is not a number.") from None
    if not math.isfinite(number):
        raise ValueError(f"{option} {text!r} is not a finite number.")
    return number


def exporters(options: Namespace) -> int:
    rows = pipeline.exporters()
    lines = (f"{r['name']:16} {r['suffix']:9} {r['title']}: {r['summary']}" for r in rows)
    return _print(options, rows, lines)


def export(options: Namespace) -> int:
    model, problem = _problem(options, measure=False)
    placement = _whole(options, problem)
    placement.require_graph(model.graph)
    pipeline.export(
        model,
        problem,
        placement,
        options.format,
        options.out,
        label=Path(options.placement).stem,
        measured=_timeline(options.run) if options.run else None,
        view=lambda: _view(model.graph),
    )
    answer = {"format": options.format, "path": options.out}
    return _print(options, answer, (f"wrote {options.out}",))


def _view(graph: "Graph") -> Any:
    """The picture that the studio shows at first sight of a graph."""
    from pages.ui import canvas

    return canvas.build_view(graph, canvas.default_expanded(graph))


def _timeline(path: str) -> "Timeline":
    """The measured timeline in what `run --json` or `run --jsonl` printed."""
    from placement.core.timeline import timeline_from_json

    result = _result(path)
    try:
        return timeline_from_json(result["timeline"])
    except (KeyError, TypeError, ValueError, AssertionError):
        raise ValueError(
            f"The file {path!r} is not the result of a run; write one with run --json."
        ) from None


def _result(path: str) -> Any:
    """A JSON file, or the last line of a file of JSON lines."""
    try:
        return _json_file(path)
    except ValueError:
        if not Path(path).is_file():
            raise
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        try:
            return json.loads(lines[-1])
        except (ValueError, IndexError, RecursionError):
            raise ValueError(f"The file {path!r} is not JSON; write it anew.") from None


def _model(options: Namespace) -> "Model":
    dims = {}
    for name, value in (_pair(d, "--dim", "NAME=N") for d in options.dim):
        if not value.isdigit() or int(value) < 1:
            raise ValueError(f"--dim {name}={value} is not a whole number of 1 or more.")
        dims[name] = int(value)
    return pipeline.load(options.input, dims)


def _problem(options: Namespace, *, measure: bool = True) -> tuple["Model", "Problem"]:
    """The model and its problem: given costs, else a profile, else measured here, else analytic.

    Without `measure` only what was measured before counts.
    """
    from placement.core.profile import profile_from_json

    model = _model(options)
    if model.problem is not None:
        given = {"--lanes": options.lanes, "--profile": options.profile}
        given["--machine"] = options.machine != "local"
        for name in (name for name, value in given.items() if value):
            raise ValueError(f"{options.input!r} carries its own machine and costs; drop {name}.")
        return model, pipeline.make_problem(
            model, model.problem.machine, objective=options.objective
        )
    target = pipeline.machine_for(model, pipeline.machine(options.machine, options.lanes))
    costs = None
    if options.profile:
        costs = profile_from_json(_json_file(options.profile))
    elif not options.analytic and pipeline.can_measure(model, target):
        if not measure:
            costs = pipeline.stored_profile(model, target)
            return model, pipeline.make_problem(model, target, costs, objective=options.objective)
        _dedicate(target)
        costs = pipeline.profile(model, target, emit=_listener(options))
    return model, pipeline.make_problem(model, target, costs, objective=options.objective)


def _dedicate(machine: "Machine") -> None:
    """Let the runtimes of a machine tune this process to it: a command serves one machine only."""
    from profiling import backends

    for runtime in dict.fromkeys(d.runtime for d in machine.devices):
        backends.usable(runtime).dedicate(machine)


def _placement(path: str) -> "Placement":
    from placement.core.placement import placement_from_json

    return placement_from_json(_json_file(path))


def _whole(options: Namespace, problem: "Problem") -> "Placement":
    """The placement of a file, mended where that is asked for."""
    from placement.mend import mended

    placement = _placement(options.placement)
    return mended(problem, placement) if options.mend else placement


def _json_file(path: str) -> Any:
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"There is no file {path!r}; check the path.")
    if file.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(f"The file {path!r} is larger than {MAX_JSON_BYTES} bytes; it is refused.")
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"The file {path!r} is not JSON; export it again.") from None


def _inputs(path: str) -> dict[str, Any]:
    import numpy as np

    if not Path(path).is_file():
        raise ValueError(f"There is no file {path!r}; check the path.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception:
        raise ValueError(f"The file {path!r} is not an .npz archive of plain arrays.") from None


def _pair(text: str, option: str, form: str, *, first: bool = False) -> tuple[str, str]:
    """Split NAME=VALUE at the last "=", or at the first (values may hold the sign themselves)."""
    name, sign, value = text.partition("=") if first else text.rpartition("=")
    if not sign or not name:
        raise ValueError(f"{option} {text!r} is not of the form {form}.")
    return name, value


def _listener(options: Namespace) -> pipeline.Emit:
    """Events to standard output as JSON lines, or progress to a person's terminal, or nowhere."""
    if getattr(options, "jsonl", False):
        return _print_event
    if sys.stderr.isatty():
        return _show_progress
    return pipeline.silent


def _print_event(event: dict[str, Any]) -> bool:
    print(json.dumps(_finite(event), allow_nan=False), flush=event["event"] != "span")
    return True


def _show_progress(event: dict[str, Any]) -> bool:
    if event["event"] == "progress":
        text = event.get("what", "")
        print(
            f"\r{event.get('step', '')}/{event.get('of', '')} {text:60.60}", end="", file=sys.stderr
        )
    elif event["event"] == "waiting":
        print(f"\r{event['holder']}", file=sys.stderr)
    return True


def _print(options: Namespace, answer: Any, lines: Any) -> int:
    if getattr(options, "jsonl", False):
        print(json.dumps(_finite({"event": "result", **answer}), allow_nan=False), flush=True)
    elif options.json:
        print(json.dumps(_finite(answer), allow_nan=False), flush=True)
    else:
        for line in lines:
            print(line)
    return 0


def _finite(answer: Any) -> Any:
    """The same with null for numbers that JSON lacks, as the time of an unsupported op."""
    if isinstance(answer, float):
        return answer if math.isfinite(answer) else None
    if isinstance(answer, Mapping):
        return {key: _finite(value) for key, value in answer.items()}
    return [_finite(value) for value in answer] if isinstance(answer, list | tuple) else answer
