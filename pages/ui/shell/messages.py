"""Messages in plain words: what was left to say, and errors as one sentence instead of a trace."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.elements import exception
from streamlit.errors import FragmentHandledException

from pages.ui.session import cache, choices
from pages.ui.shell import glossary
from studio.project.files import NotWritten
from studio.snapshot import Studio

FAULT = (
    "The studio met a fault of its own here. What you did last may not be saved, everything before"
    " is; reload the page to go on. What happened stands in the terminal that runs the studio"
)
_SAID = "said-on-page"
_log = logging.getLogger(__name__)
# What Streamlit says about a fault in a callback or fragment, where nothing of ours is around it.
vars(exception)["_GENERIC_UNCAUGHT_EXCEPTION_TEXT"] = f"{FAULT}."


# Whoever has read these once need not read them again, nor why what was on the screen before could
# not be changed; what went wrong stays until it is right.
PASSING = ("info", "success", "refused")
DRAWN_AS = {"refused": "warning"}


def take(now: Studio) -> None:
    """Take the page's messages with what they are about, to be shown while that is shown."""
    choices.keep(_SAID, ("", []))
    take_new(now)


def take_new(now: Studio) -> None:
    """Take messages that were left since the page was drawn, in place of those before."""
    said = [(kind, glossary.plain(text)) for kind, text in choices.take_messages()]
    if said:
        choices.keep(_SAID, (_about(now), said))


def still_true(now: Studio) -> None:
    """Draw the messages that were taken, as far as they are about what is on the screen now.

    The newest comes first: of several the desk has one in sight until somebody opens the others.
    """
    about, said = choices.kept(_SAID, ("", []))
    for kind, text in reversed(said):
        if kind not in PASSING or about == _about(now):
            _draw(kind, text)


def _draw(kind: str, text: str) -> None:
    getattr(st, DRAWN_AS.get(kind, kind))(text)


def _about(now: Studio) -> str:
    """Stands for the placement on the screen and the pins as they are; empty without one."""
    try:
        current = now.shelf.current
        if current is None:
            return ""
        files = (now.shelf.path(current.name), now.shelf.pins_path)
        return " ".join([current.name, *map(cache.stamp, files)])
    except ValueError:
        return ""


def show(place: str = "page") -> None:
    """Draw the messages that callbacks and earlier runs left behind for a place, once."""
    for kind, text in choices.take_messages(place):
        _draw(kind, glossary.plain(text))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Draw an error as one sentence, around a page or (as a decorator) inside a fragment.

    A ValueError was written for people. Anything else is a fault of ours, and its trace is for us.
    """
    try:
        yield
    except ValueError as error:
        st.error(glossary.plain(str(error)))
    except NotWritten as error:
        st.error(glossary.plain(f"{error.lost} {error.of_folder}".strip()))
    except FragmentHandledException:
        # It has been shown inside the fragment, and ends the page.
        raise
    except Exception as error:
        _log.exception("A page met a fault")
        st.error(f"{FAULT} ({glossary.plain(type(error).__name__)}).", icon=":material/report:")
