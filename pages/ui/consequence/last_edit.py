"""What the last edit did: the step as it was drawn before it, and as it is now.

Only what was on the screen counts, so several edits in one go are one change. Whatever else makes
another placement of it, a method or a choice in a menu, is no edit, and ends the comparison.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pages.ui.session import cache, choices
from placement.drawing.outline import outline
from placement.simulator.uncertainty import is_tie
from studio.consequence import Change
from studio.snapshot import Studio

# How long the score says what it was before.
TOLD_S = 15.0
# Of placements drawn last, those whose bars are known for a comparison.
MOST_OUTLINES = 6


@dataclass(frozen=True)
class LastEdit:
    """A change by hand of what is on the screen; `axis` is what its timeline was drawn for."""

    number: int
    change: Change
    axis: str
    bars: Mapping[str, Any] | None
    is_fresh: bool


def made(before: Studio, after: Studio) -> None:
    """A person did something; it counts where it changed what is predicted."""
    if cache.key_of(before.problem, before.placement) != cache.key_of(
        after.problem, after.placement
    ):
        choices.keep("num-edits", choices.kept("num-edits", 0) + 1)


def seen(now: Studio, bars: bool = False) -> LastEdit | None:
    """What is drawn now is on the screen; the edit that led there, if one did.

    With `bars` the timeline is on the screen too.
    """
    key, axis = _key(now), axis_of(now)
    num_edits = choices.kept("num-edits", 0)
    drawn = choices.kept("drawn", None)
    if drawn is None or drawn["key"] != key:
        was_edited = drawn is not None and drawn["edits"] != num_edits
        before = {**drawn, "at": time.time()} if was_edited and drawn else None
        choices.keep("drawn-before", before)
    value_s, range_s = now.simulated.value, now.simulated.range_s
    drawn = {"key": key, "value_s": value_s, "range_s": range_s, "axis": axis, "edits": num_edits}
    choices.keep("drawn", drawn)
    outlines = dict(choices.kept("outlines", {}))
    if bars and key not in outlines:
        names = [device.name for device in now.machine.devices]
        outlines[key] = outline(now.simulated.timeline, names).to_data()
        choices.keep("outlines", dict(list(outlines.items())[-MOST_OUTLINES:]))
    before = choices.kept("drawn-before", None)
    if before is None:
        return None
    tie = is_tie(before["value_s"], before["range_s"], value_s, range_s)
    return LastEdit(
        num_edits,
        Change(before["value_s"], value_s, now.problem.unit, tie),
        before["axis"],
        outlines.get(before["key"]),
        time.time() - before["at"] < TOLD_S,
    )


def axis_of(now: Studio) -> str:
    """What a timeline is drawn for: what is zoomed into stays while this does."""
    return f"{now.shelf.folder.name} {now.named.name}"


def _key(now: Studio) -> str:
    problem, placement = cache.key_of(now.problem, now.placement)
    return f"{problem}-{placement}"
