"""The project of this browser session as a `Studio`: with the cache of all sessions, and the right
to write that this one has."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

import streamlit as st

from pages.ui.consequence import last_edit
from pages.ui.session import cache, choices, fragments, saving
from studio.project.store import Project
from studio.snapshot import Studio


class _Session:
    def may_write(self) -> bool:
        return choices.may_write()

    def unwritable(self) -> str:
        return choices.unwritable()

    def change(self, lost: str) -> AbstractContextManager[None]:
        return saving.change(lost)

    def say(self, kind: str, text: str) -> None:
        choices.say(kind, text)

    def show_run(self, job_id: str) -> None:
        choices.show_run(job_id)


def studio() -> Studio:
    """The project that this session has open."""
    return snapshot(choices.project())


def snapshot(project: Project) -> Studio:
    """A project at this moment."""
    return Studio(project, project.settings, cache, _Session())


def edit(change: Callable[[Studio], str | None]) -> None:
    """Make a change where this session may write, and redraw what an edit touches."""
    before, now = on_screen(), studio()
    if choices.renew_claim(now.project):
        attempt(now, change)
    redraw(before)


class OnScreen(NamedTuple):
    """The file of the placement on the screen, and those of all that there are."""

    file: str
    known: frozenset[str]


def on_screen() -> OnScreen:
    """What is on the screen at this moment, for `redraw` after a change."""
    shelf = studio().shelf
    current = shelf.current
    return OnScreen(
        "" if current is None else current.file, frozenset(item.file for item in shelf.items)
    )


def redraw(before: OnScreen, *also: str) -> None:
    """End a callback by drawing what an edit touches, and `also` other fragments.

    All of the page is drawn where undo or redo put another placement on the screen that was there
    `before`: whatever the page says of one may not stay beside another. A copy that an edit made
    was not there.
    """
    file = on_screen().file
    if file != before.file and file in before.known:
        choices.show_run("")
        st.rerun()
    fragments.only(*also, *fragments.EDITED)


def carry_out(asked: Callable[[Studio], object]) -> None:
    """Do what somebody asked for, where this session may write, and draw all of the page anew."""
    now = studio()
    if choices.renew_claim(now.project):
        asked(now)
    st.rerun()


def attempt(now: Studio, change: Callable[[Studio], str | None]) -> None:
    """Say what a change has to tell, or by its ValueError why it cannot be made."""
    try:
        kind, told = "info", change(now)
        last_edit.made(now, studio())
    except ValueError as error:
        kind, told = "refused", str(error)
    if told:
        choices.say(kind, told)
