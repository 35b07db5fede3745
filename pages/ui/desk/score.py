"""The score: what the placement on the screen is predicted to take, and against what it stands."""

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.consequence import last_edit
from pages.ui.consequence.last_edit import LastEdit
from pages.ui.desk import desk
from pages.ui.panels import placement_menu, predicted, run_warnings, yardstick
from pages.ui.session import cache, choices, fragments
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from pages.ui.shell.messages import plain_errors
from placement.api.results.running import RunResult
from placement.core import formatting
from placement.core.machine import Device
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers.single import Single, everything_on
from placement.schedule.simulated import Simulated
from placement.simulator.uncertainty import is_tie
from studio import lesson, snapshot, standings
from studio.jobs import caveats, jobs, runs
from studio.project.file_cache import by_identity
from studio.snapshot import Studio

ALONE, REFERENCE = "all on ", "reference"
SAME = 5e-4
# What a prediction rests on.
TIMES = {
    "measured": "predicted from measured times",
    "analytic": "estimated",
    "given": "from the file's times",
}
REFERENCE_HELP = (
    "What the score is held against: another placement of this project, or all ops on one device."
)
TIE = "A tie: of one of the two a run may well measure what is predicted of the other."


@st.fragment(key="placements")
@plain_errors()
def menus() -> None:
    """The placement on the screen, and the one that it is held against."""
    now = studio()
    placement_menu.chooser(now)
    names = references(now)
    key = f"reference-{now.shelf.folder.name}-{now.named.name}-{len(names)}"
    chosen = _chosen(now)
    st.selectbox(
        "Against",
        names,
        index=names.index(chosen) if chosen in names else 0,
        key=key,
        on_change=_choose,
        args=(key,),
        help=REFERENCE_HELP,
    )


@st.fragment(key="numbers")
@plain_errors()
def show() -> None:
    """The predicted time, its change against the reference, the bound, and what was measured."""
    now = studio()
    value_s, unit = now.simulated.value, now.problem.unit
    goal = now.settings.objective
    limits = predicted.range_told(now)
    sure = glossary.ESTIMATE if now.is_estimate else glossary.RANGE
    yardstick.remember(now, now.named.name, now.placement, value_s)
    row = desk.part("score", in_line=True)
    value = f"**{formatting.seconds(value_s, unit)}** per {goal.per}"
    row.markdown(
        figure(TIMES[now.problem.costs.origin], value),
        help=" ".join((glossary.VALUE_HELP[goal], f"Expected: {limits}." * bool(limits), sure)),
        width="content",
    )
    disproof = caveats.disproof(now)
    holds = disproof is None
    _last_edit(row, last_edit.seen(now), holds=holds)
    if snapshot.violations_of(now):
        told = glossary.plain(" ".join(snapshot.violations_of(now)))
        # With a help that stays in a narrow row: it is the only place that says why.
        refused = row.container(key="desk-refused", width="content")
        refused.markdown(":red[:material/warning: **not allowed**]", help=told, width="content")
    name = _chosen(now)
    reference = reference_of(now, name)
    row.markdown(
        against(now.simulated, reference, name, holds=holds, broken=_broken(now, name)),
        width="content",
        help=_about_reference(now, name, reference),
    )
    if disproof is not None:
        _disproved(row, now, disproof)
    elif not lesson.hides(now, "bound"):
        bound_s = snapshot.bound_of(now)
        above = predicted.above(value_s, bound_s)
        told = f"Of the placement on the screen: {above}." if above else ""
        row.markdown(
            figure(
                f"best possible{', estimated' * now.is_estimate}",
                f"≥ {formatting.seconds(bound_s, unit)}",
            ),
            help=" ".join(filter(None, (predicted.about_bound(now), told))),
            width="content",
        )
    if disproof is None:
        row.markdown(_measured(now), width="content")
    if disproof is not None or not lesson.hides(now, "bound"):
        with row.popover("More"):
            predicted.show(now)


def figure(about: str, text: str) -> str:
    """A figure with what it is in small letters above, which takes less room than one line."""
    return f":small[{about}]  \n{text}"


def _disproved(row: DeltaGenerator, now: Studio, job: jobs.Job) -> None:
    """In the place of a bound that a run went below: that the costs hold no longer."""
    assert job.ran is not None
    rests_on, remedy = ("estimates", "measure") if now.is_estimate else ("costs", "measure again")
    is_own = runs.of_placement((job,), now.placement) is not None
    of = "" if is_own else f" of {glossary.plain(job.about.placement, 24)}"
    took = f"{job.ran.verb.lower()} **{formatting.seconds(runs.measured_s(job.ran))}**{of}"
    row.markdown(
        figure(
            f"less than the {rests_on} allow",
            f":orange[:material/warning: {took}]",
        ),
        width="content",
        help=run_warnings.DISPROVED[now.is_estimate],
    )
    # With a help of its own it would go with all helps where the row is narrow.
    remedied = row.container(key="desk-remedy", width="content")
    remedied.page_link("pages/devices.py", label=f":primary[{remedy}]", width="content")


