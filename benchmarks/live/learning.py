"""Does measuring placements in the end make them faster, measured afterwards and apart?

    python -m benchmarks.live.learning [--json] [--rounds N] [--placements N] [--placers A,B]
        [MODEL ...]

A placer places each model on two one-core lanes by simulation, and again with measurements in the
end: one that learns with as many measured placements, `auto` with a tournament. Steps of both
answers, of each lane alone and of the whole CPU then run turn by turn in one process, which none of
them has seen. A ratio to the simulated answer below 1 means that measuring has made the step
shorter; one to the best lane alone above 1, limits and all, is a loss.
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
PLACERS = "auto,group_pg,mutation"
BATCHES = 300
COLUMNS = {
    "model": "{model}",
    "placer": "{placer}",
    "measured": "{num_measured:.0f}",
    "by simulation, ms": "{simulated_ms:.2f}",
    "and measured, ms": "{live_ms:.2f}",
    "measured / simulated (95 %)": "{ratio:.3f} ({low:.3f} to {high:.3f})",
    "measured / best lane (95 %)": "{to_lane:.3f} ({to_lane_low:.3f} to {to_lane_high:.3f})",
    "whole CPU, ms": "{whole_ms:.2f}",
    "account": "{account}",
}


def rows(name: str, rounds: int, placements: int, placers: str) -> Iterator[dict[str, Any]]:
    """A placer's two answers each, in turns with single devices, by their ratios."""
    model, machine = pl.load(name), pl.machine("two-lanes")
    problem = pl.make_problem(model, machine, pl.profile(model, machine))
    compiled = compiled_for(problem, model)
    lanes = {d.name: d for d in machine.devices}
    for placer in placers.split(","):
        # By number of batches, so that both searches come to the same before anything is measured.
        settings = {} if placer == "auto" else {"max_iterations": BATCHES}
        asked = PlaceOptions(placer=placer, settings=settings)
        live = replace(asked, live=True, live_placements=placements)
        simulated = pl.place(problem, asked)
        measured = pl.place(problem, live, model=model)
        schedules = {"simulated": simulated.schedule}
        if not (measured.finals and measured.finals.winner.machine):
            schedules["measured"] = measured.schedule
        with (
            measuring("live_learning"),
            turns.opened(problem, compiled, schedules) as placed,
            turns.alone(compiled, {**lanes, "whole": None}) as single,
        ):
            times_s = turns.turn_by_turn({**placed, **single}, rounds)
        # The answer may be the whole CPU.
        times_s.setdefault("measured", times_s["whole"])
        middle_ms = {key: 1e3 * sorted(times)[rounds // 2] for key, times in times_s.items()}
        best = min(lanes, key=lambda lane: middle_ms[lane])
        ratio, low, high = ratio_interval(times_s["measured"], times_s["simulated"], 0)
        to_lane = ratio_interval(times_s["measured"], times_s[best], 0)
        yield {
            "model": name,
            "placer": placer,
            "num_measured": len(measured.finals.entries) if measured.finals else placements,
            "simulated_ms": middle_ms["simulated"],
            "live_ms": middle_ms["measured"],
            "ratio": ratio,
            "low": low,
            "high": high,
            **dict(zip(("to_lane", "to_lane_low", "to_lane_high"), to_lane, strict=True)),
            "whole_ms": middle_ms["whole"],
            "account": measured.account.rpartition(". ")[2],
        }


def main() -> None:
    options = named(__doc__, MODELS, rounds=100, placements=200, placers=PLACERS)
    asked = options.rounds, options.placements, options.placers
    found = (row for name in options.names for row in rows(name, *asked))
    show(options.json, COLUMNS, list(found))


if __name__ == "__main__":
    main()
