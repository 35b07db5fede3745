"""How good are predictions? Predicted against measured step time on two one-core lanes, live.

    python -m benchmarks.prediction [--json] [--rounds N] [MODEL ...]

For each model the placements of `single` and `heft` and five seeded random ones; their steps run
turn by turn in one process. The error is predicted / measured median - 1.
"""

import json
import random
import statistics
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared import turns
from benchmarks._shared.figures import named, table
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import step_time_s
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring

MODELS = ("onnx-inception-v2", "onnx-inception-v1", "onnx-resnet50", "onnx-squeezenet")
NUM_RANDOM = 5
COLUMNS = {
    "model": "{model}",
    "placement": "{placement}",
    "segments": "{num_segments}",
    "predicted ms": "{predicted_ms:.2f}",
    "measured ms": "{measured_ms:.2f}",
    "error": "{error:+.1%}",
}


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
    with turns.opened(problem, compiled_for(problem, model), schedules) as steps:
        times_s = turns.turn_by_turn(steps, rounds)
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
    options = named(__doc__, MODELS, rounds=30)
    with measuring("prediction"):
        found = [r for name in options.names for r in rows(name, options.rounds)]
    median, p90 = np.percentile([abs(r["error"]) for r in found], (50, 90)).tolist()
    if options.json:
        print(json.dumps({"rows": found, "median_abs_error": median, "p90_abs_error": p90}))
    else:
        print(f"{table(COLUMNS, found)}\n\nmedian {median:.1%}, 90th percentile {p90:.1%}")


if __name__ == "__main__":
    main()