def _last_edit(row: DeltaGenerator, edit: LastEdit | None, *, holds: bool) -> None:
    """For a while, what the edit that led here has changed."""
    if edit is not None and edit.is_fresh and edit.change.way:
        sign, colour = ("▼", "green") if edit.change.way < 0 else ("▲", "red")
        colour = colour if holds and not edit.change.is_tie else "gray"
        told = row.container(key=f"last-edit-{edit.number}", width="content")
        change = f":{colour}[{sign} {glossary.plain(edit.change.text)}]"
        told.markdown(figure("the last edit", change), width="content")


def against(
    shown: Simulated,
    reference: Simulated | None,
    name: str,
    *,
    holds: bool = True,
    broken: Sequence[str] = (),
) -> str:
    """The change against a reference, in words that say which way it goes.

    It is neither praised nor blamed in a tie, nor where the costs that it was predicted by do not
    hold, nor where the reference breaks rules.
    """
    called = glossary.plain(name, 40) + ", not allowed" * bool(broken)
    holds = holds and not broken
    if reference is None or reference.value <= 0:
        return f"nothing to compare with: {called} is not possible" if name else ""
    change = shown.value / reference.value - 1.0
    if abs(change) < SAME:
        return figure(f"against {called}", "the same")
    tie = is_tie(shown.value, shown.range_s, reference.value, reference.range_s)
    colour = "gray" if tie or not holds else "green" if change < 0 else "orange"
    percent = formatting.percent(change, signed=True)
    return figure(f"against {called}", f":{colour}[**{percent}**{', a tie' * tie}]")


def _about_reference(now: Studio, name: str, reference: Simulated | None) -> str:
    if reference is None:
        return REFERENCE_HELP
    said = [REFERENCE_HELP]
    said.append(f"Predicted of it: {formatting.seconds(reference.value, now.problem.unit)}.")
    broken = _broken(now, name)
    if broken:
        said.append(f"It is not allowed: {glossary.plain(broken[0])}")
    shown = now.simulated
    if is_tie(shown.value, shown.range_s, reference.value, reference.range_s):
        said.append(TIE)
    if now.pins and not any(item.name == name for item in now.shelf.items):
        said.append("Pins do not count there.")
    return " ".join(said)


def references(now: Studio) -> list[str]:
    """Names of what there is to compare with: each device alone first, then other placements."""
    alone = [f"{ALONE}{device.name}" for device in now.machine.devices]
    return alone + [item.name for item in now.shelf.items if item.name != now.named.name]


def _chosen(now: Studio) -> str:
    names = references(now)
    kept = str(choices.kept(REFERENCE, choices.remembered(REFERENCE, "")))
    return kept if kept in names else f"{ALONE}{best_alone(now.problem)}"


def _choose(key: str) -> None:
    # A session that may only look chooses for itself.
    choices.keep(REFERENCE, choices.typed(key, ""))
    choices.store(REFERENCE, choices.typed(key, ""))
    fragments.only("numbers")


def reference_of(now: Studio, name: str) -> Simulated | None:
    """What is predicted of a reference; None where it cannot be."""
    try:
        return cache.simulated(now.problem, _placement(now, name))
    except ValueError:
        return None


def _broken(now: Studio, name: str) -> tuple[str, ...]:
    """What keeps a reference from being a placement at all, one sentence each."""
    try:
        return cache.violations(now.problem, _placement(now, name))
    except ValueError:
        return ()


def _placement(now: Studio, name: str) -> Placement:
    if any(item.name == name for item in now.shelf.items):
        return standings.placement_of(now, name)
    return all_on(now.problem, now.machine.device(name.removeprefix(ALONE)))


@by_identity(16)
def best_alone(problem: Problem) -> str:
    """The single device that is hardest to beat; the first one where none holds the model."""
    devices = problem.machine.devices
    with suppress(ValueError):
        return devices[Single().best(problem)[0]].name
    return devices[0].name


@by_identity(16)
def all_on(problem: Problem, device: Device) -> Placement:
    """All on one device that can be, the rest where it is fastest: a yardstick stays the same
    whatever is pinned or edited."""
    return everything_on(problem, problem.machine.index[device.name])


def _measured(now: Studio) -> str:
    """What a run of this very placement measured, and how far off the prediction is."""
    if not now.model.has_weights:
        return "no weights: predicted only"
    job = runs.of_placement(runs.made_here(now), now.placement)
    if job is None or job.ran is None:
        return "not run yet" if now.can_measure else ""
    measured_s = runs.measured_s(job.ran)
    if not measured_s:
        return ""
    told = f"prediction {formatting.percent(now.simulated.value / measured_s - 1.0, signed=True)}"
    if isinstance(job.ran, RunResult) and caveats.is_doubtful(job.ran):
        told = "doubtful, run again"
    return figure(job.ran.verb.lower(), f"**{formatting.seconds(measured_s)}** ({told})")
