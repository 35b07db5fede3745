"""Redraw only the parts that an edit touches."""

from collections.abc import Sequence

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState

from pages.ui.session import choices

# In this order: the picture, where somebody looks who edits, answers before anything else.
EDITED = (
    "canvas",
    "said",
    "numbers",
    "placements",
    "colours",
    "lesson",
    "side",
    "dock",
    "table",
    "hints",
    "export",
    "command",
    "present",
    "saved",
)
# All that have a name, and so can be drawn anew by one.
NAMED = (*EDITED, "store", "timeline", "rules", "compared", "what-if")
SELECTED = ("canvas", "side", "table", "timeline")
# On whatever page there is a picture; the others are on some pages, or in what is open of them.
WITH_PICTURE = frozenset({"canvas", "side"})


def only(*fragments: str) -> None:
    """Ends a callback with a rerun of these fragments; of the page where they are not on it.

    It takes the place of the run that the callback belongs to. What others asked for at the same
    time is drawn with it: messages that come while a page is being drawn wait and come together, as
    a press on a tab and a pick in a table.

    A browser that has just left the page may still send a late edit to a callback of it. Where a
    message became part of a rerun of the whole page, that is what follows: a rerun of fragments
    would take its place, and draw into containers that the browser does not have yet.
    """
    names = tuple(name for name in fragments if _is_drawn(name))
    if not choices.is_drawn_alone():
        return
    if names and not WITH_PICTURE & (set(fragments) - set(names)):
        st.rerun((*names, *_asked_besides(names)))


def _asked_besides(names: Sequence[str]) -> tuple[str, ...]:
    """Other fragments that this run was for, but for the callback's own."""
    context = get_script_run_ctx()
    asked = set((context and context.fragment_ids_this_run) or ()) - {ThreadState.get().fragment_id}
    others = (name for name in NAMED if name not in names)
    return tuple(name for name in others if asked.intersection(_ids(name)))


def _is_drawn(name: str) -> bool:
    return bool(_ids(name))


def _ids(name: str) -> list[str]:
    """What Streamlit knows the fragments of a name by; none where it is not on the page."""
    context = get_script_run_ctx()
    try:
        return [] if context is None else context.fragment_storage.resolve_target(name)
    except StreamlitAPIException:
        return []
