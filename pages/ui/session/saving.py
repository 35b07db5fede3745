"""Changes that a person makes: written whole or taken back, and told of where they are not saved.

Whatever a widget calls runs inside `change`, so that no page and no button has to think of a disk
that is full or a folder that may only be read. The sentence stays until a change is saved.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.session import callbacks, choices
from pages.ui.shell import glossary
from studio.project.files import NotWritten, all_or_nothing

TAKEN_BACK = "Your last change was not saved, so it has been taken back."


@contextmanager
def change(lost: str = TAKEN_BACK) -> Iterator[None]:
    """Keep what is written here all together, or nothing of it and say what is lost.

    It is not left in the middle for what comes from the browser.
    """
    with callbacks.uninterrupted():
        yield from _change(lost)


def upload(found: UploadedFile | None, uploader: str, take: Callable[[UploadedFile], None]) -> None:
    """Take over what was put into an uploader, once, and draw the page anew."""
    if found is not None and not choices.upload_seen(uploader, found.file_id):
        with callbacks.uninterrupted():
            take(found)
        st.rerun()


def _change(lost: str) -> Iterator[None]:
    before = choices.not_saved()
    try:
        with all_or_nothing() as written:
            yield
    except NotWritten as error:
        choices.note_not_saved(f"{error.lost or lost} {error.of_folder}")
        return
    finally:
        # A page that starts over from here has saved what it has written.
        saved = written.num_written and before == choices.not_saved()
        if before and saved:
            _saved_again()


def _saved_again() -> None:
    """Write what is still only on the screen, and end the message once nothing is."""
    try:
        choices.write_unsaved()
    except NotWritten as error:
        choices.note_not_saved(f"{error.lost} {error.of_folder}")
    else:
        choices.note_not_saved("")


def show() -> None:
    """Say what is not saved, and why nothing can be where that is so."""
    lost, locked = _to_tell()
    choices.keep("told", [lost, locked])
    if locked:
        st.error(f"{glossary.plain(locked)} {LOOK_ONLY}", icon=":material/lock:")
    if lost:
        st.error(glossary.plain(lost), icon=":material/save:")


def is_outdated() -> bool:
    """Whether what the page said about saving, when all of it was drawn, is no longer so."""
    return choices.is_drawn_alone() and bool(choices.kept("told", ["", ""]) != list(_to_tell()))


def _to_tell() -> tuple[str, str]:
    return choices.not_saved(), choices.unwritable()


LOOK_ONLY = "Until then you can look at everything here, but change nothing."


def _whole(run: Callable[[], None]) -> Callable[[], None]:
    """A widget's callback as one change; the whole page is drawn anew where its message changes."""

    def run_whole() -> None:
        before = choices.not_saved()
        try:
            with change():
                run()
        finally:
            if choices.not_saved() != before:
                st.rerun()

    return run_whole


callbacks.carry_out(_whole)
