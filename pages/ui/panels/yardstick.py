"""Values of before and of now: when times change, everything is predicted anew, and says why.

An estimate beside a value from measurements would read as an improvement. What a session has shown
is remembered with the times it came from, so that the change can be told in numbers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import streamlit as st

from pages.ui.session import cache, choices
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from placement.constraints.fusion import mended
from placement.core import formatting
from placement.core.placement import Placement
from placement.core.problem import Problem
from studio import standings
from studio.snapshot import Studio

MOST_SHOWN = 3
# What it means that times of one origin gave way to those of another.
CHANGES = {
    ("analytic", "measured"): "The times are measured now; before they were estimates",
    ("measured", "measured"): "The model was measured again, and its times are others now",
    ("measured", "analytic"): "The times are estimates now, for nothing is measured any more",
}
ONCE = {"analytic": "was an estimate", "measured": "came from the measurements of before"}
ANEW = {"analytic": "as an estimate", "measured": "with measured times"}
COSTS = {"analytic": "by estimates", "measured": "with measured times", "given": ""}
SAME = 1e-9


@dataclass(frozen=True)
class Value:
    """What was shown of a placement, in seconds of the goal."""

    placement: Placement
    value_s: float


@dataclass(frozen=True)
class Shown:
    """What was shown by some times: their origin, the problem's fingerprint, values by name.

    `before` is what was shown by the times that these replaced, until a person has taken note.
    """

    origin: str
    problem: str
    values: Mapping[str, Value]
    before: "Shown | None" = None


def remember(now: Studio, name: str, placement: Placement, value_s: float) -> None:
    """Note that a value is on the screen, for the day when the times are others."""
    shown = _shown(now)
    values = {**shown.values, name: Value(placement, value_s)}
    choices.keep(_key(now), replace(shown, values=values))


def show(now: Studio) -> None:
    """Say that the times have changed since values were shown, and what these are now."""
    shown = _shown(now)
    choices.keep(_key(now), shown)
    if shown.before is None:
        return
    told = sentence(shown.before, now)
    if not told:
        return
    text, gone = st.columns([0.86, 0.14], vertical_alignment="center")
    text.info(glossary.plain(told, 600), icon=":material/straighten:")
    gone.button("Understood", key="yardstick-known", on_click=_forget, width="stretch")


def sentence(before: Shown, now: Studio) -> str:
    """What values that were shown by other times are by those of now; empty for none."""
    problem = now.problem
    reason = CHANGES.get((before.origin, problem.costs.origin))
    changed = list(_changed(before, problem)) if reason else []
    if not changed:
        return ""
    told = [
        f"{name}: {formatting.seconds(once.value_s, problem.unit)} {ONCE[before.origin]},"
        f" {ANEW[problem.costs.origin]} {of_what(once, anew)} takes"
        f" {formatting.seconds(anew.value_s, problem.unit)}{_since(now, name, anew)}"
        for name, once, anew in changed[:MOST_SHOWN]
    ]
    more = len(changed) - MOST_SHOWN
    also = f" The values of {formatting.counted(more, 'more placement')} changed too." * (more > 0)
    return f"{reason}. {'; '.join(told)}.{also}"


def of_what(once: Value, anew: Value) -> str:
    """Whether the value of now is of the very placement that was shown, and how it differs."""
    before, after = once.placement.device_of, anew.placement.device_of
    num_moved = sum(after.get(op) != device for op, device in before.items())
    if not num_moved:
        return "the same placement"
    ops, those = formatting.counted(num_moved, "op"), "it is" if num_moved == 1 else "they are"
    return f"that placement, with {ops} moved to what {those} fused with,"


def _since(now: Studio, name: str, anew: Value) -> str:
    """That what bears the name is another placement by now; empty where it is not."""
    item = next((item for item in now.shelf.items if item.name == name), None)
    if item is None or standings.placement_of(now, name).device_of == anew.placement.device_of:
        return ""
    return f" ({item.origin.changed} since, so {name} is another now)"


def _changed(before: Shown, problem: Problem) -> Iterator[tuple[str, Value, Value]]:
    """Placements with what was shown and what is predicted now, the last shown first."""
    for name, value in reversed(tuple(before.values.items())):
        placement = mended(problem, value.placement)
        now_s = cache.simulated(problem, placement).value
        if abs(now_s - value.value_s) > SAME * now_s:
            yield name, value, Value(placement, now_s)


def _shown(now: Studio) -> Shown:
    """What this session has shown by the times of now; a change of times begins anew."""
    known: Shown | None = choices.kept(_key(now), None)
    problem = now.problem
    if known is None:
        return Shown(problem.costs.origin, problem.fingerprint, {})
    if known.problem == problem.fingerprint:
        return known
    # Of several changes that nobody took note of, the first tells what a person remembers.
    before = known.before or known
    return Shown(problem.costs.origin, problem.fingerprint, {}, before)


def _key(now: Studio) -> str:
    of = f"{now.model.graph.fingerprint}-{now.machine.fingerprint}-{now.settings.objective}"
    return choices.own(f"shown-{of}")


def _forget() -> None:
    now = studio()
    choices.keep(_key(now), replace(_shown(now), before=None))
