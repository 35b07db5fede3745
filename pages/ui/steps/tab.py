"""The tab Steps: a method at work, drawn on the same graph and timeline as every placement."""

import streamlit as st

from pages.ui.panels import timeline_component
from pages.ui.session import cache, choices, fragments
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import glossary, job_status
from pages.ui.shell.messages import plain_errors
from pages.ui.steps import player, walk
from pages.ui.steps.plan import end_s, step_panel
from pages.ui.steps.walk import Walk
from pages.ui.timeline.timelines import colours_of
from placement.core import formatting
from placement.placers import names as placer_names
from placement.placers import placer_class
from studio import following, snapshot
from studio.following import Following
from studio.jobs import methods
from studio.snapshot import Studio

PREDICT_HELP = "Hides each choice of the method until you have said what it will be."
TAKE_HELP = "Makes what the method answers in its last step the placement, as Place does."
CANCEL_HELP = "Ends it, also for other windows that wait for it."
LEGEND = (
    {"mark": "selected", "text": "placed in this step"},
    {"mark": "alternative", "text": "where it could have run"},
)
GRAPH = "The graph shows this step, too: grey is not placed yet, the ring is what is looked at."


def show(now: Studio) -> None:
    """Draw the menu of methods, the controls, and the plan so far."""
    walk.begin(now)
    names = walk.methods_with_steps(now)
    if not names:
        st.info("None of the methods for this model and goal shows its steps.")
        return
    with st.container(key="steps", gap="xsmall"):
        with st.container(
            key="steps-menu", horizontal=True, vertical_alignment="center", gap="small"
        ):
            _menu(now, names)
        # One place for all of it, so that nothing of one method is left under the name of another.
        with st.container(key=f"steps-of-{walk.chosen(now)}"):
            _walk(now)


def _walk(now: Studio) -> None:
    """The controls and the plan; while the method takes long, how far it is."""
    ahead = cache.follow(now.pinned_problem, walk.chosen(now))
    if ahead is not None and not ahead.done.is_set():
        _under_way()
        return
    if ahead is not None and not ahead.is_there:
        _ended(ahead)
        return
    shown = walk.walk(now)
    assert shown is not None
    # Letters are larger before an audience, and of the plan a glance is enough there.
    share = 0.64 if choices.presenting() else 0.56
    left, right = st.columns([share, 1.0 - share])
    with left:
        player.draw(now, shown, _on_told)
    with right:
        _timeline(now, shown)


@st.fragment(run_every=job_status.POLL_S)
@plain_errors()
def _under_way() -> None:
    """How far a method is that is followed; the rest of the page is alive meanwhile."""
    now = studio()
    method = walk.chosen(now)
    ahead = cache.follow(now.pinned_problem, method) if method else None
    if ahead is None or ahead.done.is_set():
        # The picture shows the first step as well, and only a callback may draw parts alone.
        st.rerun()
    assert ahead is not None
    bar, cancel = st.columns([0.84, 0.16], vertical_alignment="center")
    bar.progress(ahead.share, text=glossary.plain(f"Following {method}: {ahead.doing}"))
    cancel.button(
        "Cancel", key="steps-cancel", on_click=ahead.stop, width="stretch", help=CANCEL_HELP
    )


def _ended(ahead: Following) -> None:
    """Why there are no steps, and the way to follow the method once more."""
    (st.info if ahead.is_stopped else st.error)(glossary.plain(ahead.error))
    st.button(
        "Follow it again",
        key="steps-again",
        on_click=following.forget,
        args=(ahead,),
    )


def _menu(now: Studio, names: list[str]) -> None:
    asked_for = str(choices.remembered("placer", methods.DEFAULT))
    key = choices.own(walk.METHOD)
    choices.preset(key, walk.chosen(now))
    st.selectbox(
        "Method to follow",
        names,
        key=key,
        on_change=_choose,
        args=(key,),
        label_visibility="collapsed",
        width=180,
        help=GRAPH,
    )
    st.toggle("Predict first", key=choices.own(walk.PREDICT), on_change=_redraw, help=PREDICT_HELP)
    st.button(
        "Make this the placement",
        key="steps-take",
        on_click=carry_out,
        args=(_take,),
        disabled=not choices.may_write(),
        help=TAKE_HELP,
    )
    if not choices.presenting():
        st.caption(_said(asked_for, names, walk.chosen(now)))


def _choose(key: str) -> None:
    # The menu is gone while another tab is open.
    choices.keep(key, choices.typed(key, ""))
    fragments.only("canvas", "side", "dock", "present")


def _said(asked_for: str, names: list[str], chosen: str) -> str:
    """About the method: that it searches for less, or that another was asked for."""
    batches = placer_class(chosen).followed_with.get("max_iterations")
    if batches:
        return f"Followed for {batches} batches; Place searches as long as its settings say."
    if asked_for not in names:
        why = placer_class(asked_for).no_steps if asked_for in placer_names() else ""
        because = f": {why}" if why else ""
        return f"{glossary.plain(asked_for)} does not show its steps{because}; these do."
    return GRAPH


def _timeline(now: Studio, shown: Walk) -> None:
    step = shown.step
    number = f"step {shown.at + 1} of {len(shown.steps)}"
    title = "Predicted" if step.placement else "Plan so far"
    panel = step_panel(
        now.problem,
        step,
        shown.before if shown.at else step,
        f"{title}, {shown.method}",
        number,
        colours_of(now),
        end_s(shown.steps),
        hidden=shown.is_hidden,
        ghosts=not shown.asks_for_op,
    )
    chosen = () if shown.is_hidden else step.focus
    timeline_component.draw(
        [panel],
        key="steps-plan",
        of=f"{shown.method} {now.pinned_problem.fingerprint}",
        selection=chosen,
        legend=LEGEND,
        fits=True,
    )


def _on_told() -> None:
    before = choices.selection()
    player.apply()
    side = ("side",) if choices.selection() != before else ()
    fragments.only("canvas", *side, "dock", "present")


def _redraw() -> None:
    """The tab, and the picture that shows the same step."""
    fragments.only("canvas", "dock", "present")


def _take(now: Studio) -> None:
    """What the method answers becomes the placement on the screen, with all that Place tells."""
    method = walk.chosen(studio())
    try:
        found = cache.steps(now.pinned_problem, method)
        if found is None:
            choices.say("warning", f"{method} is still at work; take its answer when it is done.")
            return
        value_s = cache.simulated(now.problem, found.placement).value
        facts = snapshot.facts_of_steps(now, found)
        name = now.shelf.add(method, found.placement, method, facts)
    except ValueError as error:
        choices.say("warning", str(error))
        return
    value = formatting.seconds(value_s, now.problem.unit)
    choices.say("success", f"{name} is the placement now, predicted to take {value}.")
