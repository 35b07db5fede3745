"""Throughput on two one-core lanes as a pipeline, against one lane alone, live.

    python -m benchmarks.pipelines [--json] [--placer NAME] [--rounds N] [--samples N] [MODEL ...]

Turn by turn, a stream of samples through the pipeline and as many steps of the plain model on each
lane; a ratio above 1 means that the pipeline is faster than the better lane. Every output of the
pipeline is compared with that of the plain model on the same input. A rate is samples by all the
time that they took, on both sides.
"""

import argparse
import json
import statistics
from typing import Any

import placement as pl
from benchmarks import _live
from placement.api.place import Placed
from placement.core.problem import Problem
from placement.core.verb_options import StreamOptions
from profiling.execution.execute import compiled_for
from profiling.execution.stream import Stream, stream
from profiling.measuring.lock import measuring
from profiling.measuring.timing import ratio_interval


def row(name: str, placer: str, rounds: int, samples: int, time_limit_s: float) -> dict[str, Any]:
    """Samples per second of both sides, and their ratio with its 95 % limits."""
    model = pl.load(name)
    machine = pl.machine("two-lanes")
    profile = pl.profile(model, machine)
    problem = pl.make_problem(model, machine, profile, objective="throughput")
    placed = pl.place(problem, placer, time_limit_s=time_limit_s)
    lanes = {d.name: d for d in problem.machine.devices}
    streams: list[Stream] = []
    lanes_s: dict[str, list[float]] = {name: [] for name in lanes}
    with _live.alone(compiled_for(problem, model), lanes) as steps:
        for _ in range(rounds):
            streams.append(
                stream(
                    problem,
                    placed.schedule,
                    StreamOptions(samples=samples),
                    model=model,
                    baselines=False,
                )
            )
            for lane, step in steps.items():
                step()
                lanes_s[lane].append(statistics.fmean(step() for _ in range(max(5, samples // 4))))
    return _row(name, problem, placed, streams, lanes_s)


def _row(
    name: str,
    problem: Problem,
    placed: Placed,
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
        "ratio": ratio,
        "low": low,
        "high": high,
        "bottleneck": first.bottleneck,
        "contention": problem.costs.contention,
        "num_segments": placed.num_segments,
        "num_stages": first.num_stages,
        "depth": first.depth,
        "samples": sum(one.num_samples for one in streams),
        "outputs_match": all(one.run.outputs_match for one in streams),
        "bit_equal": all(one.bit_equal for one in streams),
        "distinct_outputs": first.distinct_outputs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="default: every bundled sample")
    parser.add_argument("--placer", default="auto")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = options.models or [s["name"] for s in pl.samples() if "onnx" in s["name"]]
    with measuring("pipelines"):
        rows = [
            row(name, options.placer, options.rounds, options.samples, options.time_limit)
            for name in names
        ]
    if options.json:
        print(json.dumps(rows))
        return
    print(
        "| model | one lane /s | pipeline /s | predicted /s | error | pipeline / lane (95 %) |"
        " calls | stages | bottleneck | samples | outputs |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        print(
            f"| {r['model']} | {r['lane_samples_per_s']:.2f} | {r['samples_per_s']:.2f} |"
            f" {r['predicted_samples_per_s']:.2f} | {r['error']:+.1%} |"
            f" {r['ratio']:.2f} ({r['low']:.2f} to {r['high']:.2f}) | {r['num_segments']} |"
            f" {r['num_stages']} | {r['bottleneck']} | {r['samples']} |"
            f" {'bit-equal' if r['bit_equal'] else 'equal' if r['outputs_match'] else 'DIFFER'} |"
        )


if __name__ == "__main__":
    main()
