"""Do live runs of some placements make predictions of others better? Two one-core lanes.

    python -m benchmarks.live.refinement [--json] [--steps N] [--seed N] [MODEL ...]

For each model nine placements run live: a lane alone, HEFT, `auto`, one moved as by hand and five
random ones. Then three of them, drawn anew several times, refine the profile as `run --refine`
does, one after the other, and the steps of all nine are predicted without and with it: of the three
that refined it ("run") and of the six that did not ("held out"). Errors are |predicted / measured
median - 1|. Without models: all bundled ONNX networks and six that are built here.
"""

import json
import random
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import placement as pl
from benchmarks._fidelity.placements import schedules
from benchmarks._shared import turns
from benchmarks._shared.figures import named, table
from benchmarks.live.fidelity import models
from placement.advice.refining import refined_by
from placement.api.problems import make_problem
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.profile import Profile, RefiningRun
from placement.core.verb_options import RunOptions
from placement.simulator.simulate import step_time_s
from profiling.execution.execute import execute
from profiling.measuring.lock import measuring

PLACEMENTS = ("cpu:0", "heft", "auto", "by hand 0", *(f"random {i}" for i in range(5)))
NUM_RUN, NUM_DRAWN = 3, 6
COLUMNS = {
    "model": "{model}",
    "held out": "{before:.1%}",
    "refined": "{after:.1%}",
    "run": "{run_before:.1%}",
    "run, refined": "{run_after:.1%}",
    "worst held out": "{worst_before:.1%}",
    "worst, refined": "{worst_after:.1%}",
    "strengths": "{strengths}",
}


@dataclass(frozen=True)
class Case:
    """A model as it was measured, and live runs of different placements."""

    model: Model
    profile: Profile
    problem: Problem
    runs: tuple[RefiningRun, ...]


def measured(model: Model, seed: int, steps: int) -> Case:
    lanes = pl.machine("two-lanes")
    profile = pl.profile(model, lanes, refresh=True)
    problem = make_problem(model, lanes, profile)
    found: list[RefiningRun] = []
    for _, name, schedule in schedules(problem, seed):
        if name in PLACEMENTS:
            asked = RunOptions(steps=steps, seed=seed)
            run = execute(problem, schedule, asked, model=model, baselines=False)
            assert run.observed is not None
            found.append(RefiningRun(name, name, "", run.median_s, schedule, run.observed))
    return Case(model, profile, problem, tuple(found))


def errors(case: Case, drawn: Sequence[RefiningRun]) -> tuple[float, list[dict[str, Any]]]:
    """How far the profile follows these runs, and the error of each placement without and with
    them."""
    profile = case.profile
    for run in drawn:
        profile = refined_by(case.problem, profile, run).profile
    refined = make_problem(case.model, case.problem.machine, profile)
    assert profile.refined_by is not None
    return profile.refined_by.strength, [
        {
            "placement": run.placement,
            "is_held_out": run not in drawn,
            "before": _error(case.problem, run),
            "after": _error(refined, run),
        }
        for run in case.runs
    ]


def _error(problem: Problem, run: RefiningRun) -> float:
    return abs(step_time_s(problem, run.schedule) / run.step_s - 1.0)


def line_of(case: Case, seed: int) -> dict[str, Any]:
    """A model's errors over several draws of the placements that refine."""
    chance = random.Random(seed)
    found, strengths = list[dict[str, Any]](), list[float]()
    for _ in range(NUM_DRAWN):
        drawn = chance.sample(case.runs, NUM_RUN)
        strength, rows = errors(case, drawn)
        strengths.append(strength)
        found += rows
    return {"model": case.model.graph.name, "strengths": strengths, **summary(found), "rows": found}


def summary(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    held_out = [row for row in found if row["is_held_out"]]
    ran = [row for row in found if not row["is_held_out"]]
    return {
        "before": statistics.median(row["before"] for row in held_out),
        "after": statistics.median(row["after"] for row in held_out),
        "run_before": statistics.median(row["before"] for row in ran),
        "run_after": statistics.median(row["after"] for row in ran),
        "worst_before": max(row["before"] for row in held_out),
        "worst_after": max(row["after"] for row in held_out),
    }


def lines(names: Sequence[str], seed: int, steps: int) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        for model in models(names, Path(folder)):
            yield line_of(measured(model, seed, steps), seed)


def main() -> None:
    from benchmarks._fidelity.networks import WRITTEN

    options = named(__doc__, [*turns.samples(), *WRITTEN], steps=30, seed=0)
    found = []
    with measuring("refinement"):
        for line in lines(options.names, options.seed, options.steps):
            found.append(line)
            if not options.json:
                print(table(COLUMNS, [line]), flush=True)
    every = [row for line in found for row in line["rows"]]
    total = {"model": "all", "strengths": "", **summary(every)}
    if options.json:
        print(json.dumps({"lines": found, "all": total}))
    else:
        short = [{**line, "strengths": _listed(line["strengths"])} for line in found]
        print(f"\n{table(COLUMNS, [*short, total])}")


def _listed(strengths: Sequence[float]) -> str:
    return " ".join(f"{strength:g}" for strength in strengths)


if __name__ == "__main__":
    main()
