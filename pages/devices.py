"""Devices page: the machine to place on, and what its devices were measured to cost."""

import streamlit as st

from pages.ui.devices import machine_choice, measurement
from pages.ui.session.current import studio
from pages.ui.shell import frame
from studio.jobs import command_line

frame.around()
now = studio()
machine_choice.chooser(now)
machine_choice.tables(now)
with st.expander("The same on the command line"):
    st.code(command_line.text(command_line.machine(now.project)), language="bash", wrap_lines=True)
measurement.show(now)
