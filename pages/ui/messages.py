"""Messages in plain words: what was left to say, and errors as one sentence instead of a trace."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from pages.ui import choices, words


def show() -> None:
    """Draw the messages that callbacks and earlier runs left behind, once."""
    for kind, text in choices.take_messages():
        getattr(st, kind)(words.plain(text))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Draw a ValueError as its sentence; it was written for people. Other faults are ours."""
    try:
        yield
    except ValueError as error:
        st.error(words.plain(str(error)))
