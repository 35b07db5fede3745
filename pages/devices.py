"""Devices page: the machine to place on, and what its devices were measured to cost."""

import streamlit as st

from pages.ui import commands, frame, machines, measuring
from pages.ui.current import studio

frame.around()
now = studio()
machines.chooser(now)
machines.tables(now)
with st.expander("The same on the command line"):
    st.code(commands.text(commands.machine(now.project)), language="bash", wrap_lines=True)
measuring.show(now)
