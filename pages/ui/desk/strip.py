"""The strip above the graph: what is open, which placement, and what changes the score."""

import streamlit as st

from pages.ui.desk import desk, dock, score
from pages.ui.forms import place_form, run_form
from pages.ui.shell import glossary
from placement.core import formatting
from studio import lesson
from studio.snapshot import Studio


def show(now: Studio) -> None:
    """Draw it in one line."""
    with desk.part("strip", in_line=True):
        _opened(now)
        with desk.part("menus", in_line=True):
            score.menus()
        if not lesson.hides(now, "methods"):
            place_form.show(now)
        run_form.button(now, lambda: dock.open_tab(dock.RUN))


def show_unplaced(now: Studio) -> None:
    """What of it there is where nothing is placed: what is open, and the methods."""
    with desk.part("strip", in_line=True):
        _opened(now)
        if not lesson.hides(now, "methods"):
            place_form.show(now)


def _opened(now: Studio) -> None:
    """Project, model and machine, each with the way to where it is changed."""
    with desk.part("opened", in_line=True):
        ops = formatting.counted(len(now.model.graph.ops), "op")
        devices = formatting.counted(len(now.machine.devices), "device")
        for page, icon, name, about in (
            ("projects", "folder_open", now.settings.name, "Project"),
            ("model", "hub", now.model.graph.name, f"Model, {ops}"),
            ("devices", "memory", now.machine.name, f"Machine, {devices}"),
        ):
            st.page_link(
                f"pages/{page}.py",
                label=glossary.plain(name, 40),
                icon=f":material/{icon}:",
                help=f"{about}: {glossary.plain(name)}. Click to change it.",
                width="content",
            )
