"""Redraw only the parts that an edit touches."""

import streamlit as st
from streamlit.errors import StreamlitAPIException

# In this order: the picture answers before the moves are looked at anew.
EDITED = (
    "said",
    "numbers",
    "canvas",
    "side",
    "table",
    "timeline",
    "analysis",
    "hints",
    "export",
    "command",
)
SELECTED = ("canvas", "side", "table", "timeline")
# Not every page that can be edited on has these; those of a set come together.
ON_SOME_PAGES = (frozenset({"timeline", "analysis"}), frozenset({"command"}))


def only(*fragments: str) -> None:
    """Ends a callback with a rerun of these fragments; of the page where they are not on it.

    A browser that has just left the page may still send a late edit to a callback of it.
    """
    for own in (*ON_SOME_PAGES, frozenset[str]()):
        others = frozenset[str]().union(*ON_SOME_PAGES) - own
        names = tuple(name for name in fragments if name not in others)
        try:
            st.rerun(names)
        except StreamlitAPIException:
            continue
