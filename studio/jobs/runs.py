"""Finished runs of a project: which there are, which count here, and what each of them ran."""

from functools import lru_cache
from pathlib import Path

from placement.api.results.running import RunResult, StreamResult
from placement.constraints.fusion import mended
from placement.core.objective import Objective
from placement.core.placement import Placement
from placement.drawing import spans
from studio.jobs import jobs
from studio.project import placements
from studio.project.store import Project
from studio.snapshot import Studio

MOST = 50


def finished(project: Project, verb: str = "run") -> tuple[jobs.Job, ...]:
    """Those among the last runs, or training runs, that have a result, the newest first."""
    ids = jobs.listed(project.folder, verb)[:MOST]
    found = (jobs.read(project.folder, job_id) for job_id in ids)
    return tuple(job for job in found if job.status == "done" and job.result is not None)


def here(now: Studio) -> tuple[jobs.Job, ...]:
    """Finished runs of the model, the devices and the goal that are open, the newest first."""
    streams = now.settings.objective is Objective.THROUGHPUT
    return tuple(
        job
        for job in finished(now.project)
        if is_of_this(now, job) and isinstance(job.result, StreamResult) == streams
    )


def is_of_this(now: Studio, job: jobs.Job) -> bool:
    """Whether a run was of the model and machine that are open."""
    return job.about.shelf == now.shelf.folder.name


def sources(now: Studio, job: jobs.Job) -> spans.Sources:
    """The graph that is open and the source ops of the run's spans; none of another model's.

    Runs of earlier versions did not write down who ran what.
    """
    if not is_of_this(now, job):
        return spans.UNKNOWN
    told = None if job.ran is None else job.ran.schedule
    schedule = now.simulated.schedule if told is None else told
    return spans.Sources(now.problem.graph, spans.ops_of(now.problem, schedule))


def made_here(now: Studio) -> tuple[jobs.Job, ...]:
    """Those of `here` that this computer made: only their times say anything about it."""
    return tuple(job for job in here(now) if not job.about.imported)


def predicted_s(now: Studio, job: jobs.Job) -> float | None:
    """What is predicted of the placement that ran, by the times of now; None where nothing is.

    Seconds of the goal. Runs of another model, machine, goal or computer keep their own prediction.
    """
    told = ran(job)
    streamed = isinstance(job.result, StreamResult)
    if (
        told is None
        or not is_of_this(now, job)
        or streamed != (now.settings.objective is Objective.THROUGHPUT)
        or job.about.imported
    ):
        return None
    return now.cache.simulated(now.problem, mended(now.problem, told)).value


def ran(job: jobs.Job) -> Placement | None:
    """The placement that a finished run used; runs of earlier versions did not write it down."""
    found = job.ran or job.trained
    return None if found is None else found.placement


def measured_s(result: RunResult) -> float:
    """Seconds of a step, or between two samples."""
    if isinstance(result, StreamResult):
        return 1.0 / result.samples_per_s if result.samples_per_s else 0.0
    return result.step_s.median


def of_placement(found: tuple[jobs.Job, ...], placement: Placement) -> jobs.Job | None:
    """The newest of some runs that was of this very placement."""
    key = placements.devices_key(placement)
    return next((job for job in found if key_of(job.folder) == key), None)


@lru_cache(maxsize=256)
def key_of(folder: Path) -> str:
    """Which placement the finished run in a folder used, in the words of `devices_key`.

    One made before the model was measured was mended before it ran.
    """
    job = jobs.read(folder.parents[1], folder.name)
    used = ran(job)
    return job.about.devices_key if used is None else placements.devices_key(used)
