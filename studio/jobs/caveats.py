"""What speaks against believing the times of a run, in sentences."""

from placement.api.results import Spread
from placement.constraints.fusion import mended
from placement.core import formatting
from studio.jobs import jobs, runs
from studio.project import placements
from studio.snapshot import Studio

# Steps further apart than this come from work of others on the computer, not from the placement.
SCATTERED = 1.5


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


def scatter(step_s: Spread) -> str:
    """A warning where steps differ so much that their median says little; else empty."""
    if not is_scattered(step_s):
        return ""
    return (
        f"The steps took between {formatting.seconds(step_s.p5)} and"
        f" {formatting.seconds(step_s.p95)}: something else kept this computer busy meanwhile."
        " Trust none of these times, nor what they say of the prediction and of single devices; run"
        " again when it is quiet."
    )


def is_scattered(step_s: Spread) -> bool:
    return 0.0 < SCATTERED * step_s.p5 < step_s.p95
