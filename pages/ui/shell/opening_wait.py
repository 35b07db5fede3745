"""Waiting for a model to open: for how long so far, and a way to call it off."""

import time
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from pages.ui.session import cache, choices, saving
from pages.ui.shell import glossary, model_request, open_model
from studio import model_reader
from studio.project import store
from studio.project.store import Project

QUICK_S, LOOK_S = 0.8, 0.5
WHY = (
    "A training step of a large network is traced op by op, which may take a minute; large files"
    " take their time too."
)


def wait(opened: Project) -> None:
    """Return once a model that was asked for is open, and the project's is there or has failed.

    What is wrong with a model that was asked for is said on the page, which keeps the one it has.
    """
    wish = model_request.current()
    if wish is not None:
        _until_read(wish.key, wish.model, "wanted", cancel)
        with saving.change(f"{Path(wish.model).name} was not opened."):
            try:
                model_request.take_over(opened, wish)
            except ValueError as error:
                choices.say("error", str(error))
                _forget()
            except Exception:
                _forget()
                raise
        opened = choices.project()
    settings = opened.settings
    key = cache.model_key(opened.source, tuple(sorted(settings.dims.items())))
    _until_read(key, settings.model, opened.id, leave, key)


def _until_read(
    key: model_reader.Key,
    model: str,
    name: str,
    call_off: Callable[..., None],
    *args: model_reader.Key,
) -> None:
    """Return once a model is there, or has failed to open; whatever opens at once shows nothing.

    Each word about the time is a place where Streamlit starts over if the button was pressed.
    """
    if cache.is_open(key):
        return
    under_way = model_reader.start(key)
    if under_way.done.wait(QUICK_S):
        return
    slot = st.empty()
    with slot.container(border=True):
        said = st.empty()
        st.caption(WHY)
        st.button("Cancel", key=f"cancel-opening-{name}", on_click=call_off, args=args)
    while not under_way.done.wait(LOOK_S):
        seconds = time.monotonic() - under_way.began_s
        queue = " It begins when the model before it has been read." * under_way.is_queued
        said.markdown(
            f":material/hourglass_top: Opening **{glossary.plain(model, 80)}**:"
            f" {seconds:.0f} s so far.{queue}"
        )
    slot.empty()


def cancel() -> None:
    """Forget a wish so that the same may be asked for again, by its path too."""
    _forget()
    choices.put("path", "")


def _forget() -> None:
    """Stay with the model that is open."""
    model_request.forget()
    open_model.show_again(choices.project())


def leave(key: model_reader.Key) -> None:
    """Go to a new project, where the project's own model takes too long to open."""
    model_reader.forget(key)
    choices.show_project(store.create_or_show())
