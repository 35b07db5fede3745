"""Exercises on any network: what a person's own placement is to beat, and how near it is.

Three levels: all ops on the best single device, a quick method, and the best that any method has
found in this project. A lesson sets targets of its own by its checks.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from placement.constraints.fusion import mended
from placement.core import formatting
from placement.core.amounts import UNIT_S
from placement.core.objective import Objective
from placement.lessons.lesson import StepCheck
from placement.schedule.symmetry import num_changed
from studio import editing, lesson, snapshot
from studio.project import edits
from studio.snapshot import Studio

LEVEL = "exercise"
# A target that is met up to rounding is not beaten.
SAME = 1e-9


class Level(StrEnum):
    """What there is to beat, the easiest first."""

    DEVICE = "one device"
    QUICK = "a quick method"
    BEST = "the best method so far"


class Target(NamedTuple):
    """A line on the timeline: seconds, and what it is."""

    at_s: float
    text: str


@dataclass(frozen=True)
class Exercise:
    """The placement on the screen against a level's, both in seconds; `by` is whose that is."""

    level: Level
    by: str
    target_s: float
    value_s: float
    num_moved: int
    own: bool
    allowed: bool

    @property
    def is_beaten(self) -> bool:
        """Whether a person's own placement, which keeps all rules, is better."""
        return self.own and self.allowed and self.value_s < self.target_s * (1 - SAME)


def level_of(now: Studio) -> Level | None:
    """The level that was chosen in this project; None where there is no exercise."""
    kept = now.settings.form.get(LEVEL)
    return next((level for level in Level if level == kept), None)


def of(now: Studio) -> Exercise | None:
    """The exercise of a project; None where none was begun, or nothing has the level's target."""
    level = level_of(now)
    if level is None:
        return None
    found = _target(now, level)
    if found is None:
        return None
    by, target_s = found
    return Exercise(
        level=level,
        by=by,
        target_s=target_s,
        value_s=now.simulated.value,
        num_moved=num_moved(now),
        own=now.named.by_hand,
        allowed=not snapshot.violations_of(now),
    )


def num_moved(now: Studio) -> int:
    """Ops that were moved by hand since the placement was made, but for equal devices' names."""
    before, _ = edits.travel(now.state, now.history, 0)
    start = replace(now.placement, device_of=before.device_of, order=before.order)
    return num_changed(now.problem, start, now.placement)


def _target(now: Studio, level: Level) -> tuple[str, float] | None:
    """Whose placement a level is, and what it takes."""
    match level:
        case Level.DEVICE:
            names = [f"all on {device.name}" for device in now.machine.devices]
            devices = now.machine.devices
            placements = [editing.all_on(now, device.name, pinned=False) for device in devices]
        case Level.QUICK:
            placer = snapshot.first_placer(now.problem)
            names = [placer]
            placements = [now.cache.placed(now.problem, placer).placement]
        case Level.BEST:
            items = [item for item in now.shelf.items if not item.by_hand]
            names = [item.name for item in items]
            placements = [now.shelf.read(item.name) for item in items]
    whole = [mended(now.problem, placement) for placement in placements]
    found = [
        (now.cache.simulated(now.problem, placement).value, name)
        for placement, name in zip(whole, names, strict=True)
        if not now.cache.violations(now.problem, placement)
    ]
    return (min(found)[1], min(found)[0]) if found else None


def targets(now: Studio) -> tuple[Target, ...]:
    """Lines for the timeline of one step: what is to be beaten, what a lesson asks, and the bound.

    For throughput there are none, because there the end of a step is not what counts.
    """
    if now.settings.objective is not Objective.LATENCY:
        return ()
    asked, unit = _asked(now), now.problem.unit
    exercise = of(now)
    if exercise is not None:
        asked.append(Target(exercise.target_s, exercise.by))
    if asked and not lesson.hides(now, "bound"):
        asked.append(Target(snapshot.bound_of(now), "bound"))
    return tuple(
        Target(at_s, f"{text}: {formatting.seconds(at_s, unit)}")
        for at_s, text in asked
        if at_s > 0
    )


def _asked(now: Studio) -> list[Target]:
    found = lesson.readable(now.project)
    checks = [task.check for task in found.tasks] if found else []
    scale = UNIT_S[now.problem.unit]
    steps = [check for check in checks if isinstance(check, StepCheck)]
    asked = [Target(check.at_most * scale, "asked") for check in steps]
    stars = [Target(check.star * scale, "star") for check in steps if check.star is not None]
    return [*asked, *stars]
