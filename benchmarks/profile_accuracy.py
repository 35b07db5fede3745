"""Do kernel times add up? Their sum on one lane against that lane's measured step time.

    python -m benchmarks.profile_accuracy [--json] [--profiles N] [MODEL ...]

Each profile is taken anew; the step time is measured apart from the profile, as a live run of the
whole model in one segment and as a plain session, turn by turn. Ratios are the median over profiles
of the kernels' sum, over each.
"""

import statistics
from typing import Any

import placement as pl
from benchmarks._shared import turns
from benchmarks._shared.figures import named, show
from profiling.execution.execute import compiled_for
from profiling.measuring import kernels
from profiling.measuring.lock import measuring

MODELS = ("onnx-resnet50", "onnx-inception-v2", "onnx-squeezenet", "onnx-densenet121")
ROUNDS = 20
COLUMNS = {
    "model": "{model}",
    "sum of kernels ms": "{sum_of_kernels_ms:.2f}",
    "live step ms": "{live_step_ms:.2f}",
    "plain step ms": "{plain_step_ms:.2f}",
    "sum / live": "{sum_over_live:.3f}",
    "sum / plain": "{sum_over_plain:.3f}",
}


def row(name: str, num_profiles: int) -> dict[str, Any]:
    """Milliseconds on the first of two one-core lanes."""
    model, machine = pl.load(name), pl.machine("two-lanes")
    lane = machine.devices[0]
    sums_s, live_s, plain_s = [], [], []
    for _ in range(num_profiles):
        profile = kernels.profile(model, machine)
        sums_s.append(sum(times[0] or 0.0 for times in profile.compute_s))
        problem = pl.make_problem(model, machine, profile)
        whole = pl.place(problem, "single", settings={"device": lane.name}).schedule
        compiled = compiled_for(problem, model)
        with (
            turns.opened(problem, compiled, {"live": whole}) as live,
            turns.alone(compiled, {"plain": lane}) as plain,
        ):
            times_s = turns.turn_by_turn({**live, **plain}, ROUNDS)
        live_s.append(statistics.median(times_s["live"]))
        plain_s.append(statistics.median(times_s["plain"]))
    total_s = statistics.median(sums_s)
    return {
        "model": name,
        "sum_of_kernels_ms": total_s * 1e3,
        "live_step_ms": statistics.median(live_s) * 1e3,
        "plain_step_ms": statistics.median(plain_s) * 1e3,
        "sum_over_live": total_s / statistics.median(live_s),
        "sum_over_plain": total_s / statistics.median(plain_s),
    }


def main() -> None:
    options = named(__doc__, MODELS, profiles=5)
    with measuring("profile_accuracy"):
        rows = [row(name, options.profiles) for name in options.names]
    show(options.json, COLUMNS, rows)


if __name__ == "__main__":
    main()
