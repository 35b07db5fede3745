"""One of each kind of widget that a first picture has, out of sight, before anything is in sight.

Streamlit draws a placeholder for the first widget of a kind until its script is there, and React
then waits until no placeholder has come for 300 ms before it shows what stands in for them. A
script that is here already, as `first_page.py` sees to, does not help: what is drawn the first time
is a placeholder all the same. So that comes first, and is taken away again before it could show.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from pages.ui.session import choices

HIDDEN = "first-kinds"


@contextmanager
def learned() -> Iterator[None]:
    """Around what draws a page; the kinds are those of `first_page.DRAWN_FIRST`."""
    # Always in its place: what comes and goes would move all that follows, and draw it anew.
    slot = st.empty()
    if choices.is_first_run():
        with slot.container(key=HIDDEN):
            st.button("first", key=f"{HIDDEN}-button")
            st.page_link("pages/model.py", label="first")
            st.selectbox("first", ("first",), key=f"{HIDDEN}-select")
            st.checkbox("first", key=f"{HIDDEN}-check")
            st.metric("first", 0)
    yield
    slot.empty()
