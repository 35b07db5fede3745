"""What moving ops would do to a step, before anybody moves them: an answer, and no edit.

Who asks is at the pointer's pace, so nothing here reads or writes a file: what stands on the screen
was read when it was drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from placement.core import formatting
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.drawing.names import names_of
from placement.drawing.outline import Outline, outline
from placement.schedule.order import moved
from placement.simulator.uncertainty import is_tie
from studio import editing, snapshot
from studio.snapshot import Studio

# Smaller changes read as none.
SAME = 5e-5
# Kernels that are simulated to say what ops would do elsewhere: some tenths of a second.
MOST_KERNELS = 6000


@dataclass(frozen=True)
class Change:
    """What a step takes before and after something, in seconds of the goal and as a sentence.

    `way` is -1 where it gets faster, 1 where it gets slower, else 0. In a tie nobody can tell by
    prediction which is faster, whatever the change.
    """

    before_s: float
    after_s: float
    unit: str
    is_tie: bool = False

    @property
    def share(self) -> float:
        return self.after_s / self.before_s - 1.0 if self.before_s else 0.0

    @property
    def way(self) -> int:
        if math.isnan(self.share) or abs(self.share) < SAME:
            return 0
        return -1 if self.share < 0 else 1

    @property
    def text(self) -> str:
        if not math.isfinite(self.after_s):
            return "it could not run like this"
        old, new = formatting.both_seconds(self.before_s, self.after_s, self.unit)
        if not math.isfinite(self.before_s):
            return f"{new}, where it could not run before"
        return f"{old} → {new}, {self.in_percent}" + ", a tie" * (self.is_tie and bool(self.way))

    @property
    def in_percent(self) -> str:
        return formatting.percent(self.share, signed=True) if self.way else "no change"


@dataclass(frozen=True)
class Consequence:
    """What a move would do. `about` names it; `note` says what stands against it, if anything.

    Without a `change` nothing would move. `bars` is None where there would be no timeline.
    """

    about: str
    change: Change | None = None
    note: str = ""
    bars: Outline | None = None


def of_move(
    now: Studio, ops: Sequence[str], device: str, before: Sequence[str] | None = None
) -> Consequence:
    """What putting ops on a device by hand would do.

    With `before` those that move run there right before these ops, last where there are none.
    """
    step, note = editing.move_step(now, ops, device, before)
    moving = [op for op, _, _ in step.changes] or ops
    about = f"{_called(now, moving)} to {device}"
    if not step.changes:
        return Consequence(about, note=note or "already there")
    return _of(now, about, editing.after(now, step), note)


def elsewhere(now: Studio, ops: Sequence[str]) -> tuple[tuple[str, Change], ...]:
    """What the step would take with these ops on each other device that may run them, all else as
    it is: the reason why they are where they are, whatever has put them there.

    Nothing where they are on several devices. Of a large problem a few devices are looked at, or
    none, for who selects something waits for it.
    """
    problem, placed, was = now.problem, now.placement, now.simulated
    own = {placed.device_of[op] for op in ops}
    units = sorted({int(problem.unit_of_op[problem.graph.index[op]]) for op in ops})
    if len(own) != 1 or not units:
        return ()
    devices = enumerate(problem.machine.devices)
    others = [device.name for d, device in devices if problem.allowed[units, d].all()]
    found = []
    most = MOST_KERNELS // max(1, len(problem.kernels.ops))
    for device in [name for name in others if name not in own][:most]:
        after = moved(problem, placed, dict.fromkeys(_together(problem, units), device))
        predicted = now.cache.simulated(problem, after)
        broken = now.cache.violations(problem, after)
        tie = is_tie(was.value, was.range_s, predicted.value, predicted.range_s)
        after_s = math.inf if broken else predicted.value
        found.append((device, Change(was.value, after_s, problem.unit, tie)))
    return tuple(found)


def _together(problem: Problem, units: Sequence[int]) -> list[str]:
    """The ops of some units, those that are fused or grouped with others among them."""
    return [problem.graph.ops[i].name for unit in units for i in problem.ops_of_unit[unit]]


def of_order(now: Studio, ops: Sequence[str], before: Sequence[str]) -> Consequence:
    """What letting ops run right before others of their device would do, or last without any."""
    about = _called(now, ops)
    try:
        step = editing.order_step(now, ops, before)
    except ValueError as error:
        return Consequence(about, note=str(error))
    if step is None:
        return Consequence(about, note="already there")
    return _of(now, step.label, editing.after(now, step), "")


def _of(now: Studio, about: str, placement: Placement, note: str) -> Consequence:
    predicted = now.cache.simulated(now.problem, placement)
    broken = now.cache.violations(now.problem, placement)
    if broken and not snapshot.violations_of(now):
        note = f"{broken[0]} {note}".strip()
    was = now.simulated
    tie = is_tie(was.value, was.range_s, predicted.value, predicted.range_s)
    change = Change(was.value, predicted.value, now.problem.unit, tie)
    bars = None
    if math.isfinite(predicted.timeline.step_s):
        bars = outline(predicted.timeline, [d.name for d in now.machine.devices])
    return Consequence(about, change, note, bars)


def _called(now: Studio, ops: Sequence[str]) -> str:
    if len(ops) == 1:
        return names_of(now.model.graph).of(ops[0])
    return formatting.counted(len(ops), "op")
