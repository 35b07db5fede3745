"""Training steps of the zoo, live: what capturing a step costs, and what two lanes gain.

    python -m benchmarks.torch_steps [--json] [--rounds N] [--placers heft,...] [--drawn N]
        [--seed N] [NETWORK ...]

Of each network, in a process of its own: the captured step on one lane beside the same step of
plain PyTorch with the same thread, turn by turn; and placements on two one-core lanes beside the
captured step on each lane alone; with `--drawn 2` also two placements as by hand and two by chance,
as `benchmarks.live.fidelity` draws them from the seed. A ratio to plain PyTorch below 1 means that
the captured step is faster, a ratio to the best lane below 1 that two lanes are. Plain PyTorch with
both cores is timed afterwards, since its threads would take a lane's core.
"""

import argparse
import json
import statistics
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

from benchmarks._shared import turns
from benchmarks._shared.figures import parser, table
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.loaders.zoo import TRAINING

# Networks with the sizes at which a step of one core lasts about a second.
DIMS: dict[str, dict[str, int]] = {
    "alexnet": {"batch": 4},
    "bert_base": {"batch": 2, "length": 64},
    "gpt2": {"batch": 2, "length": 64},
    "inception_v3": {"batch": 2},
    "nmt": {"batch": 16, "length": 8},
    "resnet50": {"batch": 2},
    "rnnlm": {"batch": 20, "length": 20},
    "vgg16": {"batch": 1},
}
PLACERS = ("heft",)
WARMUP = 2
# For rounds that are made anew, because cores were shared or had moved since the profile.
PATIENCE_S = 120.0


def row(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Medians in milliseconds, and ratios with their 95 % limits, measured in this process."""
    import placement as pl
    from benchmarks._shared.torch_eager import EagerStep
    from placement.schedule.simulated import simulate_schedule
    from profiling.devices.cores import usable_cores
    from profiling.execution.execute import compiled_for
    from profiling.measuring.siblings import Siblings
    from profiling.measuring.timing import ratio_interval

    dims = DIMS[name]
    model = pl.load(name + TRAINING, dims)
    machine = pl.machine_for(model, pl.machine("two-lanes"))
    problem = pl.make_problem(model, machine, pl.profile(model, machine))
    placed = {placer: pl.place(problem, placer).schedule for placer in options.placers.split(",")}
    placed |= _drawn(problem, options.drawn, options.seed)
    predicted = {key: simulate_schedule(problem, schedule) for key, schedule in placed.items()}
    compiled = compiled_for(problem, model)
    lanes = {device.name: device for device in problem.machine.devices}
    first = problem.machine.devices[0]
    one = pl.place(problem, "single")
    with ExitStack() as stack:
        plain = stack.enter_context(turns.running("plain", EagerStep(name, dims, first), first))
        steps = stack.enter_context(
            turns.opened(problem, compiled, {"one lane": one.schedule, **placed})
        )
        alone = stack.enter_context(turns.alone(compiled, lanes))
        cores = sorted(core for device in machine.devices for core in device.core_ids)
        beside = Siblings(
            cores or usable_cores(), core_to_core_s=_profiled_s(problem), patience_s=PATIENCE_S
        )
        times_s = turns.turn_by_turn({**plain, **steps, **alone}, options.rounds, WARMUP, beside)
    with turns.running("both cores", EagerStep(name, dims, None), None) as steps:
        times_s |= turns.turn_by_turn(steps, max(3, options.rounds // 2), WARMUP)
    medians_s = {key: statistics.median(values) for key, values in times_s.items()}
    best = min([*lanes, "one lane"], key=lambda key: medians_s[key])
    return {
        "network": name,
        "dims": dims,
        "num_ops": len(model.graph.ops),
        "num_again": beside.num_again,
        "beside": beside.share,
        "core_to_core_ns": [s and s * 1e9 for s in (beside.core_to_core_s, _profiled_s(problem))],
        "ms": {key: value * 1e3 for key, value in medians_s.items()},
        "predicted_ms": {key: found.value * 1e3 for key, found in predicted.items()},
        "num_segments": {key: len(schedule.segments) for key, schedule in placed.items()},
        "best_lane_ms": medians_s[best] * 1e3,
        "to_plain": ratio_interval(times_s["one lane"], times_s["plain"], 0),
        "to_best_lane": {key: ratio_interval(times_s[key], times_s[best], 0) for key in placed},
    }


def _profiled_s(problem: Problem) -> float | None:
    load = problem.costs.load
    return load.core_to_core_s if load else None


def _drawn(problem: Problem, num: int, seed: int) -> dict[str, Schedule]:
    from benchmarks._fidelity.placements import schedules

    found: dict[str, dict[str, Schedule]] = {"by hand": {}, "random": {}}
    for kind, name, schedule in schedules(problem, seed):
        if all(len(listed) >= num for listed in found.values()):
            break
        if kind in found and len(found[kind]) < num:
            found[kind][name] = schedule
    return found["by hand"] | found["random"]


def in_own_process(name: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.torch_steps", "--worker", name]
    command += ["--rounds", str(options.rounds), "--placers", options.placers]
    command += ["--drawn", str(options.drawn), "--seed", str(options.seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


COLUMNS = {
    "network": "{network}",
    "sizes": "{sizes}",
    "ops": "{num_ops}",
    "plain ms": "{ms[plain]:.0f}",
    "one lane ms": "{ms[one lane]:.0f}",
    "one lane / plain (95 %)": "{to_plain[0]:.3f} ({to_plain[1]:.3f} to {to_plain[2]:.3f})",
    "best lane ms": "{best_lane_ms:.0f}",
    "placer": "{placer}",
    "two lanes ms": "{placed_ms:.0f}",
    "predicted ms": "{expected_ms:.0f}",
    "error": "{error:+.1%}",
    "two lanes / best lane (95 %)": "{ratio[0]:.3f} ({ratio[1]:.3f} to {ratio[2]:.3f})",
    "plain, both cores ms": "{ms[both cores]:.0f}",
}


def text(rows: list[dict[str, Any]]) -> str:
    found = [
        {
            **row,
            "sizes": ", ".join(f"{key} {value}" for key, value in row["dims"].items()),
            "placer": placer,
            "placed_ms": row["ms"][placer],
            "expected_ms": row["predicted_ms"][placer],
            "error": row["predicted_ms"][placer] / row["ms"][placer] - 1.0,
            "ratio": ratio,
        }
        for row in rows
        for placer, ratio in row["to_best_lane"].items()
    ]
    median = statistics.median(row["to_plain"][0] for row in rows)
    errors = sorted(abs(row["error"]) for row in found)
    return (
        f"{table(COLUMNS, found)}\n\nMedian of one lane / plain PyTorch: {median:.3f}; error of"
        f" predictions: {statistics.median(errors):.1%} in the median, {errors[-1]:.1%} at most"
    )


def main() -> None:
    made = parser(__doc__, rounds=12, placers=",".join(PLACERS), drawn=0, seed=0)
    made.add_argument("networks", nargs="*", help=f"default: {', '.join(DIMS)}")
    made.add_argument("--worker", help=argparse.SUPPRESS)
    options = made.parse_args()
    if options.worker:
        from profiling.measuring.lock import measuring

        with measuring("torch_steps"):
            answer = row(options.worker, options)
        print(json.dumps(answer))
        return
    rows = []
    for name in options.networks or DIMS:
        rows.append(in_own_process(name, options))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(json.dumps(rows) if options.json else text(rows))


if __name__ == "__main__":
    main()
