"""Redraw only the parts that an edit touches."""

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.ui.session import choices

# In this order: the picture answers before the moves are looked at anew.
EDITED = (
    "said",
    "placements",
    "numbers",
    "canvas",
    "lesson",
    "side",
    "dock",
    "table",
    "hints",
    "export",
    "command",
    "present",
    "saved",
)
SELECTED = ("canvas", "side", "table", "timeline")
# On whatever page there is a picture; the others are on some pages, or in what is open of them.
WITH_PICTURE = frozenset({"canvas", "side"})


def only(*fragments: str) -> None:
    """Ends a callback with a rerun of these fragments; of the page where they are not on it.

    A browser that has just left the page may still send a late edit to a callback of it. Where a
    message became part of a rerun of the whole page, that is what follows: a rerun of fragments
    would take its place, and draw into containers that the browser does not have yet.
    """
    names = tuple(name for name in fragments if _is_drawn(name))
    if not choices.is_drawn_alone():
        return
    if names and not WITH_PICTURE & (set(fragments) - set(names)):
        st.rerun(names)


def _is_drawn(name: str) -> bool:
    context = get_script_run_ctx()
    if context is None:
        return False
    try:
        return bool(context.fragment_storage.resolve_target(name))
    except StreamlitAPIException:
        return False
