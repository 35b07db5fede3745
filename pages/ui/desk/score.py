"""The score: what the placement on the screen is predicted to take, and against what it stands."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.consequence import last_edit
from pages.ui.consequence.last_edit import LastEdit
from pages.ui.desk import desk
from pages.ui.panels import placement_menu, predicted, yardstick
from pages.ui.session import cache, choices, fragments
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from pages.ui.shell.messages import plain_errors
from placement.constraints.fusion import mended
from placement.core import formatting
from placement.core.placement import Placement
from studio import editing, lesson, snapshot, standings
from studio.jobs import caveats, jobs, runs
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
# By whether the costs are estimates.
DISPROVED = {
    False: "Measured is below what the costs allow for any placement, so they no longer tell how"
    " fast this computer is; most often other programs computed while the network was measured."
    " Measure this network again on the Devices page, and all is predicted anew.",
    True: "Measured is below what the estimates allow for any placement, so this computer is faster"
    " than they take it to be. Measure this network on the Devices page, and all is predicted"
    " anew.",
}


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
    rests_on = TIMES[now.problem.costs.origin]
    row.markdown(
        f"**{formatting.seconds(value_s, unit)}** per {goal.per}, {rests_on}",
        help=" ".join((glossary.VALUE_HELP[goal], f"Expected: {limits}." * bool(limits), sure)),
        width="content",
    )
    job = runs.of_placement(runs.made_here(now), now.placement) if now.model.has_weights else None
    holds = job is None or not caveats.beats_bound(now, job)
    _last_edit(row, last_edit.seen(now), holds=holds)
    if snapshot.violations_of(now):
        told = glossary.plain(" ".join(snapshot.violations_of(now)))
        row.markdown(":red[:material/warning: **not allowed**]", help=told, width="content")
    name = _chosen(now)
    reference_s = _reference_s(now, name)
    about = _about_reference(reference_s, unit)
    change = against(value_s, reference_s, name, holds=holds)
    row.markdown(change, width="content", help=about)
    if job is not None and not holds:
        _disproved(row, job, is_estimate=now.is_estimate)
        with row.popover("More"):
            predicted.show(now)
        return
    if lesson.hides(now, "bound"):
        row.markdown(_measured(now, job, value_s), width="content")
        return
    bound_s = snapshot.bound_of(now)
    above = predicted.above(value_s, bound_s)
    row.container(key="desk-bound", width="content").markdown(
        f"best possible ≥ {formatting.seconds(bound_s, unit)}",
        help=glossary.BOUND + f" Of the placement on the screen: {above}." * bool(above),
        width="content",
    )
    row.markdown(_measured(now, job, value_s), width="content")
    with row.popover("More"):
        predicted.show(now)


def _disproved(row: DeltaGenerator, job: jobs.Job, *, is_estimate: bool) -> None:
    """In the place of a bound that a run went below: that the costs hold no longer."""
    assert job.ran is not None
    rests_on, remedy = ("estimates", "measure") if is_estimate else ("costs", "measure again")
    row.markdown(
        f":orange[:material/warning: {job.ran.verb.lower()}"
        f" **{formatting.seconds(job.ran.step_s.median)}**, less than the {rests_on} allow:]",
        width="content",
        help=DISPROVED[is_estimate],
    )
    # With a help of its own it would go with all helps where the row is narrow.
    remedied = row.container(key="desk-remedy", width="content")
    remedied.page_link("pages/devices.py", label=f":primary[{remedy}]", width="content")


def _last_edit(row: DeltaGenerator, edit: LastEdit | None, *, holds: bool) -> None:
    """For a while, what the edit that led here has changed."""
    if edit is not None and edit.is_fresh and edit.change.way:
        sign, colour = ("▼", "green") if edit.change.way < 0 else ("▲", "red")
        colour = colour if holds else "gray"
        told = row.container(key=f"last-edit-{edit.number}", width="content")
        told.markdown(f":{colour}[{sign} {glossary.plain(edit.change.text)}]", width="content")


def against(value_s: float, reference_s: float | None, name: str, *, holds: bool = True) -> str:
    """The change against a reference, in words that say which way it goes.

    It is neither praised nor blamed where the costs that it was predicted by do not hold.
    """
    called = glossary.plain(name, 40)
    if reference_s is None or reference_s <= 0:
        return f"nothing to compare with: {called} is not possible" if name else ""
    change = value_s / reference_s - 1.0
    if abs(change) < SAME:
        return f"the same as {called}"
    colour = ("green" if change < 0 else "orange") if holds else "gray"
    return f":{colour}[**{formatting.percent(change, signed=True)}**] against {called}"


def _about_reference(reference_s: float | None, unit: str) -> str:
    if reference_s is None:
        return REFERENCE_HELP
    return f"{REFERENCE_HELP} Predicted of it: {formatting.seconds(reference_s, unit)}."


def references(now: Studio) -> list[str]:
    """Names of what there is to compare with: each device alone first, then other placements."""
    alone = [f"{ALONE}{device.name}" for device in now.machine.devices]
    return alone + [item.name for item in now.shelf.items if item.name != now.named.name]


def _chosen(now: Studio) -> str:
    names = references(now)
    kept = str(choices.kept(REFERENCE, choices.remembered(REFERENCE, "")))
    return kept if kept in names else names[0]


def _choose(key: str) -> None:
    # A session that may only look chooses for itself.
    choices.keep(REFERENCE, choices.typed(key, ""))
    choices.store(REFERENCE, choices.typed(key, ""))
    fragments.only("numbers")


def _reference_s(now: Studio, name: str) -> float | None:
    """Predicted seconds of a reference; None where it cannot be."""
    try:
        return cache.simulated(now.problem, _placement(now, name)).value
    except ValueError:
        return None


def _placement(now: Studio, name: str) -> Placement:
    if any(item.name == name for item in now.shelf.items):
        return standings.placement_of(now, name)
    return mended(now.problem, editing.all_on(now, name.removeprefix(ALONE)))


def _measured(now: Studio, job: jobs.Job | None, value_s: float) -> str:
    """What a run of this very placement measured, and how far off the prediction is."""
    if not now.model.has_weights:
        return "no weights: predicted only"
    if job is None or job.ran is None:
        return "not measured yet" if now.can_measure else ""
    measured_s = job.ran.step_s.median
    if not measured_s:
        return ""
    off = formatting.percent(value_s / measured_s - 1.0, signed=True)
    verb = job.ran.verb.lower()
    return f"{verb} **{formatting.seconds(measured_s)}** (prediction {off})"
