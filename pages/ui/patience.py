"""Waiting for a model to open: for how long so far, and a way to call it off."""

import time

import streamlit as st

from pages.ui import cached, choices, loading, opening, projects, switching, words
from pages.ui.projects import Project

QUICK_S, LOOK_S = 0.8, 0.5
WHY = "A training step of a large network is traced op by op, which may take a minute."


def wait(opened: Project) -> None:
    """Return once the model of a project is there, or has failed to open.

    Whatever opens at once shows nothing. Each word about the time is a place where Streamlit starts
    over if the button was pressed.
    """
    key = cached.model_key(opened.source, _dims(opened))
    if cached.is_open(key):
        return
    under_way = loading.start(key)
    if under_way.done.wait(QUICK_S):
        return
    slot = st.empty()
    with slot.container(border=True):
        said = st.empty()
        st.caption(WHY)
        st.button("Cancel", key=f"cancel-opening-{opened.id}", on_click=_cancel, args=(key,))
    while not under_way.done.wait(LOOK_S):
        seconds = time.monotonic() - under_way.began_s
        name = words.plain(opened.settings.model, 80)
        queue = " It begins when the model before it has been read." * under_way.is_queued
        said.markdown(
            f":material/hourglass_top: Opening **{name}**: {seconds:.0f} s so far.{queue}"
        )
    slot.empty()


def _dims(opened: Project) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((str(k), int(v)) for k, v in opened.settings.dims.items()))


def _cancel(key: loading.Key) -> None:
    """Go back to the project or the model of before; where there is none, to a new project."""
    loading.forget(key)
    if switching.back():
        return
    opened, before = choices.project(), choices.kept("model-before", {})
    choices.keep("model-before", {})
    if before and choices.renew_claim(opened):
        opened.change(**before)
        opening.show_sample_again(opened)
    else:
        choices.show_project(projects.create())
