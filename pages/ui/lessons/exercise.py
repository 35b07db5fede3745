"""The tab Exercise: beat a method by hand, on whatever network is open."""

import streamlit as st

from pages.ui.session import choices
from pages.ui.session.current import carry_out
from pages.ui.shell import glossary
from placement.core import formatting
from studio import exercise, lesson
from studio.exercise import LEVEL, Exercise, Level
from studio.snapshot import Studio

OFF = "no exercise"
ABOUT = (
    "Choose what to beat, then move ops by hand. The target stands as a line on the timeline. The"
    " third level is the best that any method has found in this project: press Place to raise it."
    " What counts is what you have made better: a copy of what beats the target already beats"
    " nothing, and neither does a tie, of which a run may measure the one or the other as faster."
)
BEGIN_HELP = "A new placement of your own, to which no method has put a hand."


def show(now: Studio) -> None:
    """The levels, and how near the placement on the screen is to the chosen one."""
    key, chosen = choices.own(LEVEL), exercise.level_of(now)
    st.radio(
        "Beat",
        [OFF, *Level],
        index=0 if chosen is None else 1 + list(Level).index(chosen),
        horizontal=True,
        key=key,
        on_change=choices.remember(LEVEL, key),
        disabled=not choices.may_write(),
        help=ABOUT,
    )
    found = exercise.of(now)
    if found is not None:
        _standing(now, found)
    elif chosen is not None:
        st.info("No method has a placement here yet that keeps all rules; press Place.")


def _standing(now: Studio, found: Exercise) -> None:
    unit = now.problem.unit
    value, target = (formatting.seconds(s, unit) for s in (found.value_s, found.target_s))
    by, moved = glossary.plain(found.by), formatting.counted(found.num_moved, "op")
    said = f"{value} against {target} of {by}; {moved} moved"
    if found.is_beaten:
        less = formatting.percent(1.0 - found.value_s / found.target_s)
        st.success(f"Beaten by {less}: {said}.", icon=":material/trophy:")
    elif not found.allowed:
        st.warning(f"This placement is not allowed, so it beats nothing: {said}.")
    elif found.began_better:
        began = formatting.seconds(found.began_s, unit)
        whose = f"This began as a copy of what took {began}" if found.own else "This is a method's"
        st.info(f"{said}. {whose}, better already; what you beat it by has to be your own work.")
    elif not found.own:
        st.info(f"{said}. This is a method's placement: move an op, and a copy is yours.")
    elif found.is_tie:
        st.info(f"A tie, within what predictions err by, and not beaten yet: {said}.")
    else:
        more = formatting.percent(found.value_s / found.target_s - 1.0)
        st.info(f"Not yet: {said}, {more} to go.")
    if not found.is_beaten:
        _remarks(now, found)


def _remarks(now: Studio, found: Exercise) -> None:
    """That nobody can beat the target, and the way to begin where no method has."""
    if found.is_out_of_reach and not lesson.hides(now, "bound"):
        bound = formatting.seconds(found.bound_s, now.problem.unit)
        by, why = glossary.plain(found.by), "a tie with it" if found.is_tied else "what it takes"
        st.caption(
            f"Nobody can beat {by} here: no placement takes less than {bound}, the bound, which is"
            f" {why}. Another network or machine leaves more to do."
        )
    if not found.own or found.began_better:
        device = glossary.plain(exercise.first_device(now))
        st.button(
            f"Begin with all on {device}",
            key="exercise-begin",
            on_click=carry_out,
            args=(exercise.begin,),
            disabled=not choices.may_write(),
            help=BEGIN_HELP,
        )
