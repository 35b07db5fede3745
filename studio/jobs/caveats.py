"""What speaks against believing the times of a run, in sentences."""

from placement.api.results.running import RunResult
from placement.api.wording import doubts, is_scattered
from placement.constraints.fusion import mended
from studio.jobs import jobs, runs
from studio.project import placements
from studio.snapshot import Studio


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


def is_doubtful(result: RunResult) -> bool:
    """Whether the times of a run say little."""
    return is_scattered(result.step_s) or (result.load is not None and result.load.is_busy)
