"""Placement Studio: the frame around the pages."""

from pathlib import Path

import streamlit as st

from pages.ui import canvas, frame
from pages.ui.messages import plain_errors

ASSETS = Path(__file__).parent / "assets"

st.set_page_config(
    page_title="Placement Studio",
    page_icon=ASSETS / "icon.svg",
    layout="wide",
    initial_sidebar_state=260,
)
page = st.navigation(
    [
        st.Page("pages/model.py", title="Model", icon=":material/hub:", default=True),
        st.Page("pages/devices.py", title="Devices", icon=":material/memory:"),
        st.Page("pages/place.py", title="Place", icon=":material/alt_route:"),
        st.Page("pages/run.py", title="Run", icon=":material/play_circle:"),
    ],
    position="top",
)
st.html(ASSETS / "studio.css")
canvas.mount_library()
frame.show()
with plain_errors():
    page.run()
