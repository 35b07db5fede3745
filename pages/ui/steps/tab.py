"""The tab Steps: a method at work, drawn on the same graph and timeline as every placement."""

import streamlit as st

from pages.ui.panels import timeline_component
from pages.ui.session import cache, choices, fragments
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import glossary
from pages.ui.steps import player, walk
from pages.ui.steps.plan import end_s, step_panel
from pages.ui.steps.walk import Walk
from pages.ui.timeline.timelines import colours_of
from placement.core import formatting
from placement.placers import names as placer_names
from placement.placers import placer_class
from studio import snapshot
from studio.jobs import methods
from studio.snapshot import Studio

PREDICT_HELP = "Hides each choice of the method until you have said what it will be."
TAKE_HELP = "Makes what the method answers in its last step the placement, as Place does."
LEGEND = (
    {"mark": "selected", "text": "placed in this step"},
    {"mark": "alternative", "text": "where it could have run"},
)
GRAPH = "The graph shows this step, too: grey is not placed yet, the ring is what is looked at."


def show(now: Studio) -> None:
    """Draw the menu of methods, the controls, and the plan so far."""
    names = walk.methods_with_steps(now)
    if not names:
        st.info("None of the methods for this model and goal shows its steps.")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _menu(now, names)
    shown = walk.walk(now)
    assert shown is not None
    left, right = st.columns([0.56, 0.44])
    with left:
        player.draw(now, shown, _on_told)
    with right:
        _timeline(now, shown)


def _menu(now: Studio, names: list[str]) -> None:
    asked_for = str(choices.remembered("placer", methods.DEFAULT))
    key = choices.own(walk.METHOD)
    choices.preset(key, walk.chosen(now))
    st.selectbox(
        "Method to follow",
        names,
        key=key,
        on_change=_redraw,
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
    st.caption(_said(asked_for, names, walk.chosen(now)))


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
        _axis_s(now, shown.method),
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
    )


def _axis_s(now: Studio, method: str) -> float:
    return end_s(cache.steps(now.pinned_problem, method).steps)


def _on_told() -> None:
    player.apply()
    _redraw()


def _redraw() -> None:
    """The tab, and the picture that shows the same step."""
    fragments.only("canvas", "dock")


def _take(now: Studio) -> None:
    """What the method answers becomes the placement on the screen, with all that Place tells."""
    method = walk.chosen(studio())
    try:
        placed = cache.followed(now.pinned_problem, method)
    except ValueError as error:
        choices.say("warning", str(error))
        return
    name = now.shelf.add(method, placed.placement, method, snapshot.facts_of(placed))
    value = formatting.seconds(placed.value, now.problem.unit)
    choices.say("success", f"{name} is the placement now, predicted to take {value}.")
