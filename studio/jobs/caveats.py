"""What speaks against believing the times of a run, in sentences."""

from placement.api.results.running import RunResult
from placement.api.wording import doubts, is_scattered
from placement.constraints.fusion import mended
from placement.core.decoding import listed
from placement.core.placement import Placement
from studio.jobs import jobs, runs
from studio.jobs.event_log import Lost
from studio.project import placements
from studio.snapshot import Studio, bound_for

# A run is below a bound only where it is so by more than runs differ.
NOISE = 0.1


def not_of_screen(now: Studio, job: jobs.Job) -> str:
    """Why a run does not belong to the placement on the screen; empty where it does."""
    if not runs.is_of_this(now, job):
        return "This run was of another model or machine than the one now open."
    current = {i.name: i for i in now.shelf.items}
    name = job.about.placement
    if name not in current:
        return "The placement of this run has been deleted or renamed since."
    placement = mended(now.problem, now.shelf.read(name))
    if placements.devices_key(placement) != runs.key_of(job.folder):
        if lost := left(job):
            return (
                f"In the middle of this run {lost} left. All ops were placed anew on the devices"
                " that stayed, and it began again; the times are of that placement."
            )
        changed = current[name].origin.changed
        return f"The placement was {changed} after this run; run again to measure the new one."
    if name != now.named.name:
        return f"This run is of the placement {name}; on the screen is {now.named.name}."
    return ""


def left(job: jobs.Job) -> str:
    """The devices that left in the middle of a run; empty where none did."""
    return listed(device for lost in job.all(Lost) for device in lost.devices)


def scatter(result: RunResult) -> str:
    """A warning where others computed meanwhile, or steps differ so much that their median says
    little; else empty."""
    return doubts(result)


def disproof(now: Studio) -> jobs.Job | None:
    """A run that took clearly less than the costs allow: of the placement on the screen, else the
    newest of all; None where neither did.

    By these costs no placement can, so the computer is another than they tell of: most often others
    computed while the model was measured. Then nothing that is predicted by them holds.
    """
    found = runs.made_here(now) if now.model.has_weights else ()
    if not found:
        return None
    latest = (runs.of_placement(found, now.placement), *found[:1])
    return next((job for job in latest if job is not None and _beats_bound(now, job)), None)


def _beats_bound(now: Studio, job: jobs.Job) -> bool:
    """Whether a run took clearly less than the bound of the placement that ran.

    What breaks rules may be below what holds by them.
    """
    result, placement = job.ran, _ran(now, job)
    if result is None or result.emulated or placement is None:
        return False
    if now.cache.violations(now.problem, placement):
        return False
    return 0.0 < runs.measured_s(result) < (1.0 - NOISE) * bound_for(now, placement)


def _ran(now: Studio, job: jobs.Job) -> Placement | None:
    """The placement that ran; of early runs, which did not write it down, the one on the screen."""
    told = runs.ran(job)
    if told is not None:
        return mended(now.problem, told)
    is_shown = placements.devices_key(now.placement) == runs.key_of(job.folder)
    return now.placement if is_shown else None


def is_doubtful(result: RunResult) -> bool:
    """Whether the times of a run say little."""
    scattered = is_scattered(result.step_s, result.steps_s)
    return scattered or (result.load is not None and result.load.is_busy)
