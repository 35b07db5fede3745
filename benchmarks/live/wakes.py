"""Do the threads of a device with all cores wake each on a core of its own? Live, turn by turn.

    python -m benchmarks.live.wakes [--json] [--rounds N] [--pauses MS,MS,...] [MODEL ...]

Two sessions of the model on the whole CPU, one whose threads have a core each, as devices with all
cores have (`profiling/backends/_ort/sessions.py`), and one whose threads the system puts anywhere.
In each round each of them has a turn of some steps, before each of which nothing computes for a
while. "Slow" are steps that take more than 1.5 times the least median.
"""

import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import placement as pl
from benchmarks._shared.figures import named, numbers, ratio_of, table
from benchmarks.live.fidelity import models
from placement.core.model import Model
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring

STEPS, SLOW = 10, 1.5
COLUMNS = {
    "model": "{model}",
    "pause ms": "{pause_ms}",
    "a core each ms": "{own_ms:.3g}",
    "slow": "{own_slow:.0%}",
    "anywhere ms": "{any_ms:.3g}",
    "anywhere, slow": "{any_slow:.0%}",
    "a core each / anywhere (95 %)": "{ratio:.3f} ({low:.3f} to {high:.3f})",
}


def rows(model: Model, rounds: int, pauses_ms: list[int]) -> list[dict[str, Any]]:
    machine = pl.machine("local:1")
    problem = pl.make_problem(model, machine, pl.profile(model, machine))
    compiled = compiled_for(problem, model)
    (own,) = machine.devices
    # What names one core for its first thread leaves the others to the system.
    anywhere = replace(own, core_ids=(0,))
    feeds = compiled.feeds(0, {})
    programs = [compiled.unplaced(device, feeds) for device in (own, anywhere)]
    try:
        return [_row(model.graph.name, pause_ms, programs, rounds) for pause_ms in pauses_ms]
    finally:
        for program in programs:
            program.close()


def _row(name: str, pause_ms: int, programs: list[Any], rounds: int) -> dict[str, Any]:
    times_s: list[list[float]] = [[] for _ in programs]
    for _ in range(rounds):
        for program, found in zip(programs, times_s, strict=True):
            program.run(0)
            found += [_step_s(program, pause_ms / 1e3) for _ in range(STEPS)]
    medians_s = [statistics.median(found) for found in times_s]
    limit_s = SLOW * min(medians_s)
    slow = [sum(each > limit_s for each in found) / len(found) for found in times_s]
    # Steps of a turn are alike, so that turns are what is drawn from.
    turns_s = [
        [statistics.median(f[i : i + STEPS]) for i in range(0, len(f), STEPS)] for f in times_s
    ]
    ratio = ratio_of("", *turns_s)
    return {
        "model": name,
        "pause_ms": pause_ms,
        "own_ms": 1e3 * medians_s[0],
        "own_slow": slow[0],
        "any_ms": 1e3 * medians_s[1],
        "any_slow": slow[1],
        "ratio": ratio.median,
        "low": ratio.low,
        "high": ratio.high,
    }


def _step_s(program: Any, pause_s: float) -> float:
    time.sleep(pause_s)
    began_s = time.perf_counter()
    program.run(0)
    return time.perf_counter() - began_s


def main() -> None:
    options = named(__doc__, ["small-mobilenet", "onnx-inception-v2"], rounds=30, pauses="0,3,20")
    found = []
    with measuring("wakes"), tempfile.TemporaryDirectory() as folder:
        for model in models(options.names, Path(folder)):
            found += rows(model, options.rounds, numbers(options.pauses))
    print(json.dumps(found) if options.json else table(COLUMNS, found))


if __name__ == "__main__":
    main()
