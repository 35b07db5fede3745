"""What speaks against believing the times of a run, in sentences."""

from placement.api.results.running import RunResult
from placement.api.wording import doubts, is_scattered
from placement.constraints.fusion import mended
from studio.jobs import jobs, runs
from studio.project import placements
from studio.snapshot import Studio, bound_of, violations_of

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
        changed = "edited" if current[name].by_hand else "made anew by its method"
        return f"The placement was {changed} after this run; run again to measure the new one."
    if name != now.named.name:
        return f"This run is of the placement {name}; on the screen is {now.named.name}."
    return ""


def scatter(result: RunResult) -> str:
    """A warning where others computed meanwhile, or steps differ so much that their median says
    little; else empty."""
    return doubts(result)


def beats_bound(now: Studio, job: jobs.Job) -> bool:
    """Whether a run of the placement on the screen took clearly less than the bound of the costs.

    No placement can by these costs, so the computer is another than they tell of: most often others
    computed while the model was measured. What breaks rules may be below what holds by them.
    """
    result = job.ran
    if result is None or result.emulated or not result.step_s.median or violations_of(now):
        return False
    return result.step_s.median < (1.0 - NOISE) * bound_of(now)


def is_doubtful(result: RunResult) -> bool:
    """Whether the times of a run say little."""
    return is_scattered(result.step_s) or (result.load is not None and result.load.is_busy)
