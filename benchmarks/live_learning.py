"""Does learning from measured steps make a placement faster, measured afterwards and apart?

    python -m benchmarks.live_learning [--json] [--rounds N] [--placements N] [MODEL ...]

A learner places each model on two one-core lanes by simulation, and again with as many measured
placements in the end. Steps of both answers then run turn by turn in one process, which neither of
them has seen; a ratio below 1 means that measuring has made the step shorter.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import placement as pl
from benchmarks._shared import turns
from benchmarks._shared.figures import named, show
from placement.core.verb_options import PlaceOptions
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring
from profiling.measuring.timing import ratio_interval

MODELS = ("onnx-squeezenet", "onnx-inception-v1")
LEARNERS = ("group_pg", "mutation")
BATCHES = 300
COLUMNS = {
    "model": "{model}",
    "placer": "{placer}",
    "measured": "{num_measured:.0f}",
    "by simulation, ms": "{simulated_ms:.2f}",
    "and measured, ms": "{live_ms:.2f}",
    "measured / simulated (95 %)": "{ratio:.3f} ({low:.3f} to {high:.3f})",
    "account": "{account}",
}


def rows(name: str, rounds: int, placements: int) -> Iterator[dict[str, Any]]:
    """A learner's two answers each, in turns, with the ratio of their steps and its 95 % limits."""
    model, machine = pl.load(name), pl.machine("two-lanes")
    problem = pl.make_problem(model, machine, pl.profile(model, machine))
    compiled = compiled_for(problem, model)
    for placer in LEARNERS:
        # By number of batches, so that both searches come to the same before anything is measured.
        asked = PlaceOptions(placer=placer, settings={"max_iterations": BATCHES})
        live = replace(asked, live=True, live_placements=placements)
        simulated = pl.place(problem, asked)
        measured = pl.place(problem, live, model=model)
        schedules = {"simulated": simulated.schedule, "measured": measured.schedule}
        with measuring("live_learning"), turns.opened(problem, compiled, schedules) as steps:
            times_s = turns.turn_by_turn(steps, rounds)
        ratio, low, high = ratio_interval(times_s["measured"], times_s["simulated"], 0)
        yield {
            "model": name,
            "placer": placer,
            "num_measured": placements,
            "simulated_ms": 1e3 * sorted(times_s["simulated"])[rounds // 2],
            "live_ms": 1e3 * sorted(times_s["measured"])[rounds // 2],
            "ratio": ratio,
            "low": low,
            "high": high,
            "account": measured.account.rpartition(". ")[2],
        }


def main() -> None:
    options = named(__doc__, MODELS, rounds=100, placements=200)
    found = (
        row for name in options.names for row in rows(name, options.rounds, options.placements)
    )
    show(options.json, COLUMNS, list(found))


if __name__ == "__main__":
    main()
