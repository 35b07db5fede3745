"""The picture with its side panel: select, move, undo; of the Model page, and the panel alone.

Each part is a fragment of its own, so that an edit redraws the colours and the panel and nothing
else. Everything is read anew from the project, which the edit has changed by then.
"""

from functools import partial

import streamlit as st

from pages.ui.canvas import gestures, picture
from pages.ui.forms import place_form
from pages.ui.panels import (
    best_moves,
    device_loads,
    export,
    inspector,
    op_table,
    pin_buttons,
    placement_menu,
    predicted,
    rules,
    search_account,
    yardstick,
)
from pages.ui.panels import history as changing
from pages.ui.session import choices
from pages.ui.session.current import edit, studio
from pages.ui.shell import glossary, messages
from pages.ui.steps import walk
from placement.core import formatting
from studio import editing, lesson
from studio.snapshot import Studio


def show(*, height_px: int = 600) -> None:
    """Draw picture and panel, and below them the table of ops and what can be exported."""
    left, right = st.columns([0.66, 0.34], gap="small")
    with left:
        picture.show(height_px)
    with right:
        _side()
        hints()
        rules.show()
    op_table.folded(gestures.view_of)
    export.show()


@st.fragment(key="side")
@messages.plain_errors()
def _side() -> None:
    now = studio()
    messages.show()
    placement_menu.chooser(now)
    search_account.show(now)
    yardstick.remember(now, now.named.name, now.placement, now.simulated.value)
    value, goal = formatting.seconds(now.simulated.value, now.problem.unit), now.settings.objective
    told = ", ".join(filter(None, (predicted.range_told(now), now.costs)))
    st.caption(
        f"Predicted {glossary.VALUE[goal]}: {value} ({told}).", help=glossary.VALUE_HELP[goal]
    )
    _move_buttons(now, with_placing=False)
    pin_buttons.show(now)
    device_loads.show(now)
    inspector.show(now, choices.selection())
    changing.folded(now)


@st.fragment(key="side")
@messages.plain_errors()
def panel() -> None:
    """The panel alone, for where placement, score and messages stand elsewhere."""
    now = studio()
    if walk.on_screen(now) is not None:
        called = glossary.plain(now.named.name)
        st.caption(f"The graph shows a step of a method. This is about the placement **{called}**.")
    _move_buttons(now, with_placing=True)
    inspector.show(now, choices.selection())
    pin_buttons.show(now)
    device_loads.show(now)
    search_account.show(now)


@st.fragment(key="hints")
@messages.plain_errors()
def hints() -> None:
    """The moves that would save most, looked for only while somebody has the list open."""
    best_moves.folded(studio())


def _move_buttons(now: Studio, with_placing: bool) -> None:
    """Device menu, undo and redo, for those who do not use the keys."""
    history = now.shelf.history(now.named.name)
    locked = not choices.may_write()
    row = st.container(horizontal=True, gap="xsmall")
    with row.popover("Move to…", disabled=locked or not choices.selection()):
        for number, device in enumerate(now.machine.devices, 1):
            st.button(
                glossary.plain(f"{number}  {device.name}"),
                key=f"move-{number}",
                on_click=edit,
                args=(partial(editing.edit, ops=choices.selection(), device=device.name),),
                width="stretch",
            )
    for name, travel, steps in (
        ("undo", editing.undo, history.done),
        ("redo", editing.redo, history.undone),
    ):
        row.button(
            name.capitalize(),
            key=name,
            help=f"{formatting.counted(len(steps), 'step')} can be {name.replace('do', 'done')}",
            disabled=locked or not steps,
            on_click=edit,
            args=(travel,),
        )
    with row:
        pin_buttons.buttons(now)
        if with_placing and not lesson.hides(now, "methods"):
            place_form.selection_button(now)
