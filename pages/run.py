"""Run page: execute the placement on this machine and compare with what was predicted."""

import streamlit as st

from pages.ui import (
    frame,
    naming,
    results,
    running,
    streamed,
    training,
    units,
    words,
    yardstick,
)
from pages.ui.studio import Studio, studio
from placement.results import StreamResult


def measure(now: Studio) -> None:
    """Repeat one step and compare it with what was predicted."""
    running.controls(now)
    shown = running.chosen_run(now)
    if shown is None and not running.is_live(now):
        per = "sample" if now.settings.objective == "throughput" else "step"
        can_run = not running.why_not(now)
        yardstick.remember(now, now.named.name, now.placement, now.simulated.value)
        st.info(
            f"No run yet. The placement {words.plain(now.named.name)} is predicted to take"
            f" {units.seconds(now.simulated.value, now.problem.unit)} per {per} ({now.costs})"
            + ("; press Run to measure it." if can_run else "."),
            icon=":material/play_circle:" if can_run else ":material/info:",
        )
    elif shown is not None:
        streams = isinstance(shown.result, StreamResult)
        (streamed if streams else results).show(now, shown)


frame.around()
opened = studio()
naming.chooser(opened)
(training.show if training.is_wanted(opened) else measure)(opened)
