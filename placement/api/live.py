"""Measuring placements for a placer that learns from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from placement.api.quiet import quiet
from placement.api.run import require_runnable
from placement.core.events import Emit, silent
from placement.core.objective import Objective
from placement.core.verb_options import PlaceOptions, RunOptions
from placement.remote.calls import in_confinement
from placement.schedule.segments import make_schedule

if TYPE_CHECKING:
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.schedule import Schedule
    from placement.learning.live import Live
    from profiling.execution.turns import Turns

WARMUP = 2


def live_of(
    model: Model | None, problem: Problem, options: PlaceOptions, emit: Emit = silent
) -> Live:
    """How a placer that learns measures placements of a model; ValueError where nobody can."""
    from placement.learning.live import Live

    opened = measurable(model, problem)

    def measure(placements: Sequence[Placement], turns: int) -> tuple[float, ...]:
        schedules = [make_schedule(problem, placement) for placement in placements]
        asked = RunOptions(steps=turns, warmup=WARMUP, seed=options.seed)
        return _in_turns(opened, problem, schedules, asked, emit=emit).median_s

    return Live(measure, options.live_placements)


def measurable(model: Model | None, problem: Problem) -> Model:
    """The model, where its steps can be measured here; a ValueError says why not."""
    if model is None:
        raise ValueError("Measuring placements needs their model; hand it over as `model`.")
    if problem.objective is not Objective.LATENCY:
        raise ValueError(
            "Placements are measured by their steps, for latency alone; leave out --live, or use"
            " --objective latency."
        )
    require_runnable(model, problem, None)
    return model


@in_confinement("profiling.execution.turns:Turns", on_hosts=True)
def _in_turns(
    model: Model,
    problem: Problem,
    schedules: Sequence[Schedule],
    options: RunOptions,
    *,
    emit: Emit,
) -> Turns:
    from profiling.execution.turns import in_turns

    with quiet("placements of", model, problem.machine, emit):
        return in_turns(problem, schedules, options, model=model)
