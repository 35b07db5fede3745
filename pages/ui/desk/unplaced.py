"""The Studio page where the model is on no device: why, once, and where that can be changed."""

from contextlib import suppress

import streamlit as st

from pages.ui.desk import desk, strip
from pages.ui.panels import search_account
from pages.ui.session import choices
from pages.ui.shell import glossary, job_status
from studio import lesson
from studio.snapshot import Studio


def show(now: Studio) -> None:
    """Draw it on the desk; another method may find a placement where the first one did not."""
    # There is nothing to present, and no bar with the way back.
    choices.present(on=False)
    strip.show_unplaced(now)
    with desk.part("graph"):
        st.error(glossary.plain(now.unplaced))
        with st.container(horizontal=True, key="unplaced-ways"):
            for page, label in (("model", "Model: its sizes"), ("devices", "Devices: the machine")):
                st.page_link(f"pages/{page}.py", label=label, icon=":material/arrow_forward:")
    with desk.part("inspector"):
        _lesson(now)
        job_status.follow(now, "place", search_account.live)
    with desk.part("working"):
        job_status.show(now, "place")
        job_status.show(now, "profile")


def _lesson(now: Studio) -> None:
    """Where the lesson that was begun has gone, if there is one and the model is not its own."""
    # It wants the placement last of all, of which the page says why there is none.
    with suppress(ValueError):
        try:
            lesson.work(now)
        except lesson.OtherProblem as error:
            st.info(glossary.plain(str(error)))
