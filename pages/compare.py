"""Compare page: what all methods reach, and two or more placements side by side."""

import streamlit as st

from pages.ui.compare import board, differences
from pages.ui.panels import side_by_side
from pages.ui.session.current import studio
from pages.ui.shell import frame

frame.around()
now = studio()
rows = board.show(now)
st.subheader("Side by side")
sides = side_by_side.chosen(now, rows)
if len(sides) < 2:
    st.info("Pick two placements or more; a method or the button above makes some.")
if sides:
    side_by_side.table(now, sides)
    side_by_side.timelines(sides)
pair = side_by_side.pair(now, sides)
if pair is not None:
    differences.show(now, *pair)
