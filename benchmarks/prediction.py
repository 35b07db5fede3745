"""How good are predictions? Predicted against measured step time on two one-core lanes, live.

    python -m benchmarks.prediction [--json] [--rounds N] [MODEL ...]

For each model the placements of `single` and `heft` and five seeded random ones; their steps run
turn by turn in one process. The error is predicted / measured median - 1.
"""

import argparse
import json
import random
import statistics
from typing import Any

import numpy as np

import placement as pl
from benchmarks import _live
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import step_time_s
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring

MODELS = ("onnx-inception-v2", "onnx-inception-v1", "onnx-resnet50", "onnx-squeezenet")
NUM_RANDOM = 5


def random_schedule(problem: Problem, seed: int) -> Schedule:
    """A schedule that puts every unit on a random device."""
    rng = random.Random(seed)
    units = [rng.randrange(problem.num_devices) for _ in range(problem.num_units)]
    return make_schedule(problem, problem.placement_of(units))


def rows(name: str, rounds: int) -> list[dict[str, Any]]:
    model = pl.load(name)
    machine = pl.machine("two-lanes")
    problem = pl.make_problem(model, machine, pl.profile(model, machine, refresh=True))
    schedules = {n: pl.place(problem, n).schedule for n in ("single", "heft")}
    schedules |= {f"random {i}": random_schedule(problem, i) for i in range(NUM_RANDOM)}
    with _live.opened(problem, compiled_for(problem, model), schedules) as steps:
        times_s = _live.turn_by_turn(steps, rounds)
    found = []
    for placement, schedule in schedules.items():
        predicted_s = step_time_s(problem, schedule)
        measured_s = statistics.median(times_s[placement])
        found.append(
            {
                "model": name,
                "placement": placement,
                "num_segments": len(schedule.segments),
                "predicted_ms": predicted_s * 1e3,
                "measured_ms": measured_s * 1e3,
                "error": predicted_s / measured_s - 1.0,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with measuring("prediction"):
        table = [r for name in options.models for r in rows(name, options.rounds)]
    errors = [abs(r["error"]) for r in table]
    summary = {
        "median_abs_error": float(np.median(errors)),
        "p90_abs_error": float(np.percentile(errors, 90)),
    }
    if options.json:
        print(json.dumps({"rows": table, **summary}))
        return
    print("| model | placement | segments | predicted ms | measured ms | error |")
    print("|---|---|---|---|---|---|")
    for r in table:
        print(
            f"| {r['model']} | {r['placement']} | {r['num_segments']} | {r['predicted_ms']:.2f} |"
            f" {r['measured_ms']:.2f} | {r['error']:+.1%} |"
        )
    median, p90 = summary["median_abs_error"], summary["p90_abs_error"]
    print(f"\nmedian {median:.1%}, 90th percentile {p90:.1%}")


if __name__ == "__main__":
    main()
