"""Whether live runs make predictions of other placements better, and how far to follow them.

A refinement that is fitted to a run predicts that run; what counts is what it says of placements
that nobody ran. So each run of a profile is held out in turn, the others refine the profile, and
the step of the one that is held out is predicted by them. The strength of which the errors are
least is taken, zero if the profile alone was best.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placement.core.problem import Problem
from placement.core.profile import MOST_RUNS, Profile, Refinement, RefiningRun, runs_of
from placement.costs.refined import refined
from placement.simulator.simulate import step_time_s

STRENGTHS = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Refined:
    """A profile with what live runs say, and how predictions err of placements that are held out.

    The errors are means over these placements, of how many times too long or too short each is
    predicted, less one; without and with the other runs, None while all are of one placement. They
    are those that the strength was chosen by.
    """

    profile: Profile
    held_out_before: float | None = None
    held_out_after: float | None = None


def refined_by(problem: Problem, profile: Profile, run: RefiningRun) -> Refined:
    """The profile refined by one more run, which takes the place of an earlier one of the same
    placement.

    The problem has the costs of the profile as they were measured. A ValueError says why the run
    does not fit.
    """
    run.require(problem.kernels.index.keys(), problem.machine.index.keys())
    runs = (*(r for r in runs_of(profile) if r.key != run.key), run)[-MOST_RUNS:]
    if len(runs) < 2:
        return Refined(replace(profile, refined_by=Refinement(runs)))
    errors = {strength: held_out(problem, runs, strength) for strength in STRENGTHS}
    best = min(STRENGTHS, key=lambda strength: (float(np.mean(errors[strength])), strength))
    return Refined(
        replace(profile, refined_by=Refinement(runs, best)),
        held_out_before=_mean_share(errors[0.0]),
        held_out_after=_mean_share(errors[best]),
    )


def held_out(problem: Problem, runs: Sequence[RefiningRun], strength: float) -> list[float]:
    """How far each run's step is predicted off by the others: |log(predicted / measured)|."""
    found = []
    for run in runs:
        others = tuple(other for other in runs if other is not run)
        costs = refined(
            problem.costs, problem.kernels, problem.machine, Refinement(others, strength)
        )
        predicted_s = step_time_s(replace(problem, costs=costs), run.schedule)
        found.append(abs(math.log(max(predicted_s, 1e-12) / run.step_s)))
    return found


def _mean_share(logarithms: Sequence[float]) -> float:
    return math.expm1(float(np.mean(logarithms)))
