"""Timeline page: one step as predicted and as measured, what decides it, and who holds memory."""

import streamlit as st

from pages.ui.panels import editor
from pages.ui.session.current import studio
from pages.ui.shell import frame
from pages.ui.shell.messages import plain_errors
from pages.ui.timeline import critical_path, memory, micro_batches, timelines


@st.fragment(key="analysis")
@plain_errors()
def analysis() -> None:
    """What decides the step, memory over time, and schedules of training."""
    now = studio()
    run = timelines.chosen(now)
    critical_path.show(now, run)
    memory.show(now, run)
    micro_batches.show(now)


frame.around()
timelines.show()
editor.show(numbers=False, height=480)
analysis()
