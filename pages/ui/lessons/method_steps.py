"""The method that a lesson teaches, step by step: once the lesson is done, or given up."""

import streamlit as st

from pages.ui.desk import dock
from pages.ui.session import choices, fragments
from pages.ui.session.current import studio
from pages.ui.steps import walk
from studio import lesson as lessons
from studio.lesson import Work


def button(done: Work) -> None:
    """One press opens the Steps tab with the method, where it shows its steps here."""
    now = studio()
    shown = walk.methods_with_steps(now)
    method = next((name for name in done.lesson.header.methods if name in shown), "")
    if method and lessons.is_over(now):
        st.button(
            f"See {method} decide this",
            key="lesson-steps",
            icon=":material/play_circle:",
            on_click=_follow,
            args=(method,),
            help="Opens the tab Steps: what the method works out here, one choice after another.",
        )


def _follow(method: str) -> None:
    choices.put(choices.own(walk.METHOD), method)
    dock.open_tab(walk.TAB)
    fragments.only("canvas", "lesson", "side", "dock")
