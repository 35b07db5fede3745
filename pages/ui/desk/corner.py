"""The upper right corner of the Studio page: whether all is saved, and the way to an audience."""

import streamlit as st

from pages.ui.desk import desk, present
from pages.ui.session import choices
from pages.ui.session.current import studio
from pages.ui.shell import frame, glossary


def show() -> None:
    """Draw it; the sidebar, which says the same of saving, is folded on this page."""
    if choices.presenting():
        return
    with desk.part("corner", in_line=True):
        _saved()
        present.button()


@st.fragment(key="saved")
def _saved() -> None:
    folder = glossary.plain(str(studio().project.folder))
    st.caption(frame.saved(), help=f"In {folder}", width="content")
