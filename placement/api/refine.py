"""The verb `refine`: what a live run has shown goes into the stored profile.

`profile` takes it back with `as_measured`, and drops it where it measures anew.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from placement.api.problems import make_problem
from placement.core.fingerprint import fingerprint_of
from placement.core.profile import RefiningRun
from placement.schedule.simulated import simulate

if TYPE_CHECKING:
    from placement.advice.refining import Refined
    from placement.core.load import Load
    from placement.core.machine import Machine
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.profile import Profile
    from placement.core.schedule import Schedule
    from placement.core.timeline import Observed

MISSING = "There are no measured times of this model on this machine to refine; measure it first."
UNOBSERVED = (
    "This run does not say what its segments took, so it refines nothing: it was no run of one"
    " step after another on hardware, or is of an earlier version. Run it again."
)


def refining_run(
    placement: Placement,
    schedule: Schedule | None,
    observed: Observed | None,
    step_s: float,
    *,
    name: str = "",
    load: Load | None = None,
    measured_at: str = "",
) -> RefiningRun:
    """A live run as something that a profile is refined by; a ValueError says why it cannot be."""
    if observed is None or schedule is None:
        raise ValueError(UNOBSERVED)
    if load is not None and load.is_busy:
        raise ValueError(
            f"While this ran {load.words}, so it refines nothing; run it again when it is quiet."
        )
    return RefiningRun(
        placement=name,
        key=fingerprint_of(dict(placement.device_of)),
        measured_at=measured_at or datetime.now(UTC).isoformat(timespec="seconds"),
        step_s=step_s,
        schedule=schedule,
        observed=observed,
    )


def refine(model: Model, machine: Machine, run: RefiningRun) -> Refined:
    """Refine the stored profile of a model by a live run; problems made of it predict by both.

    Runs of other placements that refined it before count on; where they show that predictions of
    placements that did not run get no better, the profile is followed alone. Where the profile is
    changed meanwhile, as by another run, what stands there then is refined.
    """
    from placement.advice.refining import Refined, refined_by
    from profiling.measuring.store import ProfileStore

    found = list[Refined]()

    def refine_stored(profile: Profile) -> Profile:
        problem = make_problem(model, machine, replace(profile, refined_by=None))
        found.append(refined_by(problem, profile, run))
        return found[-1].profile

    key = (model.graph.fingerprint, machine.fingerprint)
    if ProfileStore().change(*key, refine_stored) is None:
        raise ValueError(MISSING)
    return found[-1]


def step_before_and_after(
    model: Model, machine: Machine, profile: Profile, placement: Placement
) -> tuple[float, float]:
    """Predicted seconds of a step by the times as they were measured, and by those refined."""
    both = (replace(profile, refined_by=None), profile)
    problems = (make_problem(model, machine, each) for each in both)
    before_s, after_s = (simulate(problem, placement).value for problem in problems)
    return before_s, after_s
