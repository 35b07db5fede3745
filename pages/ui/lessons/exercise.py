"""The tab Exercise: beat a method by hand, on whatever network is open."""

import streamlit as st

from pages.ui.session import choices
from pages.ui.shell import glossary
from placement.core import formatting
from studio import exercise
from studio.exercise import LEVEL, Exercise, Level
from studio.snapshot import Studio

OFF = "no exercise"
ABOUT = (
    "Choose what to beat, then move ops by hand. The target stands as a line on the timeline. The"
    " third level is the best that any method has found in this project: press Place to raise it."
)


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
    elif not found.own:
        st.info(f"{said}. This is a method's placement: move an op, and a copy is yours.")
    else:
        more = formatting.percent(found.value_s / found.target_s - 1.0)
        st.info(f"Not yet: {said}, {more} to go.")
