"""The desk: where the parts of the Studio page stand, and the edges that a person moves.

Streamlit draws the parts one after the other into containers with names; `assets/desk/desk.css`
puts these on a grid as large as the window. How high the dock is, and what is folded, is the
business of the browser alone: it is drawn at once, remembered by project, and Python never hears of
it.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.session import choices
from pages.ui.shell import glossary
from studio import lesson
from studio.snapshot import Studio

ASSETS = Path(__file__).resolve().parents[3] / "assets" / "desk"
SCRIPTS = ("pressed_tab.js", "edges.js")
# The parts above the dock, in the order in which keys reach them.
ABOVE = ("strip", "corner", "score", "graph", "inspector")


def part(name: str, *, in_line: bool = False) -> DeltaGenerator:
    """The container of a part of the desk; in a line its elements stand beside each other."""
    key = f"desk-{name}"
    if in_line:
        return st.container(key=key, horizontal=True, gap="xsmall", vertical_alignment="center")
    return st.container(key=key, gap="xsmall")


def lay(now: Studio) -> Mapping[str, DeltaGenerator]:
    """Turn the page into a desk; by name the places of the parts above the dock.

    Keys reach what is on a page in the order in which it stands there, so the edges of the dock
    stand behind those places. They are drawn before what is in these: how high the picture is
    depends on them.
    """
    st.html(ASSETS / "desk.css")
    if now.unplaced:
        # No picture, so nothing that it could leave room for.
        return {}
    places = {name: st.container() for name in ABOVE}
    with part("edges"):
        _edges()(
            key="desk-edges-drawn",
            data={
                "project": now.project.id,
                "unfold": choices.kept("unfold", 0),
                "lesson": lesson.of(now.project) is not None,
                "presented": choices.presenting(),
            },
            height="content",
        )
    return places


def drawing(now: Studio) -> DeltaGenerator:
    """Says that the picture is on its way, until it is emptied; seen only where that takes time."""
    place = part("drawing").empty()
    place.markdown(f":material/hourglass_top: Drawing **{glossary.plain(now.model.graph.name)}** …")
    return place


def unfold() -> None:
    """Open the dock in the browser where it is folded: something in it has to be seen."""
    choices.keep("unfold", choices.kept("unfold", 0) + 1)


@cache
def _edges() -> Callable[..., object]:
    html, css = ((ASSETS / f"edges.{kind}").read_text("utf-8") for kind in ("html", "css"))
    js = "\n".join((ASSETS / name).read_text("utf-8") for name in SCRIPTS)
    return st.components.v2.component("placement_desk", html=html, css=css, js=js)
