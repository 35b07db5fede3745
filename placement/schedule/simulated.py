"""The verb `simulate`: what a placement is predicted to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from placement.core.formatting import Drawn
from placement.core.objective import Objective

if TYPE_CHECKING:
    from placement.core.graph import Tokens
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.schedule import Schedule
    from placement.core.timeline import Span, Timeline
    from placement.simulator.call_costs import Replicas


class TokenRates:
    """What a prediction of a step says to whoever generates text with it."""

    tokens: Tokens | None
    value: float
    timeline: Timeline

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens that are taken in or added per second, where the graph is a step of generating."""
        return None if self.tokens is None else self.tokens.per_s(self.value)

    @property
    def first_token_s(self) -> float | None:
        """Seconds from a prompt to the token that follows it, where the graph is a prefill."""
        return None if self.tokens is None else self.tokens.first_s(self.timeline.step_s)


@dataclass(frozen=True)
class Simulated(TokenRates, Drawn):
    """A placement's schedule and what the simulator says of it.

    `value` is the objective's, in seconds; `unit` is the one to print it in. `range_s` holds what
    is measured in nine of ten cases, None where nobody can tell. `tokens` says what a step of
    generating text does. `problem` and `placement` are what was simulated, where that is known.
    """

    schedule: Schedule
    timeline: Timeline
    value: float
    unit: str
    critical_path: tuple[Span, ...]
    busy_s: Mapping[str, float]
    transfer_bytes: int
    peak_bytes: Mapping[str, int]
    range_s: tuple[float, float] | None = None
    tokens: Tokens | None = None
    problem: Problem | None = field(default=None, repr=False, compare=False)
    placement: Placement | None = field(default=None, repr=False, compare=False)


def simulate(problem: Problem, placement: Placement) -> Simulated:
    """What a placement is predicted to do."""
    from placement.schedule.segments import make_schedule

    schedule = make_schedule(problem, placement)
    simulated = simulate_schedule(problem, schedule, placement.replicas)
    return replace(simulated, problem=problem, placement=placement)


def simulate_schedule(problem: Problem, schedule: Schedule, replicas: Replicas = None) -> Simulated:
    """What a schedule is predicted to do, where `replicas` of a device may share its part."""
    from placement.simulator.critical_path import critical_path
    from placement.simulator.simulate import simulate as predict
    from placement.simulator.throughput import value_s
    from placement.simulator.uncertainty import range_of

    timeline = predict(problem, schedule)
    path = critical_path(timeline)
    return Simulated(
        schedule=schedule,
        timeline=timeline,
        value=value_s(problem, schedule, replicas, step_s=timeline.step_s),
        unit=problem.unit,
        critical_path=path,
        busy_s=timeline.busy_s(),
        transfer_bytes=timeline.transfer_bytes,
        peak_bytes=timeline.peak_bytes,
        range_s=range_of(problem, schedule, path, timeline.step_s),
        tokens=problem.graph.tokens,
    )


def busy_of(problem: Problem, simulated: Simulated, placement: Placement) -> Mapping[str, float]:
    """Seconds that devices work per step; per sample, where sending counts too."""
    from placement.simulator.throughput import loads_s

    if problem.objective is Objective.LATENCY:
        return simulated.busy_s
    return loads_s(problem, simulated.schedule, placement.replicas)
