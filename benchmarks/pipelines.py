"""Throughput on two one-core lanes as a pipeline, against one lane alone, live.

    python -m benchmarks.pipelines [--json] [--placer NAME] [--rounds N] [--samples N] [MODEL ...]

Turn by turn, a stream of samples through the pipeline and as many steps of the plain model on each
lane; a ratio above 1 means that the pipeline is faster than the better lane. Every output of the
pipeline is compared with that of the plain model on the same input. A rate is samples by all the
time that they took, on both sides. A computer that is slower than when it was profiled is so for
both; "drift removed" is how far off the predicted ratio is. Files are opened in this process, as
`live/fidelity.py` does.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import placement as pl
from benchmarks._shared import turns
from benchmarks._shared.figures import named, show
from benchmarks.live.fidelity import models
from placement.api.place import Placed
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.verb_options import StreamOptions
from profiling.execution.execute import compiled_for
from profiling.execution.stream import Stream, stream
from profiling.measuring.lock import measuring
from profiling.measuring.timing import ratio_interval

COLUMNS = {
    "model": "{model}",
    "one lane /s": "{lane_samples_per_s:.2f}",
    "pipeline /s": "{samples_per_s:.2f}",
    "predicted /s": "{predicted_samples_per_s:.2f}",
    "error": "{error:+.1%}",
    "drift removed": "{without_drift:+.1%}",
    "pipeline / lane (95 %)": "{ratio:.2f} ({low:.2f} to {high:.2f})",
    "calls": "{num_segments}",
    "stages": "{num_stages}",
    "bottleneck": "{bottleneck}",
    "samples": "{samples}",
    "outputs": "{outputs}",
}


def row(name: str, model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Samples per second of both sides, and their ratio with its 95 % limits."""
    machine = pl.machine("two-lanes")
    profile = pl.profile(model, machine)
    problem = pl.make_problem(model, machine, profile, objective="throughput")
    placed = pl.place(problem, options.placer, time_limit_s=options.time_limit)
    lanes = {d.name: d for d in problem.machine.devices}
    step = pl.make_problem(model, machine, profile)
    predicted_s = {d: pl.place(step, "single", settings={"device": d}).value for d in lanes}
    asked, few = StreamOptions(samples=options.samples), max(5, options.samples // 4)
    streams: list[Stream] = []
    lanes_s: dict[str, list[float]] = {name: [] for name in lanes}
    with turns.alone(compiled_for(problem, model), lanes) as steps:
        for _ in range(options.rounds):
            streams.append(stream(problem, placed.schedule, asked, model=model, baselines=False))
            for lane, once in steps.items():
                once()
                lanes_s[lane].append(statistics.fmean(once() for _ in range(few)))
    return _row(name, problem, placed, predicted_s, streams, lanes_s)


def _row(
    name: str,
    problem: Problem,
    placed: Placed,
    predicted_s: dict[str, float],
    streams: list[Stream],
    lanes_s: dict[str, list[float]],
) -> dict[str, Any]:
    best = min(lanes_s, key=lambda lane: statistics.median(lanes_s[lane]))
    sample_s = [1.0 / one.samples_per_s for one in streams]
    ratio, low, high = ratio_interval(lanes_s[best], sample_s, 0)
    measured = 1.0 / statistics.median(sample_s)
    first = streams[0]
    return {
        "model": name,
        "placer": placed.placer,
        "lane_samples_per_s": 1.0 / statistics.median(lanes_s[best]),
        "samples_per_s": measured,
        "predicted_samples_per_s": 1.0 / placed.value,
        "error": 1.0 / placed.value / measured - 1.0,
        # As if that lane had taken what was predicted of it.
        "without_drift": predicted_s[best] / placed.value / ratio - 1.0,
        "ratio": ratio,
        "low": low,
        "high": high,
        "bottleneck": first.bottleneck,
        "contention": problem.costs.contention,
        "num_segments": placed.num_segments,
        "num_stages": first.num_stages,
        "depth": first.depth,
        "samples": sum(one.num_samples for one in streams),
        "outputs": _outputs(streams),
        "distinct_outputs": first.distinct_outputs,
    }


def _outputs(streams: list[Stream]) -> str:
    """How the outputs of all streams compare with the plain model's."""
    if all(one.bit_equal for one in streams):
        return "bit-equal"
    return "equal" if all(one.run.outputs_match for one in streams) else "DIFFER"


def main() -> None:
    defaults = {"placer": "auto", "rounds": 5, "samples": 200, "time_limit": 10.0}
    options = named(__doc__, turns.samples(), **defaults)
    with measuring("pipelines"), tempfile.TemporaryDirectory() as folder:
        opened = zip(options.names, models(options.names, Path(folder)), strict=True)
        rows = [row(Path(name).stem, model, options) for name, model in opened]
    show(options.json, COLUMNS, rows)


if __name__ == "__main__":
    main()
