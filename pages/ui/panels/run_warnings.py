"""What was run, and what to know before believing its times."""

import streamlit as st

from pages.ui.shell import glossary
from placement.api.results.running import RunResult
from studio.jobs import caveats, jobs
from studio.snapshot import Studio

IMPORTED = "This run came with the project's file; its times are of the computer that made it."


def badges(now: Studio, job: jobs.Job, result: RunResult, how_long: str) -> None:
    """What was run, and what to know before believing the numbers."""
    about = job.about
    st.caption(
        glossary.plain(
            f"{about.model} on {about.machine}, placement {about.placement}, {how_long}"
        ),
        help=glossary.SEGMENT if "segment" in how_long else None,
    )
    if result.emulated:
        st.info(
            "Emulated: this run followed a virtual clock, nothing was measured on hardware.",
            icon=":material/theater_comedy:",
        )
    if job.about.imported:
        st.info(IMPORTED, icon=":material/input:")
    changed = caveats.not_of_screen(now, job)
    if changed:
        st.warning(glossary.plain(changed))
