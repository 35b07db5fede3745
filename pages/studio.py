"""Studio page: the graph, what its placement costs and what would change that, on one screen."""

import streamlit as st

from pages.ui.canvas import picture
from pages.ui.desk import corner, desk, dock, present, score, strip, unplaced
from pages.ui.forms import place_form
from pages.ui.lessons import panel
from pages.ui.panels import editor, export, rules, search_account
from pages.ui.session import choices
from pages.ui.session.current import studio
from pages.ui.shell import frame, job_status
from studio import lesson

frame.around()
now = studio()
places = desk.lay(now)
if now.unplaced:
    unplaced.show(now)
    st.stop()
drawing = desk.drawing(now)
if choices.presenting():
    present.lay()
    with desk.part("present"):
        present.show()
with places["strip"]:
    strip.show(now)
with places["corner"]:
    corner.show()
with places["score"]:
    score.show()
with places["graph"], desk.part("graph"):
    picture.show()
drawing.empty()
with places["inspector"], desk.part("inspector"):
    panel.show()
    editor.panel()
    # Beside a lesson there is room for what it asks, and no more.
    if lesson.readable(now.project) is None:
        rules.show()
        export.show()
    if not lesson.hides(now, "methods"):
        place_form.command()
    # Last of all, so that nothing moves while a method is at work, and when it ends.
    job_status.follow(now, "place", search_account.live)
dock.show()
with desk.part("working"):
    job_status.show(now, "place")
    job_status.show(now, "profile")
