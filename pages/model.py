"""Model page: open a network, see it by device, and ask any part of it what it costs."""

import streamlit as st

from pages.ui.panels import editor
from pages.ui.session.current import studio
from pages.ui.shell import frame, glossary, open_model
from pages.ui.shell.messages import plain_errors

frame.around()
now = studio()
with st.sidebar:
    open_model.show(now)
with plain_errors():
    open_model.summary(now)
    if now.unplaced:
        st.error(glossary.plain(now.unplaced))
    else:
        editor.show()
    open_model.command_line()
