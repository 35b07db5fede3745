"""Place page: let a method decide, then move ops by hand and watch the prediction."""

import streamlit as st

from pages.ui import commands, frame, placing, workbench
from pages.ui.studio import studio

frame.around()
now = studio()
place = placing.show(now)
workbench.show()
with st.expander("The same on the command line"):
    simulate = commands.simulate(now.project, now.shelf.path(now.named.name))
    st.caption("Place with this method, and predict the placement on the screen:")
    st.code(f"{commands.text(place)}\n{commands.text(simulate)}", language="bash", wrap_lines=True)
