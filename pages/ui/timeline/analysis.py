"""Below the timelines: what decides the step, memory over time, and schedules of training."""

import streamlit as st

from pages.ui.session.current import studio
from pages.ui.shell.messages import plain_errors
from pages.ui.timeline import critical_path, memory, micro_batches, timelines


@st.fragment(key="analysis")
def show() -> None:
    with plain_errors():
        now = studio()
        run = timelines.chosen(now)
        critical_path.show(now, run)
        memory.show(now, run)
        micro_batches.show(now)
