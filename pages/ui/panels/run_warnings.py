"""What was run, and what to know before believing its times."""

import streamlit as st

from pages.ui.shell import glossary
from placement.api.results.running import RunResult
from placement.core import formatting
from studio.jobs import caveats, jobs, runs
from studio.snapshot import Studio

# By whether the costs are estimates.
DISPROVED = {
    False: "Measured is below what the costs allow for any placement, so they no longer tell how"
    " fast this computer is; most often other programs computed while the network was measured."
    " Measure this network again on the Devices page, and all is predicted anew.",
    True: "Measured is below what the estimates allow for any placement, so this computer is faster"
    " than they take it to be. Measure this network on the Devices page, and all is predicted"
    " anew.",
}
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


def disproved(now: Studio) -> bool:
    """Whether a run took less than the costs allow; then say so above what is predicted by them,
    and where to measure."""
    job = caveats.disproof(now)
    if job is None or job.ran is None:
        return False
    took = formatting.seconds(runs.measured_s(job.ran))
    costs = "estimates" if now.is_estimate else "measured costs"
    row = st.container(horizontal=True, gap="small", vertical_alignment="center")
    said = glossary.plain(
        f"Trust no predicted time here: a run of {job.about.placement} took {took}, less than the"
        f" {costs} allow for any placement."
    )
    # In a line, not a box: the dock shows few lines at once.
    row.markdown(f":orange[:material/warning: {said}]", width="content")
    row.page_link(
        "pages/devices.py",
        label="Measure this model" if now.is_estimate else "Measure this model again",
        icon=":material/speed:",
        help=DISPROVED[now.is_estimate],
        width="content",
    )
    return True
