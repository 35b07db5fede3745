"""Messages in plain words: what was left to say, and errors as one sentence instead of a trace."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.elements import exception
from streamlit.errors import FragmentHandledException

from pages.ui import choices, words
from pages.ui.atomic import NotWritten

FAULT = (
    "The studio met a fault of its own here. What you did last may not be saved, everything before"
    " is; reload the page to go on. What happened stands in the terminal that runs the studio"
)
_log = logging.getLogger(__name__)
# What Streamlit says about a fault in a callback or fragment, where nothing of ours is around it.
exception._GENERIC_UNCAUGHT_EXCEPTION_TEXT = f"{FAULT}."


def show(place: str = "page") -> None:
    """Draw the messages that callbacks and earlier runs left behind for a place, once."""
    for kind, text in choices.take_messages(place):
        getattr(st, kind)(words.plain(text))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Draw an error as one sentence, around a page or (as a decorator) inside a fragment.

    A ValueError was written for people. Anything else is a fault of ours, and its trace is for us.
    """
    try:
        yield
    except ValueError as error:
        st.error(words.plain(str(error)))
    except NotWritten as error:
        st.error(words.plain(f"{error.lost} {error.of_folder}".strip()))
    except FragmentHandledException:
        # It has been shown inside the fragment, and ends the page.
        raise
    except Exception as error:
        _log.exception("A page met a fault")
        st.error(f"{FAULT} ({words.plain(type(error).__name__)}).", icon=":material/report:")
