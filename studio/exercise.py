"""Exercises on any network: what a person's own placement is to beat, and how near it is.

Three levels: all ops on the best single device, a quick method, and the best that any method has
found in this project. What counts is what a person has made better: where the work began as a copy
of something that was better than the target already, nothing was beaten. A lesson sets targets of
its own by its checks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from placement.advice.replacing import alone
from placement.constraints.fusion import mended
from placement.core import formatting
from placement.core.amounts import UNIT_S
from placement.core.objective import Objective
from placement.core.placement import Placement
from placement.lessons.lesson import StepCheck
from placement.schedule.simulated import Simulated
from placement.schedule.symmetry import num_changed
from placement.simulator.uncertainty import is_tie
from studio import editing, lesson, snapshot
from studio.project import edits
from studio.project.facts import FILE, HAND, Facts, Named
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
    """The placement on the screen against a level's, both in seconds; `by` is whose that is.

    `began_s` is what it took before the first change by hand; in a tie nobody can tell by
    prediction which of both is faster. No placement takes less than `bound_s`, and where that
    `is_tied` with the target nobody can beat it.
    """

    level: Level
    by: str
    target_s: float
    value_s: float
    began_s: float
    bound_s: float
    num_moved: int
    own: bool
    allowed: bool
    is_tie: bool
    is_tied: bool

    @property
    def began_better(self) -> bool:
        """Whether a method's work was better than the target before anything was changed."""
        return _is_less(self.began_s, self.target_s)

    @property
    def is_beaten(self) -> bool:
        """Whether a person's own placement, which keeps all rules, is better."""
        counts = self.own and self.allowed and not self.began_better and not self.is_tie
        return counts and _is_less(self.value_s, self.target_s)

    @property
    def is_out_of_reach(self) -> bool:
        """Whether no placement at all can be better than the target by more than a tie."""
        return self.is_tied or not _is_less(self.bound_s, self.target_s)


def _is_less(value_s: float, than_s: float) -> bool:
    return value_s < than_s * (1 - SAME)


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
    (by, target), was, bound_s = found, now.simulated, snapshot.bound_of(now)
    *_, first = _starts(now)
    return Exercise(
        level=level,
        by=by,
        target_s=target.value,
        value_s=was.value,
        began_s=now.cache.simulated(now.problem, first).value,
        bound_s=bound_s,
        num_moved=num_moved(now),
        own=now.named.by_hand,
        allowed=not snapshot.violations_of(now),
        is_tie=is_tie(was.value, was.range_s, target.value, target.range_s),
        is_tied=is_tie(bound_s, None, target.value, target.range_s),
    )


def num_moved(now: Studio) -> int:
    """Ops that were moved by hand since the placement was made, but for equal devices' names."""
    return num_changed(now.problem, next(_starts(now)), now.placement)


def _starts(now: Studio) -> Iterator[Placement]:
    """What the placement on the screen was before it was changed by hand; where that was a copy of
    one that was changed by hand as well, then what that one was, and so on."""
    by_hand = {item.name: item for item in now.shelf.items if item.by_hand}
    item: Named | None = now.named
    yield _before_all(now.placement, now.history)
    while item is not None and (item := by_hand.pop(item.facts.start or "", None)) is not None:
        yield _before_all(now.shelf.read(item.name), now.shelf.history(item.name))


def _before_all(placement: Placement, history: edits.History) -> Placement:
    state = edits.State(placement.device_of, {}, placement.order, placement.replicas)
    first, _ = edits.travel(state, history, 0)
    return replace(placement, device_of=first.device_of, order=first.order, replicas=first.replicas)


def first_device(now: Studio) -> str:
    """The device that all ops are on where a person begins anew: the best one alone."""
    found = _alone(now)
    return found[0] if found else now.machine.devices[0].name


def begin(now: Studio) -> None:
    """A placement of one's own on the screen, with which nobody else has had anything to do."""
    start = editing.all_on(now, first_device(now))
    now.shelf.add("manual", start, HAND, Facts(start=""))
    now.project.change()


def _target(now: Studio, level: Level) -> tuple[str, Simulated] | None:
    """Whose placement a level is, and what is predicted of it."""
    match level:
        case Level.DEVICE:
            best = _alone(now)
            return (f"all on {best[0]}", best[1]) if best else None
        case Level.QUICK:
            placer = snapshot.first_placer(now.problem)
            names = [placer]
            placements = [now.cache.placed(now.problem, placer).placement]
        case Level.BEST:
            items = [item for item in now.shelf.items if item.made_by not in (HAND, FILE)]
            names = [item.name for item in items]
            placements = [now.shelf.read(item.name) for item in items]
    return _best(now, zip(names, placements, strict=True))


def _alone(now: Studio) -> tuple[str, Simulated] | None:
    """The device that is best by itself, and what is predicted of all ops on it."""
    return _best(now, alone(now.problem))


def _best(now: Studio, named: Iterable[tuple[str, Placement]]) -> tuple[str, Simulated] | None:
    """The best of some placements that keeps all rules, by its name."""
    whole = [(name, mended(now.problem, placement)) for name, placement in named]
    found = [
        (name, now.cache.simulated(now.problem, placement))
        for name, placement in whole
        if not now.cache.violations(now.problem, placement)
    ]
    return min(found, key=lambda each: (each[1].value, each[0]), default=None)


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
