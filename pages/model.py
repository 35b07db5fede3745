"""Model page: open a network, see it by device, and ask any part of it what it costs."""

import streamlit as st

from pages.ui import frame, opening, workbench
from pages.ui.current import studio
from pages.ui.messages import plain_errors

frame.around()
now = studio()
with st.sidebar:
    opening.show(now)
with plain_errors():
    opening.summary(now)
    workbench.show(numbers=False)
    opening.command_line()
