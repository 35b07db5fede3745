"""Redraw only the parts that an edit touches."""

import streamlit as st
from streamlit.errors import StreamlitAPIException

# In this order: the picture answers before the moves are looked at anew.
EDITED = ("numbers", "canvas", "side", "table", "hints")


def only(*fragments: str) -> None:
    """Ends a callback with a rerun of these fragments; of the page where they are not on it.

    A browser that has just left the page may still send a late edit to a callback of it.
    """
    try:
        st.rerun(fragments)
    except StreamlitAPIException:
        return
