"""Below the timelines: what decides the step, memory over time, and schedules of training."""

import streamlit as st

from pages.ui import chain, memories, microbatching, timelines
from pages.ui.current import studio
from pages.ui.messages import plain_errors


@st.fragment(key="analysis")
def show() -> None:
    with plain_errors():
        now = studio()
        run = timelines.chosen(now)
        chain.show(now, run)
        memories.show(now, run)
        microbatching.show(now)
