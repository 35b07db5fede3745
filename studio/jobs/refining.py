"""Live runs of a project that refine the stored times of its model."""

from dataclasses import replace
from datetime import UTC, datetime

import placement as pl
from placement.api.answers import of_refined
from placement.api.problems import as_measured
from placement.api.refine import MISSING, UNOBSERVED
from placement.api.results.running import StreamResult
from placement.api.wording import refined_in_words
from placement.constraints.fusion import mended
from placement.core.objective import PLAIN, Objective
from placement.core.profile import Profile, RefiningRun, runs_of
from studio.jobs import jobs, runs
from studio.snapshot import Studio


def why_not(now: Studio, job: jobs.Job) -> str:
    """Why a run cannot refine the times that are open; empty where it can."""
    result, profile = job.ran, now.profile
    if result is None or isinstance(result, StreamResult):
        return "A pipeline says how long samples take, not what segments take in a step."
    if not runs.is_of_this(now, job) or job.about.imported:
        return "This run is of another model, machine or computer."
    if profile is None:
        return MISSING
    if result.observed is None or result.schedule is None or result.placement is None:
        return UNOBSERVED
    if now.settings.offload:
        return "With weights that stream nothing is run; the times stay as they were measured."
    return ""


def is_in(profile: Profile | None, job: jobs.Job) -> bool:
    """Whether this very run refines a profile."""
    return profile is not None and any(run.measured_at == _when(job) for run in runs_of(profile))


def refine(now: Studio, job: jobs.Job) -> str:
    """Refine the stored times by a run; what to tell. A ValueError says why it cannot be."""
    reason = why_not(now, job)
    if reason:
        raise ValueError(reason)
    found = pl.refine(now.model, now.stated_machine, _run(job))
    steps_s = predictions(now, job, found.profile)
    assert job.ran is not None and steps_s is not None
    return refined_in_words(of_refined(found, steps_s), job.ran.step_s.median)


def drop(now: Studio) -> str:
    """Take back what runs have refined; what to tell."""
    if now.profile is None or now.profile.refined_by is None:
        return ""
    as_measured(now.profile)
    return "All times are as they were measured again."


def predictions(now: Studio, job: jobs.Job, profile: Profile | None) -> tuple[float, float] | None:
    """Seconds of a run's placement as predicted without and with what refines a profile.

    None where nothing does, or the run is of something else.
    """
    placement = runs.ran(job)
    if profile is None or profile.refined_by is None or placement is None:
        return None
    if not runs.is_of_this(now, job) or job.about.imported or now.settings.offload:
        return None
    both = (replace(profile, refined_by=None), profile)
    before, after = (
        now.cache.problem(now.model, now.stated_machine, each, Objective.LATENCY, False, PLAIN)
        for each in both
    )
    whole = mended(before, placement)
    before_s, after_s = (now.cache.simulated(problem, whole).value for problem in (before, after))
    return before_s, after_s


def _run(job: jobs.Job) -> RefiningRun:
    result = job.ran
    assert result is not None and result.placement is not None
    return pl.refining_run(
        result.placement,
        result.schedule,
        result.observed,
        result.step_s.median,
        name=job.about.placement,
        load=result.load,
        measured_at=_when(job),
    )


def _when(job: jobs.Job) -> str:
    """When a run began, which tells it from others."""
    return datetime.fromtimestamp(job.started_at, UTC).isoformat(timespec="milliseconds")
