"""Compare page: what all methods reach, and two or more placements side by side."""

import streamlit as st

from pages.ui import comparing, differing, frame, leaderboard
from pages.ui.current import studio

frame.around()
now = studio()
rows = leaderboard.show(now)
st.subheader("Side by side")
sides = comparing.chosen(now, rows)
if len(sides) < 2:
    st.info("Pick two placements or more; a method or the button above makes some.")
if sides:
    comparing.table(now, sides)
    comparing.timelines(sides)
pair = comparing.pair(now, sides)
if pair is not None:
    differing.show(now, *pair)
