"""Is the measured best ever slower than the best single device? `auto` with `--live`, two lanes.

    python -m benchmarks.live.tournament [--json] [--limit S] [--rounds N] [--seed N] [MODEL ...]

For each model the finalists of `auto`, each lane alone and the whole CPU race for at most `--limit`
seconds. Then the winner and each lane alone are opened anew and their steps timed turn by turn; a
loss is a winner whose steps are longer than those of the best lane by more than the 95 % interval
of the ratio. Without models: all bundled ONNX networks and six that are built here. Files are
opened in this process, not in a confined one: give it those of people you trust.
"""

import json
import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import placement as pl
from benchmarks._shared import turns
from benchmarks._shared.figures import named, table
from benchmarks.live.fidelity import models
from placement.api.finals import Final
from placement.core.model import Model
from placement.core.problem import Problem
from placement.schedule.simulated import simulate
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring
from profiling.measuring.timing import ratio_interval

SEARCH_S = 5.0
WINNER = "winner"
COLUMNS = {
    "model": "{model}",
    "winner": "{winner}",
    "of": "{num_entrants}",
    "certain": "{certain}",
    "winner ms": "{winner_ms:.2f}",
    "best lane ms": "{best_lane_ms:.2f}",
    "winner / lane (95 %)": "{ratio:.3f} ({low:.3f} to {high:.3f})",
    "loss": "{loss}",
}


def row(model: Model, limit_s: float, rounds: int, seed: int) -> dict[str, Any]:
    """Who won, and the ratio of its step to that of the best lane with its 95 % limits."""
    lanes = pl.machine("two-lanes")
    problem = pl.make_problem(model, lanes, pl.profile(model, lanes, refresh=True))
    placed = pl.place(
        problem,
        "auto",
        model=model,
        live=True,
        live_limit_s=limit_s,
        time_limit_s=SEARCH_S,
        seed=seed,
    )
    finals = placed.finals
    assert finals is not None
    winner = finals.winner
    times_s = _timed(model, problem, winner, rounds, seed)
    lanes_s = {name: steps_s for name, steps_s in times_s.items() if name != WINNER}
    best = min(lanes_s, key=lambda name: statistics.median(lanes_s[name]))
    ratio, low, high = ratio_interval(times_s[WINNER], times_s[best], 0)
    return {
        "model": model.graph.name,
        "winner": winner.name,
        "num_entrants": len(finals.entries),
        "certain": "yes" if finals.is_certain else "no",
        "winner_ms": statistics.median(times_s[WINNER]) * 1e3,
        "best_lane_ms": statistics.median(times_s[best]) * 1e3,
        "ratio": ratio,
        "low": low,
        "high": high,
        "loss": "yes" if low > 1.0 else "no",
    }


def _timed(
    model: Model, problem: Problem, winner: Final, rounds: int, seed: int
) -> dict[str, list[float]]:
    """Seconds by round of the winner and of each lane alone, all opened anew."""
    schedule = simulate(winner.problem, winner.placement).schedule
    alone = {
        device.name: pl.place(problem, "single", settings={"device": device.name}).schedule
        for device in problem.machine.devices
    }
    with ExitStack() as stack:
        steps: dict[str, Callable[[], float]] = {}
        for made, schedules in ((winner.problem, {WINNER: schedule}), (problem, alone)):
            compiled = compiled_for(made, model)
            steps |= stack.enter_context(turns.opened(made, compiled, schedules, seed))
        return turns.turn_by_turn(steps, rounds)


def main() -> None:
    from benchmarks._fidelity.networks import WRITTEN

    options = named(__doc__, [*turns.samples(), *WRITTEN], limit=10.0, rounds=30, seed=0)
    found = []
    with measuring("tournament"), tempfile.TemporaryDirectory() as folder:
        for model in models(options.names, Path(folder)):
            found.append(row(model, options.limit, options.rounds, options.seed))
            if not options.json:
                print(table(COLUMNS, found[-1:]), flush=True)
    losses = sum(line["loss"] == "yes" for line in found)
    if options.json:
        print(json.dumps({"rows": found, "losses": losses}))
    else:
        print(f"\n{table(COLUMNS, found)}\n\n{losses} losses in {len(found)}")


if __name__ == "__main__":
    main()
