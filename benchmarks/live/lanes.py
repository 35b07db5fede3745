"""Is parallelism real? HEFT on two one-core lanes against the best single lane, live.

    python -m benchmarks.live.lanes [--json] [--rounds N] [MODEL ...]

Steps of the HEFT placement and of the plain model on each lane run turn by turn in one process; a
ratio below 1 means that HEFT is faster. The whole CPU with all its cores is timed afterwards in the
same process, since its threads spin and would take a lane's core.
"""

import statistics
from typing import Any

import placement as pl
from benchmarks._shared import turns
from benchmarks._shared.figures import named, show
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring
from profiling.measuring.timing import ratio_interval

COLUMNS = {
    "model": "{model}",
    "best lane ms": "{best_lane_ms:.2f}",
    "HEFT ms": "{heft_ms:.2f}",
    "predicted ms": "{predicted_ms:.2f}",
    "HEFT / lane (95 %)": "{ratio:.3f} ({low:.3f} to {high:.3f})",
    "both cores ms": "{all_cores_ms:.2f}",
}


def row(name: str, rounds: int) -> dict[str, Any]:
    """Medians in milliseconds, and the ratio HEFT / best lane with its 95 % limits."""
    model = pl.load(name)
    machine = pl.machine("two-lanes")
    problem = pl.make_problem(model, machine, pl.profile(model, machine))
    placed = pl.place(problem, "heft")
    compiled = compiled_for(problem, model)
    lanes = {d.name: d for d in problem.machine.devices}
    with (
        turns.opened(problem, compiled, {"heft": placed.schedule}) as placed_steps,
        turns.alone(compiled, lanes) as alone_steps,
    ):
        times_s = turns.turn_by_turn({**placed_steps, **alone_steps}, rounds)
    with turns.alone(compiled, {"all cores": None}) as steps:
        times_s |= turns.turn_by_turn(steps, rounds)
    medians_s = {key: statistics.median(values) for key, values in times_s.items()}
    best = min(lanes, key=lambda lane: medians_s[lane])
    ratio, low, high = ratio_interval(times_s["heft"], times_s[best], 0)
    return {
        "model": name,
        "heft_ms": medians_s["heft"] * 1e3,
        "predicted_ms": placed.value * 1e3,
        "best_lane_ms": medians_s[best] * 1e3,
        "all_cores_ms": medians_s["all cores"] * 1e3,
        "num_segments": placed.num_segments,
        "ratio": ratio,
        "low": low,
        "high": high,
    }


def main() -> None:
    options = named(__doc__, turns.samples(), rounds=40)
    with measuring("live_lanes"):
        rows = [row(name, options.rounds) for name in options.names]
    show(options.json, COLUMNS, rows)


if __name__ == "__main__":
    main()
