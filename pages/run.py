"""Run page: execute the placement on this machine and compare with what was predicted."""

import streamlit as st

from pages.ui.forms import run_form
from pages.ui.panels import placement_menu, yardstick
from pages.ui.run import results, stream_results, train_form
from pages.ui.session.current import studio
from pages.ui.shell import frame, glossary
from placement.api.results import StreamResult
from placement.core import formatting
from studio.jobs import jobs
from studio.snapshot import Studio


def measure(now: Studio) -> None:
    """Repeat one step and compare it with what was predicted."""
    run_form.controls(now)
    shown = run_form.chosen_run(now)
    if shown is None and not jobs.is_live(now.project.folder, "run"):
        goal, can_run = now.settings.objective, not run_form.why_not(now)
        yardstick.remember(now, now.named.name, now.placement, now.simulated.value)
        st.info(
            f"No run yet. The placement {glossary.plain(now.named.name)} is predicted to take"
            f" {formatting.seconds(now.simulated.value, now.problem.unit)} per {goal.per}"
            f" ({now.costs})" + ("; press Run to measure it." if can_run else "."),
            icon=":material/play_circle:" if can_run else ":material/info:",
        )
    elif shown is not None:
        streams = isinstance(shown.result, StreamResult)
        (stream_results if streams else results).show(now, shown)


frame.around()
opened = studio()
placement_menu.chooser(opened)
(train_form.show if train_form.is_wanted(opened) else measure)(opened)
